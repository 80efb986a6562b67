/* SPDX-License-Identifier: MIT */
#include "service/session/program-output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "service/session/program.h"

#define KILL_MSEC 1000

/* Until its end, which a child of the program could put off as long as it likes. */
static int read_until(int fd, int64_t end_msec, FILE *out)
{
	size_t size = 0;

	for (;;) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		int64_t left = end_msec - clock_msec(CLOCK_MONOTONIC);
		char buffer[4096];
		ssize_t n;
		int r;

		r = left > 0 ? poll(&polled, 1, (int)left) : 0;
		if (r == 0)
			return -ETIME;
		n = r < 0 ? -1 : read(fd, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (ssize_t i = 0; i < n && size < PROGRAM_OUTPUT_MAX; i++, size++)
			if (buffer[i] != '\0')
				(void)putc(buffer[i], out);
	}
}

static int collect(int fd, int timeout_msec, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	r = read_until(fd, clock_msec(CLOCK_MONOTONIC) + timeout_msec, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	if (r == 0)
		*ret = TAKE_PTR(text);
	return r;
}

int program_output(const char *path, const char *option, int timeout_msec, char **ret)
{
	char *const argv[] = { (char *)path, (char *)option, NULL }, *const environment[] = { NULL };
	int pair[2], pidfd, r;
	pid_t parent = getpid(), pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		program_child_reset(parent);
		program_execute(path, argv, environment, FD_NONE, pair[1], pair[1]);
	}
	r = pid < 0 ? -errno : 0;
	(void)close(pair[1]);
	if (r == 0) {
		r = collect(pair[0], timeout_msec, ret);
		pidfd = program_pidfd(pid);
		if (pidfd >= 0) {
			program_destroy(&pidfd, KILL_MSEC);
		} else {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
	}
	(void)close(pair[0]);
	return r;
}
