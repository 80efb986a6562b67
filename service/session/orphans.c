/* SPDX-License-Identifier: MIT */
#include "service/session/orphans.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

/* proc(5): the children of the only thread, separated by spaces. */
static void kill_children(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/thread-self/children", "re");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		if (pid > 1)
			(void)kill(pid, SIGKILL);
}

int orphans_end(int timeout_msec)
{
	const struct timespec look_again = { .tv_nsec = 1000000 };
	int64_t end = clock_msec(CLOCK_MONOTONIC) + timeout_msec;
	sigset_t child, before;
	int r = 0;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, &before);
	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);

		if (pid > 0 || (pid < 0 && errno == EINTR))
			continue;
		if (pid < 0)
			break;
		kill_children();
		if (clock_msec(CLOCK_MONOTONIC) > end) {
			r = -ETIMEDOUT;
			break;
		}
		/* Ends early with the SIGCHLD of the next one; the time is for one that became ours
		 * meanwhile. */
		(void)sigtimedwait(&child, NULL, &look_again);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
