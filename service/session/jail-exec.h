/* SPDX-License-Identifier: MIT */
#pragma once

/* From the plan to a running bwrap: its arguments, init's orders, and every descriptor at its number. */

#include "dbus/base.h"
#include "service/link/report.h"
#include "service/plan/mounts.h"
#include "service/session/holder.h"
#include "service/session/terminal-keys.h"

/* Numbers in bwrap beside those of service/link/report.h. */
enum {
	JAIL_FD_ARGUMENTS = INIT_FD_MAX, /* --args */
	JAIL_FD_SOURCES = 24,            /* and on: what the plan mounts */
};

/* bwrap's own command line, the same for all. NULL-terminated. */
char *const *jail_exec_arguments(void);

/* A program of ours in the agent's place: with its environment and directory, and descriptors of its own. */
typedef struct StandIn {
	char *program; /* absolute path inside */
	char **argv;
	uint32_t descriptors; /* as in SessionRequest, of keys */
	uint32_t terminals;
} StandIn;

typedef struct JailExec {
	const SessionRequest *request;
	const Plan *plan;
	const TerminalKeys *keys;
	const StandIn *stand_in; /* NULL: the agent runs */
	int report_fd;           /* init's end */
	int error_fd;            /* bwrap's standard error, and init's until the agent runs */
} JailExec;

/* Return: 0 when bwrap was executed; a negative errno with *ret_problem. All descriptors stay the caller's.
 */
int jail_execute(const JailExec *jail, Holder *holder, char **ret_problem);
