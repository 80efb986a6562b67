/* SPDX-License-Identifier: MIT */
#include "shim/install-agent.h"

#define VERSION_MAX 64u

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* process.arch of Node.js, and the target triple of Rust. */
#if defined(__x86_64__)
#define MACHINE "x64"
#define TRIPLE "x86_64-unknown-linux-musl"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#define TRIPLE "aarch64-unknown-linux-musl"
#else
#error "the agents are not published for this machine"
#endif

#ifdef __GLIBC__
#define LIBC ""
#else
#define LIBC "-musl"
#endif

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const InstallAgent agents[] = {
	{
		.name = "claude",
		.package = "@anthropic-ai/claude-code",
		.native = "@anthropic-ai/claude-code-linux-" MACHINE LIBC,
		.programs = LIST("claude"),
	},
	{
		.name = "codex",
		.package = "@openai/codex",
		.native = "@openai/codex-linux-" MACHINE,
		.programs = LIST("vendor/" TRIPLE "/bin/codex", "vendor/" TRIPLE "/codex/codex"),
	},
	{
		.name = "pi",
		.package = "@mariozechner/pi-coding-agent",
		/* It asks for 20.6 or newer; one line with long support. */
		.node = "node-linux-" MACHINE,
		.node_versions = "^24",
		.programs = LIST("dist/cli.js"),
	},
};

const InstallAgent *install_agent_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		if (streq(agents[i].name, name))
			return &agents[i];
	return NULL;
}

const InstallAgent *install_agent_at(size_t index)
{
	return index < ELEMENTSOF(agents) ? &agents[index] : NULL;
}

bool install_version_is_valid(const char *version)
{
	size_t n = strlen(version);

	if (n == 0 || n > VERSION_MAX)
		return false;
	if (strchr(DIGITS, version[0]))
		return strspn(version, DIGITS LETTERS ".-") == n;
	return strchr(LETTERS, version[0]) && strspn(version, DIGITS LETTERS "-") == n;
}
