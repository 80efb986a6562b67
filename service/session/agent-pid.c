/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY, although the agent does not run yet: init waits for the session's word, which comes after
 * the end of both processes.
 *
 * The session:
 *  1. opens the PID namespace of init, and the user namespace that owns it, by descriptor, and then sees that
 *     init still lives: the number of one that ended could be another process's by now.
 * The first process, a fork of the session:
 *  2. joins that user namespace, in which it has all capabilities, and then the PID namespace, which needs
 *     them. It stays outside the jail's other namespaces, and shows nothing: it is not dumpable.
 * The second process, in the PID namespace, because only a child is:
 *  3. writes the last PID that was given away. The kernel takes the PID namespace of the writer, not that of the
 *     procfs, so the session's own /proc serves (pid_namespaces(7), ns_last_pid).
 */
#include "service/session/agent-pid.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "service/session/program.h"

#define LAST_PID "/proc/sys/kernel/ns_last_pid"
#define END_MSEC 2000 /* after SIGKILL */

struct AgentPid {
	AgentPidDone done;
	void *userdata;
	int pidfd;
	sd_event_source *source;
};

static int last_pid_write(pid_t last)
{
	_cleanup_close_ int fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return dprintf(fd, "%d", last) < 0 ? errno : 0;
}

_noreturn_ static void first_process(int user_fd, int pid_fd, pid_t number, pid_t session)
{
	int status;
	pid_t pid;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setns(user_fd, CLONE_NEWUSER) < 0 ||
	    setns(pid_fd, CLONE_NEWPID) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		_exit(errno);
	/* The kernel forgets the parent-death signal when credentials change. */
	program_child_reset(session);
	pid = fork();
	if (pid < 0)
		_exit(errno);
	if (pid == 0)
		_exit(last_pid_write(number - 1));
	if (waitpid(pid, &status, 0) < 0)
		_exit(errno);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
}

/* Return: 0 with two descriptors, or a negative errno. */
static int namespaces_open(pid_t leader, int leader_fd, int *ret_user_fd, int *ret_pid_fd)
{
	_cleanup_close_ int pid_fd = FD_NONE, user_fd = FD_NONE;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", leader);
	pid_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pid_fd < 0)
		return -errno;
	user_fd = ioctl(pid_fd, NS_GET_USERNS);
	if (user_fd < 0)
		return -errno;
	r = program_signal(leader_fd, 0);
	if (r < 0)
		return r;
	*ret_user_fd = TAKE_FD(user_fd);
	*ret_pid_fd = TAKE_FD(pid_fd);
	return 0;
}

static int on_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	AgentPid *agent = userdata;
	int status = 0, r = program_reap(fd, &status);

	if (r == 0)
		return 0;
	agent->source = sd_event_source_disable_unref(agent->source);
	agent->pidfd = close_fd(agent->pidfd);
	agent->done(agent->userdata, r < 0 ? -r : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
	return 0;
}

int agent_pid_start(sd_event *event, pid_t leader, int leader_fd, pid_t number, AgentPidDone done,
		    void *userdata, AgentPid **ret)
{
	_cleanup_close_ int user_fd = FD_NONE, pid_fd = FD_NONE;
	_cleanup_(agent_pid_freep) AgentPid *agent = NULL;
	const pid_t session = getpid();
	pid_t pid;
	int r;

	r = namespaces_open(leader, leader_fd, &user_fd, &pid_fd);
	if (r < 0)
		return r;
	agent = malloc(sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	*agent = (AgentPid){ .done = done, .userdata = userdata, .pidfd = FD_NONE };
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		first_process(user_fd, pid_fd, number, session);
	agent->pidfd = program_pidfd(pid);
	if (agent->pidfd < 0) {
		r = agent->pidfd;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	r = sd_event_add_io(event, &agent->source, agent->pidfd, EPOLLIN, on_ended, agent);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(agent);
	return 0;
}

AgentPid *agent_pid_free(AgentPid *agent)
{
	if (!agent)
		return NULL;
	(void)sd_event_source_disable_unref(agent->source);
	program_destroy(&agent->pidfd, END_MSEC);
	free(agent);
	return NULL;
}
