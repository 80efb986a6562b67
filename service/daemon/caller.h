/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session takes over from the process that asked for it, and whether that process may have a session
 * at all: a session may give its caller nothing that it lacks. All of it is read from /proc while a pidfd
 * holds the process, and none of it widens: user and groups are the bus's.
 */

#include <sys/resource.h>
#include <sys/types.h>

#include "dbus/base.h"
#include "service/daemon/client.h"
#include "service/link/inherited.h"

typedef struct CallerFacts {
	gid_t gid; /* effective */
	mode_t umask;
	uint64_t bounding_set;    /* capabilities(7), bit n is number n */
	uint64_t ignored_signals; /* bit n - 1: signal n */
	Inherited inherited;
	struct rlimit limits[RLIM_NLIMITS];
	char *oom_score_adj; /* as the kernel writes them, without the line's end */
	char *login_uid;     /* NULL where there is none */
	char *cgroups;       /* what /proc/PID/cgroup says */
	char *cgroup;        /* of cgroup2, from it; NULL where there is none */
	char *selinux;       /* the context to be executed in; NULL: the service's own, or SELinux is off */
	dev_t terminal;      /* its controlling terminal, 0 for none */
} CallerFacts;

void caller_facts_done(CallerFacts *facts);

/*
 * Read the caller. Return: 0; -EPERM with *ret_problem (NestedCaller: the cause and what to do) for a caller
 * that is gone, that lives in other namespaces or another root than the service, or that is confined
 * otherwise than the service; other negative errnos.
 */
int caller_read(const Client *client, CallerFacts *ret, char **ret_problem);

/* Limits with which no session can begin. Return: 0; -ENOBUFS with *ret_problem (cause and fix). */
int caller_check_limits(const struct rlimit limits[static RLIM_NLIMITS], char **ret_problem);
