/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What is hidden and is replaced from outside, as programs do that save by renaming, is hidden again: the same kind of
 * mask is mounted on what is there now, in the jail's own mount namespace.
 *
 * Until then the agent can read it, and can keep open what it opened. A nested sandbox in the jail has mounts of its
 * own, which a new mask does not reach: then nothing helps but the end of the session.
 */

#include <sys/types.h>

#include "service/plan/mounts.h"

/*
 * Cover the place of entry, a mask, again. leader: the jail's init, in the mount namespace mounts_fd. Return: 0; -ENOENT when
 * nothing is there; -EXDEV when a process of the jail has mounts of its own; another negative errno.
 */
int mask_renew(pid_t leader, int mounts_fd, const Entry *entry);
