/* SPDX-License-Identifier: MIT */
#include "shim/signals.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>

static const int TAKEN[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH };

int signals_open(int *ret_fd, sigset_t *ret_ignored)
{
	sigset_t taken;
	int fd;

	sigemptyset(&taken);
	sigemptyset(ret_ignored);
	for (size_t i = 0; i < ELEMENTSOF(TAKEN); i++) {
		struct sigaction action;

		/* A blocked signal is queued even when it is ignored. */
		if (sigaction(TAKEN[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
			if (TAKEN[i] == SIGHUP || TAKEN[i] == SIGTSTP)
				continue;
			sigaddset(ret_ignored, TAKEN[i]);
		}
		sigaddset(&taken, TAKEN[i]);
	}
	if (sigprocmask(SIG_SETMASK, &taken, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int signals_read(int fd, bool *ret_key)
{
	struct signalfd_siginfo info;

	do
		if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			return 0;
	while (info.ssi_code == SI_USER && (pid_t)info.ssi_pid == getpid());
	*ret_key = info.ssi_code == SI_KERNEL;
	return (int)info.ssi_signo;
}

void signals_share(int number)
{
	(void)kill(0, number);
}

static void unblock(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* The continuation that ended the stop is not one for the agent. */
static bool forget(int number)
{
	const struct timespec now = { 0 };
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	return sigtimedwait(&one, NULL, &now) == number;
}

bool signals_stop_self(int number)
{
	struct sigaction own = { .sa_handler = SIG_DFL }, inherited;
	sigset_t before, one;

	(void)sigprocmask(SIG_SETMASK, NULL, &before);
	switch (number) {
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		/* An agent that no longer ignores what we both inherited as ignored has stopped. */
		sigemptyset(&one);
		sigaddset(&one, number);
		(void)sigprocmask(SIG_BLOCK, &one, NULL);
		(void)sigaction(number, &own, &inherited);
		(void)kill(0, number);
		unblock(number);
		(void)sigaction(number, &inherited, NULL);
		break;
	default:
		(void)raise(SIGSTOP);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return forget(SIGCONT);
}

void signals_die_by(int number)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	/* A core that goes to a program is not held by that limit (core(5)). */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)signal(number, SIG_DFL);
	unblock(number);
	(void)raise(number);
	_exit(128 + number);
}
