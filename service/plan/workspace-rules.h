/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * May this directory be the workspace? path is canonical. Refused: "/", a home or an ancestor of one, system
 * directories, our own directories, and whatever would expose a masked credential path of home.
 * homes: NULL-terminated canonical paths (passwd home, $HOME, /root).
 * Return: 0, or -EPERM with *ret_problem (cause and fix).
 */
int workspace_check(const char *path, const char *const *homes, char **ret_problem);

/* Is path equal to directory or below it? Both canonical. */
bool path_is_within(const char *path, const char *directory);
