/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY. The agent in that jail has the same uid as everything here, and is the adversary.
 *
 *  1. Not dumpable: nobody traces the child or reads its memory without rights over the host's user namespace.
 *  2. Dies with the session, before anything else is done.
 *  3. Joins the user namespace that owns the mounts, which gives it rights over them and over nothing outside, then
 *     the mounts. As root, without the first, it would be a process of the initial user namespace inside the jail.
 *  4. Not dumpable, and dies with the session, after each: the kernel forgets both when credentials change (prctl(2)).
 *
 * The pid namespace is joined by verify alone (verify-join.c): no agent can name a child of these.
 */
#include "service/session/jail-join.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/session/program.h"

#define CHILD_MSEC 2000

int jail_enter(int fd, int namespaces)
{
	if (setns(fd, namespaces) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return 0;
}

int jail_mounts_open(pid_t leader)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)leader);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

_noreturn_ static void child_run(pid_t session, int mounts_fd, JailJoined function, void *userdata)
{
	int r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0, owner_fd;

	program_child_reset(session);
	owner_fd = ioctl(mounts_fd, NS_GET_USERNS);
	if (r == 0 && owner_fd < 0)
		r = -errno;
	if (r == 0)
		r = jail_enter(owner_fd, CLONE_NEWUSER);
	if (r == 0)
		r = jail_enter(mounts_fd, CLONE_NEWNS);
	if (r == 0)
		r = function(userdata);
	_exit(-r);
}

int jail_join(int mounts_fd, JailJoined function, void *userdata)
{
	_cleanup_close_ int pidfd = FD_NONE;
	pid_t session = getpid(), pid = fork();
	struct pollfd p = { .events = POLLIN };
	int status = 0;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_run(session, mounts_fd, function, userdata);
	pidfd = program_pidfd(pid);
	p.fd = pidfd;
	if (pidfd < 0 || poll(&p, 1, CHILD_MSEC) <= 0)
		(void)kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ETIMEDOUT;
}
