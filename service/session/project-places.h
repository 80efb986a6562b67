/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the plan mounts in a workspace's own part of an agent's state, and the mount points for it.
 *
 * bwrap makes missing mount points by path and follows links, and agents write this directory. So the session
 * makes every mount point itself, by descriptors (project-names.h). Whoever swaps one afterwards makes bwrap
 * write nowhere but in what agents may write (anchors.h), and no agent starts with a mount that is not in its
 * place (mask-watch.h).
 */

#include "service/plan/mount-list.h"
#include "service/session/project-state.h"

/*
 * Make the mount points, and add to plan the directories on the way to each, on themselves: no agent moves
 * those. Return: 0; -ENOMEM, -E2BIG; another negative errno with *ret_problem.
 */
int project_places_make(ProjectState *state, Plan *plan, char **ret_problem);
