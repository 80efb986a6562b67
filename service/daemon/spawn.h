/* SPDX-License-Identifier: MIT */
#pragma once

/* Starting `session` under the identity of its caller. */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/daemon/caller.h"
#include "service/daemon/request.h"

typedef struct SpawnPlan {
	const char *program; /* CS_SESSION_PATH; another one in tests */
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t n_groups;
	const CallerFacts *facts;
	const LaunchRequest *request;
	int link_fd, request_fd, lifeline_fd, guard_fd, state_fd;
	int cgroup_fd; /* the group's directory, or FD_NONE */
	/*
	 * Or the child waits for a line at wait_fd (FD_NONE: it does not), until which it starts nothing: the
	 * directory of the group in which it has been put, empty for none. go_fd is our end, which it closes.
	 */
	int wait_fd, go_fd;
	const char *group_directory; /* without wait_fd: of cgroup_fd, or NULL */
} SpawnPlan;

/* Where the child failed before it was `session`. In the order in which it passes them. */
typedef enum SpawnStage {
	SPAWN_STAGE_CGROUP,
	SPAWN_STAGE_SESSION,     /* setsid(2) */
	SPAWN_STAGE_DIRECTORY,   /* chdir(2) to "/" */
	SPAWN_STAGE_PRIORITY,    /* oom_score_adj */
	SPAWN_STAGE_DESCRIPTORS, /* placing them */
	SPAWN_STAGE_LIMITS,      /* setrlimit(2) */
	SPAWN_STAGE_IDENTITY,    /* groups, gid, uid */
	SPAWN_STAGE_KEYRING,     /* keyctl(2) */
	SPAWN_STAGE_DESCRIPTOR,  /* error is the key of Launch whose file system may not be passed */
	SPAWN_STAGE_SELINUX,     /* the caller's context */
	SPAWN_STAGE_EXECUTE,
	SPAWN_STAGE_MAX,
} SpawnStage;

/*
 * Fork and execute. *ret_pidfd holds the child, *ret_listening_fd is the pipe's end that closes when the
 * session listens (non-blocking). Both O_CLOEXEC. Return: 0 or a negative errno of the service's own side.
 */
int spawn_session(const SpawnPlan *plan, pid_t *ret_pid, int *ret_pidfd, int *ret_listening_fd);

/*
 * Read what is in the pipe. Return: 1 for its end (the session listens, or is gone), 0 when nothing has come
 * yet, -ECANCELED with *ret_problem when the child failed or wrote what it should not.
 */
int spawn_read_pipe(int listening_fd, char **ret_problem);

/* A sealed, read-only memfd with these bytes (memfd_create(2)). Return: a descriptor or a negative errno. */
int sealed_memfd(const char *name, const void *data, size_t size);
