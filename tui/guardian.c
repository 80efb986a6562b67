/* SPDX-License-Identifier: MIT */
#include "tui/guardian.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

typedef struct Order {
	bool ours;
	struct termios modes;
} Order;

typedef struct Watch {
	int terminal_fd, order_fd, program_fd;
	const struct termios *natural;
	const char *farewell;
	Order order;
} Watch;

static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

static void say(const Watch *watch, const char *text)
{
	size_t n = strlen(text);

	while (n > 0) {
		ssize_t written = write(watch->terminal_fd, text, n);

		if (written < 0 && errno != EINTR)
			return;
		text += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
}

/*
 * What is written is written in any case, since no shell does it. Then the modes: those that are not the
 * program's any more are the shell's own, which was quicker. Its prompt may stand on the screen that is gone
 * now, and nobody but the shell can write it again.
 */
static void give_back(const Watch *watch)
{
	struct termios now;

	say(watch, watch->farewell);
	if (tcgetattr(watch->terminal_fd, &now) < 0)
		return;
	if (same_modes(&now, &watch->order.modes))
		(void)tcsetattr(watch->terminal_fd, TCSANOW, watch->natural);
	else
		say(watch, "claude-sandbox-tui was killed; Enter shows the prompt again\r\n");
}

_noreturn_ static void watch_program(Watch *watch)
{
	struct pollfd fds[] = { { .fd = watch->order_fd, .events = POLLIN },
				{ .fd = watch->program_fd, .events = POLLIN } };
	bool ended = false;

	for (;;) {
		if (poll(fds, ELEMENTSOF(fds), -1) < 0 && errno != EINTR)
			_exit(1);
		/*
		 * What was said before the end counts. Its end of the socket closes before its parent, the
		 * shell, hears that it died: the terminal is as it was before a prompt is written.
		 */
		if (fds[0].revents) {
			Order order;
			ssize_t n = recv(watch->order_fd, &order, sizeof(order), MSG_DONTWAIT);

			if (n == (ssize_t)sizeof(order)) {
				watch->order = order;
				continue;
			}
			ended = n == 0;
		}
		if (ended || fds[1].revents) {
			if (watch->order.ours)
				give_back(watch);
			_exit(0);
		}
	}
}

/* Whatever else is open here, a bus's connection above all, is the program's to close. */
static void close_others(const Watch *watch)
{
	const int kept[] = { watch->terminal_fd, watch->order_fd, watch->program_fd };
	int first = 0;

	for (;;) {
		int next = INT_MAX;

		for (size_t i = 0; i < ELEMENTSOF(kept); i++)
			if (kept[i] >= first && kept[i] < next)
				next = kept[i];
		if (next > first)
			(void)close_range((unsigned)first, (unsigned)next - 1, 0);
		if (next == INT_MAX)
			return;
		first = next + 1;
	}
}

/* Between fork and its end it calls nothing that needs a lock. */
_noreturn_ static void child(Watch *watch)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "tui-guardian", 0, 0, 0);
	close_others(watch);
	watch_program(watch);
}

int guardian_start(Guardian *guardian, int terminal_fd, const struct termios *natural, const char *farewell)
{
	_cleanup_close_ int program_fd = FD_NONE, ours = FD_NONE, its = FD_NONE;
	int pair[2];
	pid_t pid;

	program_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (program_fd < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	its = pair[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		Watch watch = { .terminal_fd = terminal_fd,
				.order_fd = its,
				.program_fd = program_fd,
				.natural = natural,
				.farewell = farewell };

		(void)close(ours);
		child(&watch);
	}
	guardian->pid = pid;
	guardian->order_fd = TAKE_FD(ours);
	return 0;
}

void guardian_tell(const Guardian *guardian, const struct termios *modes)
{
	Order order = { 0 };

	if (guardian->pid <= 0)
		return;
	order.ours = modes != NULL;
	if (modes)
		order.modes = *modes;
	(void)send(guardian->order_fd, &order, sizeof(order), MSG_NOSIGNAL);
}

void guardian_stop(Guardian *guardian)
{
	if (guardian->pid <= 0)
		return;
	(void)kill(guardian->pid, SIGKILL);
	while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guardian->order_fd = close_fd(guardian->order_fd);
	guardian->pid = 0;
}
