/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Doctor: the service's own rows, then a session that starts as the caller's would and reports each step.
 * Whatever refuses a launch becomes a row; an error is answered for a malformed call alone.
 */

#include "service/daemon/launch.h"

/* As launch_begin(). */
int doctor_begin(Manager *manager, Client *client, sd_bus_message *call, const char *action,
		 sd_bus_error *reterr);
