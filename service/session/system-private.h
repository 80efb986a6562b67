/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What of the system others cannot read. In a session of root the agent has no capability, but it owns root's
 * files, and their owner's bits are all that it needs. No list of names is complete (backups of shadow,
 * passwords of databases, logs of other users), so the modes are asked.
 */

#include "dbus/base.h"

#define SYSTEM_PRIVATE_MAX 40u /* places of one root: each is a mount */

typedef struct SystemPrivate {
	const char *root;        /* what is looked through, "/etc" */
	const char *const *kept; /* directories that programs need: only single files of theirs are hidden */
	const char *const *unseen; /* directories that are a place without a look */
	const char *const
		*wholes;      /* directories whose files are renamed every day: hidden whole, or not at all */
	unsigned entries_max; /* that are looked at in each directory of the first two levels */
} SystemPrivate;

/*
 * Append the canonical path of each regular file in root that others cannot read (no o+r), and of each directory
 * that they cannot read or search; nothing below one that is in the list. A directory with several such files
 * is one place. What has too many entries to be looked through is a place too, with a warning: nobody knows
 * what is in it. Return: 0; -E2BIG when there are more places than SYSTEM_PRIVATE_MAX however they are put
 * together, with *ret_problem; -ENOMEM.
 */
int system_private_find(const SystemPrivate *what, char ***places, char ***warnings, char **ret_problem);

/* The same for /etc and /var of this machine. */
int system_private_find_all(char ***places, char ***warnings, char **ret_problem);
