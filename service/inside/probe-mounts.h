/* SPDX-License-Identifier: MIT */
#pragma once

/* The mounts that a probe sees, and ways to leave them. For the files probes-*.c alone. */

#include "service/inside/mounts.h"
#include "service/inside/probing.h"

/* Those of this process's namespace that are in sight (/proc/self/mountinfo). Return: whether they are known;
 * if not, that is what was found. To be given to mounts_done(). */
bool probing_mounts(Probing *p, Mounts *ret);

/* Is something of the machine in sight below that directory (AT_FDCWD: "/") that the jail hides? Its path, or
 * NULL. */
const char *probing_sees_outside(const Probing *p, int root_fd);

/* In a user and mount namespace of our own: a tmpfs as the new root, and the old one taken away. Return: 0 or
 * a negative errno. */
int probe_leave_root(void);
