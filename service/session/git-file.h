/* SPDX-License-Identifier: MIT */
#pragma once

/* The text of a git configuration file. Pure. */

#include "dbus/base.h"

/*
 * Call each for every variable of text, in its order: key as git compares it ("core.worktree",
 * "remote.Name.url": section and name in lower case, the part between quotes as it is), value NULL where the
 * file gives none. Read as git-config(1), "Syntax", describes, with one difference: an include is a variable
 * like any other, and names nothing that would be opened. Return: 0; -EBADMSG where git would refuse the file;
 * -ENOMEM; what each returned, if not 0.
 */
int git_file_parse(const char *text, size_t size,
		   int (*each)(void *userdata, const char *key, const char *value), void *userdata);
