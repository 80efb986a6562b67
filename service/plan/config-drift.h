/* SPDX-License-Identifier: MIT */
#pragma once

/* Does a configuration of earlier give more than today's? Pure. */

#include "service/plan/config.h"

/* Of sentences; more are summed up in one. */
#define CONFIG_DRIFT_MAX 16u

/*
 * One sentence for each setting with which a session was started and which the configuration does not give
 * any more, or for each narrowing that it has now. What then's values have from the environment of that
 * launch was allowed for it alone and does not count; nor does allow-ip, which running sessions follow.
 * Return: 0 with *ret NULL for none; -ENOMEM.
 */
int config_drift(const Config *then, const Config *now, char ***ret);
