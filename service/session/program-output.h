/* SPDX-License-Identifier: MIT */
#pragma once

/* What an external program says of itself. */

#include "dbus/base.h"

#define PROGRAM_OUTPUT_MAX (64u * 1024)

/*
 * Run the program at an absolute path with one option, an empty environment and nothing to read, and wait for
 * its end, at most timeout_msec. Return: 0 with what it wrote on both outputs (bytes beyond
 * PROGRAM_OUTPUT_MAX and NUL are left out), whatever its status is; -ETIME; other negative errnos.
 */
int program_output(const char *path, const char *option, int timeout_msec, char **ret);
