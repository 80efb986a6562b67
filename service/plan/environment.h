/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"

/*
 * Compose the plan's variables from nothing: fixed ones, the profile's, those of the caller that go through
 * by value, pass-env, in this order; the first that sets a name keeps it. Return: 0, -ENOMEM.
 */
int environment_make(Plan *plan, const SessionRequest *request, const Profile *profile,
		     const PlanFacts *facts, const PlanView *view);

/* The names of the variables that hold the path of a file of certificates, from index 0; NULL at the end. */
const char *environment_certificates(size_t index);
