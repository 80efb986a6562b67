/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A session's control group where systemd keeps them: a transient scope in its user's slice
 * (org.freedesktop.systemd1(5), StartTransientUnit; systemd.scope(5)). Asked asynchronously; the process that
 * is to be in it must not start anything before the answer, since systemd moves this one alone.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"

typedef struct ScopeQuery ScopeQuery;

typedef struct ScopePlan {
	const char *group; /* cgroups_plan_scope(): its last part is the unit's name */
	uid_t uid;
	pid_t pid;
	uint64_t memory_max, tasks_max; /* 0: no limit */
} ScopePlan;

/* result: 0 when systemd says that the process is there; -ETIMEDOUT after SCOPE_USEC; others. */
typedef void (*ScopeFunction)(void *userdata, int result, const char *problem);
#define SCOPE_USEC (2 * USEC_PER_SEC)

/* Return: 0 when function will be called once, later, unless the query is cancelled; a negative errno. */
int scope_start(sd_bus *bus, const ScopePlan *plan, ScopeFunction function, void *userdata, ScopeQuery **ret);
ScopeQuery *scope_cancel(ScopeQuery *query);
