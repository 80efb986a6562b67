/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sockets and FIFOs that the plan covers belong to other programs, which may remove them at any moment. bwrap
 * then finds nothing to mount on: where the directory is read-only it ends, where it is writable it makes an
 * empty file.
 */

#include "service/plan/mounts.h"

/* Has one gone that the plan covers? */
bool covers_are_stale(const Plan *plan);
/*
 * Remove the empty files that bwrap made in the places of those that had gone. uid: whom they belong to.
 * Nothing else is touched, and no link is followed.
 */
void covers_clear(const Plan *plan, uid_t uid);
