/* SPDX-License-Identifier: MIT */

/*
 * What a person starts: /usr/local/bin/claude, codex and pi are links to this one file. It is static, so that
 * the loader never runs what a variable names, and it does one thing: hand over to `launch`, which then runs
 * with an empty environment. Nothing here may read a file, a locale or a variable.
 */

#include <elf.h>

#include "dbus/names.h"
#include "shim/handoff.h"

/* The file names itself: a copy of it, put where an agent is looked for, is not taken for the agent. */
__attribute__((section(".note.claude-sandbox"), used, aligned(4))) static const struct {
	Elf64_Nhdr header;
	char name[(sizeof(CS_ENTRY_NOTE) + 3) & ~3u];
} NOTE = { { sizeof(CS_ENTRY_NOTE), 0, 1 }, CS_ENTRY_NOTE };

static const char *const AGENTS[] = { "claude", "codex", "pi" };

static const char *agent_of(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	if (slash)
		name = slash + 1;
	for (size_t i = 0; name && i < ELEMENTSOF(AGENTS); i++)
		if (streq(name, AGENTS[i]))
			return AGENTS[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static const char NOBODY[] = "claude-sandbox: entry is started by the names claude, codex and pi "
				     "in " CS_BIN_DIR "\n";
	const char *agent = argc > 0 ? agent_of(argv[0]) : NULL;

	if (!agent) {
		(void)!write(STDERR_FILENO, NOBODY, sizeof(NOBODY) - 1);
		return CS_EXIT_REFUSED;
	}

	handoff_complain(handoff_exec(agent, argv + 1, environ));
	return CS_EXIT_REFUSED;
}
