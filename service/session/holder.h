/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The holder: a fork that owns the jail's user and network namespace until it becomes bwrap. The session asks
 * it for what can only be done from inside; each exchange is one packet each way with a deadline.
 */

#include <sys/resource.h>
#include <sys/types.h>

#include "dbus/base.h"
#include "service/net/jail-sockets.h"
#include "service/plan/routes.h"

/* Every exchange takes milliseconds; a holder that is silent for so long is taken for dead. */
#define HOLDER_ANSWER_MSEC 5000

typedef struct Holder {
	pid_t pid;
	int pidfd;
	int channel_fd;
	bool entered; /* the namespaces were made, also of a start that failed behind that */
} Holder;

#define HOLDER_INIT ((Holder){ .pidfd = FD_NONE, .channel_fd = FD_NONE })

typedef struct HolderOptions {
	uid_t uid;
	gid_t gid;
	bool jailed;               /* false: a user namespace alone; the network stays the host's */
	const RouteTable *routes;  /* inherited by the fork, for the self-test; NULL when not jailed */
	const char *bwrap;         /* absolute path of what it becomes */
	char *const *arguments;    /* its arguments, argv[0] first */
	struct rlimit descriptors; /* RLIMIT_NOFILE that the agent is to have */
} HolderOptions;

/*
 * Fork, make the namespaces and map uid and gid to themselves. When jailed, *ret_sockets receives what
 * jail_sockets_open() made in there. Return: 0, or a negative errno with *ret_problem, which tells apart why
 * user namespaces are forbidden; nothing is left then. Without a ledger it is 0, with *ret_problem saying
 * why.
 */
int holder_start(Holder *holder, const HolderOptions *options, JailSockets *ret_sockets, char **ret_problem);
/* Kill, reap, close. */
void holder_done(Holder *holder);

/* self_test_run() inside. Return: as that, with *ret_problem. */
int holder_self_test(Holder *holder, char **ret_problem);
/* Close its copy of the tap's descriptor. */
int holder_close_tap(Holder *holder, char **ret_problem);
/*
 * Begin to try what bwrap will do for a private /proc: new user, mount and pid namespaces, then mount it. When
 * *ret_fd is readable, holder_proc_outcome() knows. Return: 0, or a negative errno with *ret_problem.
 */
int holder_try_proc(Holder *holder, int *ret_fd, char **ret_problem);
/* Return: 0 when a private /proc can be mounted; the negative errno of the attempt; -EIO when it ended without one. */
int holder_proc_outcome(int fd);

/*
 * Become bwrap: hand over n descriptors, which will have the numbers of places (above 2 but for
 * STDERR_FILENO, below HOLDER_PLACE_MAX, each once); 0 and 1 become /dev/null; everything else is closed;
 * setsid(2); execve(2) with an empty environment. What has the place HOLDER_PLACE_ANCHORS is not handed on:
 * the text of anchors_list(), sealed, by which anchors_make() is called first. Return: 0 when bwrap was
 * executed; a negative errno with *ret_problem.
 */
#define HOLDER_PLACE_MAX 256
#define HOLDER_PLACE_ANCHORS 23
int holder_execute(Holder *holder, const int *fds, const int *places, size_t n, char **ret_problem);
