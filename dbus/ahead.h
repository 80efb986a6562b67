/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A program that has an agent's name and stands before the entry on PATH: typing the name starts that one,
 * without a jail and without a word. Debian's ~/.profile puts ~/.local/bin first from the login on that finds
 * it.
 */

#include "dbus/base.h"

/* The value of PATH in an environment (NULL: an empty one). Return: borrowed; NULL where it has none. */
const char *ahead_path(char *const *environment);

/* Is this file the entry, or a copy of it? */
bool ahead_is_entry(const char *path);

/*
 * The program that the shell starts for name, by the PATH that is given (NULL: none), unless it is the entry
 * (*ret is NULL then, as where there is none). Return: 0, -ENOMEM.
 */
int ahead_find(const char *path, const char *name, char **ret);
