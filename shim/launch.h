/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One launch, from the call to the end of the agent: the person's terminal on one side, the session's
 * lifeline on the other. See the top of launch.c.
 */

#include "dbus/base.h"
#include "shim/streams.h"

typedef struct LaunchEnd {
	int status; /* exit status, when signal is 0 */
	int signal; /* end by this one */
} LaunchEnd;

/*
 * Run agent with arguments and environment (data for the service, not ours). What went wrong is already said
 * when this returns; the terminal is as it was. Return: how to end.
 */
LaunchEnd launch_run(const char *agent, char *const *arguments, char *const *environment);
