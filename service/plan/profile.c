/* SPDX-License-Identifier: MIT */
#include "service/plan/profile.h"

#include "service/link/pack.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static const Profile profiles[] = {
	{
		.name = "claude",
		.directories = LIST(".claude"),
		/* The target of the alias that Claude puts into a person's shell. */
		.masks = LIST(".claude/local"),
		.state_file = ".claude.json",
		.first_arguments = LIST("--no-chrome"),
		.removed_arguments = LIST("--chrome"),
		/* Its own updates would only fill a private directory, hundreds of MiB at a time. */
		.variables = LIST("CLAUDE_CONFIG_DIR=$HOME/.claude", "DISABLE_AUTOUPDATER=1"),
		.skills = ".claude/skills",
		.temp_root = true,
		.native_path = true,
	},
	{
		.name = "codex",
		.directories = LIST(".codex"),
		/* A native Codex later starts the service that lies in the first, and hands its turns to
		 * the socket that the others name. */
		.masks = LIST(".codex/packages", ".codex/app-server-control", ".codex/app-server-daemon"),
		.first_arguments = LIST(),
		.removed_arguments = LIST(),
		.variables = LIST("CODEX_UPDATE_DISABLED=1"),
		.beside = "codex-path", /* the ripgrep that it brings; more lies next to it */
		.skills = ".codex/skills",
	},
	{
		.name = "pi",
		.directories = LIST(".pi"),
		.masks = LIST(),
		.first_arguments = LIST(),
		.removed_arguments = LIST(),
		.variables = LIST("PI_SKIP_VERSION_CHECK=1"),
		.skills = ".pi/agent/skills",
	},
	{
		.name = "shell",
		.directories = LIST(),
		.masks = LIST(),
		.first_arguments = LIST(),
		.removed_arguments = LIST(),
		/* What Debian's /etc/bash.bashrc puts before the prompt: nobody types on the wrong side. */
		.variables = LIST("debian_chroot=jail"),
		.system_program = "/bin/bash",
	},
};

const Profile *profile_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(profiles); i++)
		if (streq(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

const Profile *profile_at(size_t index)
{
	return index < ELEMENTSOF(profiles) ? &profiles[index] : NULL;
}

static bool list_has(const char *const *list, const char *string)
{
	for (size_t i = 0; list[i]; i++)
		if (streq(list[i], string))
			return true;
	return false;
}

char **profile_arguments(const Profile *profile, const char *program, char *const *argv)
{
	size_t n_first = strings_count((char *const *)profile->first_arguments), n = 0;
	_cleanup_(strings_freep) char **arguments =
		calloc(1 + n_first + strings_count(argv) + 1, sizeof(*arguments));

	if (!arguments || !(arguments[n++] = strdup(program)))
		return NULL;
	for (size_t i = 0; i < n_first; i++)
		if (!(arguments[n++] = strdup(profile->first_arguments[i])))
			return NULL;
	for (size_t i = 0; argv && argv[i]; i++) {
		if (list_has(profile->removed_arguments, argv[i]))
			continue;
		if (!(arguments[n++] = strdup(argv[i])))
			return NULL;
	}
	return TAKE_PTR(arguments);
}
