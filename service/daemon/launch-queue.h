/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whose turn it is. A launch that is allowed waits here until few enough are being started: a start keeps
 * processors busy, and one that hangs holds its place for a while. Places are a user's: whoever has none
 * under way gets one at once, however many wait of others; of those who wait, who has fewest is next, and of
 * one user's, who was first.
 */

#include "service/daemon/launch.h"

/* Sessions between their spawn and their agent: of one user, and of all who have one already. */
#define LAUNCH_STARTS_OF_USER_MAX 16u
#define LAUNCH_STARTS_MAX 64u

/* Return: 0 or a negative errno. */
int launch_queue_open(Manager *manager);
/* Everybody has agreed to it. May start it, or free it. */
void launch_queue_add(Launch *launch);
/* A launch is no more: another one may be next, after whatever is being done now. */
void launch_queue_moved(Manager *manager);
