/* SPDX-License-Identifier: MIT */
#pragma once

/* A process of ours in a jail that runs: from a fork of the session to `verify`. The order is in
 * verify-join.c. */

#include <sys/resource.h>
#include <sys/types.h>

#include "dbus/base.h"
#include "service/plan/mounts.h"

typedef struct VerifyJoin {
	pid_t leader;  /* the jail's init */
	int leader_fd; /* its pidfd */
	const Plan *plan;
	mode_t file_mode_mask;     /* of the agent */
	struct rlimit descriptors; /* likewise, RLIMIT_NOFILE */
	int expectations_fd;       /* sealed */
	int rows_fd;
} VerifyJoin;

typedef enum JoinStage {
	JOIN_STARTED, /* number is the pid of what will be verify: a child of the session's */
	JOIN_PREPARE,
	JOIN_ENTER,
	JOIN_FORK,
	JOIN_DROP,
	JOIN_PROGRAM, /* what lies at verify's place inside is another file than outside: number is 0 */
	JOIN_EXECUTE,
	JOIN_STAGE_MAX,
} JoinStage;

/* What its two processes say, each as one write(2) to a pipe: where the first one is, or what failed there.
 */
typedef struct JoinWord {
	JoinStage stage;
	int32_t number; /* a positive errno, or the pid */
} JoinWord;

/*
 * Begin. *ret_pidfd is the first process, which ends when the second runs; *ret_word_fd what both say, and at
 * its end verify was executed, or it was told why not. Both are the caller's. Return: 0; a negative errno
 * with *ret_problem.
 */
int verify_join(const VerifyJoin *join, int *ret_pidfd, int *ret_word_fd, char **ret_problem);
/* In words: what does not work there. */
const char *join_stage_to_string(JoinStage stage);
