/* SPDX-License-Identifier: MIT */
#pragma once

/* Parts of a plan alone, for whoever only wants to know whether there could be one. */

#include "service/plan/mounts.h"

/*
 * Find the profile's agent as a launch of request would. Return: 0 with its canonical path; a negative errno
 * with *ret_problem, the sentence of the launch (but -ENOMEM).
 */
int agent_find(const SessionRequest *request, const Profile *profile, const PlanView *view, char **ret_path,
	       char **ret_problem);
/* Can the homes of the request be hidden and the own one be found? Return: 0; as above. */
int agent_check_homes(const SessionRequest *request, const PlanView *view, char **ret_problem);
/* May an agent work in the directory of the request? Return: 0; as above. */
int agent_check_directory(const SessionRequest *request, const PlanView *view, char **ret_problem);
