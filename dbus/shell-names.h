/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An agent's name that the person's shell takes for something else before it looks at PATH: an alias or a function
 * in one of the shell's startup files, as Claude's own installer writes one for ~/.claude/local. The files are read
 * as the person, and bounded; what they read in turn is not looked at, and what a function does is not known.
 */

#include "dbus/base.h"

/* Of one file. */
#define SHELL_NAMES_BYTES_MAX (1u << 20)

/*
 * Look for name, by HOME and SHELL of environment; an unknown shell has the files of all that are known. An alias
 * that begins with the name itself, or with the entry's path, is none. Return: 1 with *ret, a sentence with its fix;
 * 0 for none; -ENOMEM.
 */
int shell_name_find(char *const *environment, const char *name, char **ret);

/* The value of a variable of the shell's, or NULL. */
const char *shell_variable(char *const *environment, const char *name);

/* One line of a startup file. Pure. Return: does it give name another meaning? */
bool shell_line_names(const char *line, const char *name);
