/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"

/*
 * Compose the plan's variables from nothing: fixed ones, the profile's, those of the caller that go through
 * by value, pass-env, in this order; the first that sets a name keeps it. Return: 0, -ENOMEM.
 */
int environment_make(Plan *plan, const SessionRequest *request, const Profile *profile,
		     const PlanFacts *facts, const PlanView *view);
