/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From the caller's world into ours: execute `launch` with an empty environment, the caller's whole
 * environment as data in a sealed memfd. No variable that steers a loader, a locale, a terminal library or a
 * bus client is then a variable of a program of ours, and none is lost for the plan, which may need it. libc
 * only, and nothing of it that reads files or variables.
 *
 * What launch is executed with: argv[1] the agent's name, argv[2] the descriptor's number in decimal, then
 * the agent's arguments, byte for byte.
 */

#include "dbus/base.h"

/*
 * Does not return when it succeeds. arguments and environment are NULL-terminated vectors; either may be
 * NULL. Return: a negative errno: -ENOENT when launch is not installed, -ENOMEM, -E2BIG (execve(2)), -EMFILE,
 * ...
 */
int handoff_exec(const char *agent, char *const *arguments, char *const *environment);

/* Print "claude-sandbox: SENTENCE" for what handoff_exec() returned, as one line on standard error. */
void handoff_complain(int error);
