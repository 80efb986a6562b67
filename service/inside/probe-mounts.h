/* SPDX-License-Identifier: MIT */
#pragma once

/* The mounts that a probe sees, and ways to leave them. For the files probes-*.c alone. */

#include "service/inside/probing.h"

#define PROBE_MOUNTS_MAX 400u

typedef struct ProbeMount {
	char *path;          /* mount point */
	char *type;          /* of its file system */
	unsigned long flags; /* MS_ of mount(2), all that a remount must name to keep it */
} ProbeMount;

typedef struct ProbeMounts {
	ProbeMount *mounts;
	size_t n;
} ProbeMounts;

/* Those of this process's namespace that are in sight (/proc/self/mountinfo). Return: 0 or a negative errno.
 */
int probe_mounts_read(ProbeMounts *ret);
void probe_mounts_done(ProbeMounts *mounts);

/* Is something of the machine in sight below that directory (AT_FDCWD: "/") that the jail hides? Its path, or
 * NULL. */
const char *probing_sees_outside(const Probing *p, int root_fd);

/* In a user and mount namespace of our own: a tmpfs as the new root, and the old one taken away. Return: 0 or
 * a negative errno. */
int probe_leave_root(void);
