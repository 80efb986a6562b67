/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "service/inside/battery.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/measure.h"

/*
 * What an attempt says comes back in memory that both share, so that a child which loses its descriptors, its
 * root or its rights by what it tries can still say it. It is read after the child's end, and bounded.
 */
typedef struct Answer {
	int result;
	bool given;
	char text[];
} Answer;

_noreturn_ static void attempt_child(AttemptFunction function, void *userdata, Answer *answer, size_t size)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* What it starts is killed with it. */
	(void)setpgid(0, 0);
	/* It says nothing to whoever reads the rows, and nobody who got hold of it does. */
	(void)close(STDOUT_FILENO);
	answer->text[0] = '\0';
	answer->result = function(userdata, answer->text, size);
	answer->given = true;
	_exit(0);
}

static void attempt_end(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

int attempt_run(AttemptFunction function, void *userdata, int timeout_msec, char *text, size_t size)
{
	_cleanup_close_ int pid_fd = FD_NONE;
	Answer *answer;
	int status = 0, r;
	pid_t pid;

	text[0] = '\0';
	answer =
		mmap(NULL, sizeof(*answer) + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answer == MAP_FAILED)
		return -EAGAIN;
	pid = fork();
	if (pid == 0)
		attempt_child(function, userdata, answer, size);
	if (pid < 0) {
		(void)munmap(answer, sizeof(*answer) + size);
		return -EAGAIN;
	}
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	r = pid_fd < 0 ? -ETIME : measure_wait(pid, pid_fd, clock_msec(CLOCK_MONOTONIC) + timeout_msec);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	(void)kill(-pid, SIGKILL);
	attempt_end(pid, &status);
	if (r < 0 && pid_fd < 0)
		(void)snprintf(text, size, "its process cannot be watched");
	else if (r == -ECANCELED)
		(void)snprintf(text, size, "somebody stopped its process");
	else if (r < 0)
		(void)snprintf(text, size, "no answer within %d ms", timeout_msec);
	else if (!answer->given && WIFSIGNALED(status)) {
		(void)snprintf(text, size, "died of signal %d", WTERMSIG(status));
		r = -ECHILD;
	} else if (!answer->given) {
		(void)snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
		r = -ECHILD;
	} else {
		r = answer->result;
		(void)snprintf(text, size, "%.*s", (int)strnlen(answer->text, size - 1), answer->text);
	}
	(void)munmap(answer, sizeof(*answer) + size);
	return r;
}
