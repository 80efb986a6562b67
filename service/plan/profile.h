/* SPDX-License-Identifier: MIT */
#pragma once

/* The closed table of agents: what each keeps, hides, is told. Everything about one agent is in its row. */

#include "dbus/base.h"

/* How an agent files its transcripts, in a directory of its state. */
typedef enum Transcripts {
	TRANSCRIPTS_NONE,
	TRANSCRIPTS_DASHED, /* "-home-user-demo": the current directory, a dash for all but letters and digits */
	TRANSCRIPTS_FRAMED, /* "--home-user-demo--": without its first slash, a dash for '/', '\\' and ':' */
	TRANSCRIPTS_DATED, /* by year, month, day and name; the current directory is "cwd" of the first line */
	TRANSCRIPTS_MAX,
} Transcripts;

/*
 * Every name in an agent's state is of one of three kinds:
 *
 *   account  all sessions and the person's own agent share it
 *   project  sessions of the same workspace share it: the transcripts, and every name that no list has
 *   session  nobody shares it; it is gone at the end
 *
 * Names are paths below the state. All lists are NULL-terminated and never NULL.
 */
typedef struct Profile {
	const char *name;  /* "claude" */
	const char *state; /* its directory below the home, ".claude"; NULL: it keeps nothing */
	const char *const *account_directories;
	const char *const
		*account_files; /* saved by renaming, as a rule: each is a copy that follows the other */
	const char *const *account_locks; /* what an agent makes while it writes one; a file or a directory */
	const char *home_file; /* an account file that the person's own agent has in the home under this name;
				  inside, a link to the one in the state; or NULL */
	const char *const *session_names; /* "jobs/" is a directory, "daemon.lock" a file */
	const char *const *orders;   /* where a running agent takes orders from: files, for Verify's probes */
	const char *const *settings; /* account files in which command lines name programs */
	const char *const *program_keys; /* the keys there whose values are command lines */
	const char *transcripts;         /* the directory of them, or NULL */
	Transcripts transcripts_kept;
	const char *const *first_arguments;   /* put before the caller's */
	const char *const *removed_arguments; /* exact matches taken out of the caller's */
	const char *const *anywhere;          /* a first argument with which it works in no directory */
	const char *const *updates;           /* a first argument with which it replaces its own program */
	const char *const *variables;         /* NAME=VALUE; "$HOME" at the start of a value is the home */
	const char *skills;                   /* directory below the state */
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
/* A name of the state as a path below the home, without a slash at its end. To be freed; NULL without memory. */
char *profile_path(const Profile *profile, const char *name);
/* Does a name of session_names stand for a directory? */
bool profile_is_directory(const char *name);
/*
 * Below the state: the directory of the transcripts that the agent writes when it runs in cwd, where it keeps
 * them apart by that. Return: 0, with *ret to be freed; -ENOENT where it does not, or the name is too long for
 * a file; -ENOMEM.
 */
int profile_find_transcripts(const Profile *profile, const char *cwd, char **ret);
/* With these arguments of the caller's: does the agent need a workspace? Does it replace its program? */
bool profile_works_anywhere(const Profile *profile, char *const *argv);
bool profile_updates(const Profile *profile, char *const *argv);
/* The arguments as the agent gets them, argv[0] = program. NULL-terminated, to be freed with strings_free();
 * NULL without memory. */
char **profile_arguments(const Profile *profile, const char *program, char *const *argv);
