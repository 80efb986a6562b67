/* SPDX-License-Identifier: MIT */
#pragma once

/* The closed table of agents: what each keeps, hides, is told. Everything about one agent is in its row. */

#include "dbus/base.h"

typedef struct Profile {
	const char *name;               /* "claude" */
	const char *const *directories; /* below the home, read-write; NULL-terminated, as all lists here */
	const char *const *masks;       /* below the home, hidden after the binds */
	const char *state_file; /* a file of the home that the agent replaces by renaming: inside, a link into
				   the first of directories; NULL when there is none */
	const char *const *first_arguments;   /* put before the caller's */
	const char *const *removed_arguments; /* exact matches taken out of the caller's */
	const char *const *variables;         /* NAME=VALUE; "$HOME" at the start of a value is the home */
	const char *skills;                   /* directory below the home */
	bool temp_root;                       /* CLAUDE_CODE_TMPDIR is set to the workspace's temp root */
	bool native_path;                     /* the agent is also bound at ~/.local/bin/NAME */
	const char *beside; /* a directory next to the program's bin: where it is, all of the directory above
			       belongs to the agent; or NULL */
	const char *system_program; /* an agent that the system supplies ("/bin/bash" for shell), or NULL */
} Profile;

/* Return: the row, or NULL for a name that is none. */
const Profile *profile_find(const char *name);
/* For lists of names: index from 0; NULL at the end. */
const Profile *profile_at(size_t index);
/* The arguments as the agent gets them, argv[0] = program. NULL-terminated, to be freed with strings_free();
 * NULL without memory. */
char **profile_arguments(const Profile *profile, const char *program, char *const *argv);
