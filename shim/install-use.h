/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Does a running session have this version? Every session mounts its agent's program on itself, by the path
 * of its version: the mount stands in the session's mountinfo (proc_pid_mountinfo(5), the root of the mount)
 * until its last process ends.
 */

#include "dbus/base.h"

/* entry: the name of the version's directory. Return: 1, 0; -errno when that cannot be found out. */
int install_is_used(const char *entry);

/* Is there a mount of something below ".versions/entry" in this mountinfo? */
bool install_mounts_name(FILE *mountinfo, const char *entry);
