/* SPDX-License-Identifier: MIT */
#include "shim/secret.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>

/* What ends or stops a program that asks at a terminal. SIGTTIN and SIGTTOU stay: in the background we stop
 * before we touch the terminal's modes. */
static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP };

#define ROOM (SECRET_MOST + 3) /* a line end, and one byte more to see what is too long */

char *secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
	return NULL;
}

int secret_check(const char *bytes, size_t n, char **ret, char **reterr)
{
	if (n > 0 && bytes[n - 1] == '\n')
		n--;
	if (n > 0 && bytes[n - 1] == '\r')
		n--;
	if (n == 0)
		return refuse(reterr, -EINVAL,
			      "no token came; type or paste it, or hand it over on standard input");
	if (n > SECRET_MOST)
		return refuse(reterr, -EINVAL, "more than %u bytes came; hand the token alone over",
			      SECRET_MOST);
	for (size_t i = 0; i < n; i++)
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return refuse(
				reterr, -EINVAL,
				"what came is no token: it has a blank, a line break or a byte that is no "
				"printable ASCII; hand the token alone over");
	*ret = strndup(bytes, n);
	return *ret ? 0 : refuse(reterr, -ENOMEM, "not enough memory");
}

static int say(int fd, const char *text)
{
	size_t n = strlen(text);

	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

static void say_at_terminal(int fd, const char *text)
{
	/* It may have been opened to be read alone. */
	if (say(fd, text) < 0)
		(void)say(STDERR_FILENO, text);
}

/*
 * Return: 0 at the end of the line or of the input, *n bytes; the number of a signal that came; a negative
 * errno.
 */
static int read_line(int fd, int signal_fd, char *bytes, size_t *n)
{
	struct pollfd polls[] = { { .fd = signal_fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	for (*n = 0; *n < ROOM;) {
		struct signalfd_siginfo info;
		ssize_t got;

		if (poll(polls, ELEMENTSOF(polls), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (polls[0].revents) {
			if (read(signal_fd, &info, sizeof(info)) == sizeof(info))
				return (int)info.ssi_signo;
			continue;
		}
		got = read(fd, bytes + *n, ROOM - *n);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		*n += (size_t)got;
		if (bytes[*n - 1] == '\n')
			return 0;
	}
	return 0;
}

static int set_modes(int fd, const struct termios *modes)
{
	int r;

	do
		r = tcsetattr(fd, TCSAFLUSH, modes);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* One attempt, with the signals held back. Return as read_line(). */
static int ask_once(int fd, int signal_fd, const char *prompt, char *bytes, size_t *n)
{
	struct termios saved, silent;
	int r;

	if (tcgetattr(fd, &saved) < 0)
		return -errno;
	silent = saved;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	silent.c_lflag |= ICANON | ISIG;
	r = set_modes(fd, &silent);
	if (r < 0)
		return r;
	say_at_terminal(fd, prompt);
	r = read_line(fd, signal_fd, bytes, n);
	(void)set_modes(fd, &saved);
	say_at_terminal(fd, "\n");
	return r;
}

static int ask(int fd, const char *prompt, char *bytes, size_t *n)
{
	_cleanup_close_ int signal_fd = FD_NONE;
	sigset_t held, before;
	int r;

	(void)sigemptyset(&held);
	for (size_t i = 0; i < ELEMENTSOF(signals); i++)
		(void)sigaddset(&held, signals[i]);
	signal_fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return -errno;
	do {
		(void)sigprocmask(SIG_BLOCK, &held, &before);
		r = ask_once(fd, signal_fd, prompt, bytes, n);
		/* The signal does its own work, with the terminal as it was; what is ignored does none. */
		if (r > 0)
			(void)raise(r);
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
	} while (r > 0);
	return r;
}

static int read_all(int fd, char *bytes, size_t *n)
{
	for (*n = 0; *n < ROOM;) {
		ssize_t got = read(fd, bytes + *n, ROOM - *n);

		if (got < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1);
		else if (got < 0 && errno != EINTR)
			return -errno;
		else if (got == 0)
			return 0;
		else if (got > 0)
			*n += (size_t)got;
	}
	return 0;
}

int secret_read(int fd, const char *prompt, char **ret, char **reterr)
{
	char *bytes = malloc(ROOM);
	size_t n = 0;
	int r;

	if (!bytes)
		return refuse(reterr, -ENOMEM, "not enough memory");
	r = isatty(fd) ? ask(fd, prompt, bytes, &n) : read_all(fd, bytes, &n);
	r = r < 0 ? refuse(reterr, r,
			   "the token cannot be read (%s); type it at a terminal, or hand it over on "
			   "standard input",
			   strerrordesc_np(-r))
		  : secret_check(bytes, n, ret, reterr);
	explicit_bzero(bytes, ROOM);
	free(bytes);
	return r;
}
