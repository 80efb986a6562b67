/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The control group of one launch, from what is wished to where its process is. With systemd the process
 * waits (spawn.h) until it is in its scope, or, where that fails, in a group of ours; elsewhere it is born in
 * its group.
 */

#include "service/daemon/cgroup.h"
#include "service/daemon/registry.h"
#include "service/daemon/scope.h"

typedef struct SessionGroup {
	Cgroups *cgroups;
	CgroupWish wish;
	char *path;       /* its own group, below the mount point; NULL for none */
	char *caller;     /* wish.caller, owned */
	int directory_fd; /* to be born in, or FD_NONE */
	bool scope;       /* systemd is to make it */
	int wait_fd;      /* the end that the child waits at, or FD_NONE */
	int go_fd;        /* ours */
	ScopeQuery *query;
	/* Of the session, once there is one. */
	Session *session;
	sd_bus *bus;
} SessionGroup;

/*
 * Before the spawn: id is the session's, whose run directory is there and gets the group's path, so that what
 * is in the group is found whenever the service is killed. wish's caller is copied. Return: 0, also without
 * any group; -ENOMEM; another negative errno where the name cannot be written down.
 */
int session_group_begin(Cgroups *cgroups, const CgroupWish *wish, const char *id, SessionGroup **ret);
/* After the spawn: the session takes the group, and its process goes on, now or when systemd has answered. */
void session_group_settle(SessionGroup *group, sd_bus *bus, Session *session);
/* Ends a process that waits still, and a group that no session has taken. Return: NULL. */
SessionGroup *session_group_free(SessionGroup *group);
DEFINE_CLEANUP(SessionGroup, session_group_free)

/*
 * One sentence for each limit that the configuration asks for by name and that cannot be had. memory, tasks:
 * the origin of the setting, or NULL where it is none. Return: 0 or -ENOMEM.
 */
int session_group_warn(Cgroups *cgroups, const CgroupWish *wish, const char *memory, const char *tasks,
		       char ***ret_warnings);
