/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What others rename, remove or replace between the plan and the mounts. Sources are held by descriptors, so
 * that never anything else is mounted than was planned; bwrap ends where it finds another thing at the name.
 * At the other end bwrap goes by the path alone, and a link there leads the mount elsewhere: that is looked
 * at afterwards.
 */

#include "service/plan/mounts.h"

typedef enum Disturbance {
	DISTURBANCE_NONE,
	DISTURBANCE_POSSIBLE, /* it may all be back in its place */
	DISTURBANCE_CERTAIN,
} Disturbance;

/*
 * bwrap ended while it made the mounts of plan; line: its last words. Was it because something had moved?
 * Told by what there is now, and, since a thing may be back already, by what bwrap complained of.
 */
Disturbance start_disturbance(const Plan *plan, const char *line);

/*
 * root_fd: the root of the jail that was made of plan. Return: the first bind that is not seen at its
 * destination; NULL when all are.
 */
const Entry *start_misplaced(const Plan *plan, int root_fd);
