/* SPDX-License-Identifier: MIT */
#include "tests/bench/child.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "dbus/base.h"

#define SILENCE_MSEC 30000

_noreturn_ void die(const char *what, int error)
{
	(void)fprintf(stderr, "bench: %s%s%s\n", what, error ? ": " : "", error ? strerror(error) : "");
	exit(1);
}

uint64_t now_nsec(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

_noreturn_ static void child_run(char *const *command, int fd, bool terminal)
{
	extern char **environ;

	if (setsid() < 0 || (terminal && ioctl(fd, TIOCSCTTY, 0) < 0) || dup2(fd, STDIN_FILENO) < 0 ||
	    dup2(fd, STDOUT_FILENO) < 0 || (terminal && dup2(fd, STDERR_FILENO) < 0))
		_exit(126);
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	(void)execve(command[0], command, environ);
	_exit(127);
}

void child_start(Child *child, char *const *command, bool terminal)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int fd = FD_NONE;

	*child = (Child){ .pidfd = FD_NONE, .master_fd = FD_NONE };
	if (terminal) {
		if (openpty(&child->master_fd, &fd, NULL, NULL, &size) < 0)
			die("no terminal", errno);
	} else {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			die("/dev/null", errno);
	}
	child->pid = fork();
	if (child->pid == 0)
		child_run(command, fd, terminal);
	if (child->pid < 0)
		die("no process", errno);
	(void)close(fd);
	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0)
		die("pidfd_open", errno);
}

void child_finish(Child *child, const char *name)
{
	int status;

	if (waitpid(child->pid, &status, 0) < 0)
		die(name, errno);
	close_fdp(&child->pidfd);
	close_fdp(&child->master_fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	(void)fprintf(stderr, "bench: %s ended with %s %d\n", name, WIFEXITED(status) ? "status" : "signal",
		      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	exit(1);
}

void child_wait(Child *child, const char *name)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = child->pidfd, .events = POLLIN },
					{ .fd = child->master_fd, .events = POLLIN } };
		char buffer[4096];

		if (poll(fds, ELEMENTSOF(fds), SILENCE_MSEC) <= 0)
			die(name, ETIMEDOUT);
		if (fds[0].revents)
			break;
		if (fds[1].revents && read(child->master_fd, buffer, sizeof(buffer)) <= 0)
			close_fdp(&child->master_fd);
	}
	child_finish(child, name);
}
