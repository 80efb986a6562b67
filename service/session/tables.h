/* SPDX-License-Identifier: MIT */
#pragma once

/* The tables that the service asks for, read off what the session made and found. */

#include "dbus/base.h"
#include "service/link/link.h"
#include "service/plan/mounts.h"
#include "service/session/ledger.h"
#include "service/session/network.h"
#include "service/session/ports.h"
#include "service/session/reach.h"

typedef struct TablesSource {
	const Plan *plan; /* NULL before there is one */
	Network *network;
	const Reach *reach; /* NULL before there is one */
	Ledger *ledger;     /* may be NULL */
	const Ports *ports; /* NULL where none cross */
	char *const *warnings;
	int pid_error; /* why the agent has no PID of its own: a positive errno, or 0 */
	bool offline;
	bool root;     /* the caller is root */
	bool resolver; /* names can resolve */
} TablesSource;

/* Return: 0 with rows, to be freed as LinkMessage.rows are; -ENOMEM; -EINPROGRESS for what is
 * not made yet. */
int tables_make(const TablesSource *source, LinkTable table, LinkRow **ret_rows, uint32_t *ret_n);
