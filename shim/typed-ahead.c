/* SPDX-License-Identifier: MIT */
#include "shim/typed-ahead.h"

#include <fcntl.h>
#include <poll.h>

/* Each byte may be quoted, and the last line be ended by the end of the file. */
#define READ_MAX ((TYPED_AHEAD_MAX - 2) / 2)

typedef struct TypedAhead {
	const Terminal *terminal;
	cc_t keys[NCCS];
	bool quotes; /* the PTY knows a key that makes the next one a mere character */
	char *bytes; /* TYPED_AHEAD_MAX */
	size_t n;
} TypedAhead;

static bool is_there(int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	return poll(&input, 1, 0) > 0 && input.revents == POLLIN;
}

/* Is it one that line mode or a signal would be made of? The ends of lines are meant as such. */
static bool is_key(const TypedAhead *ahead, char c)
{
	static const int SPECIAL[] = { VINTR,   VQUIT,    VSUSP,  VEOF,   VERASE, VKILL,
				       VWERASE, VREPRINT, VLNEXT, VSTART, VSTOP,  VDISCARD };

	for (size_t i = 0; i < ELEMENTSOF(SPECIAL); i++)
		if (ahead->keys[SPECIAL[i]] != _POSIX_VDISABLE && (cc_t)c == ahead->keys[SPECIAL[i]])
			return true;
	return false;
}

static void append(TypedAhead *ahead, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (ahead->quotes && is_key(ahead, bytes[i]))
			ahead->bytes[ahead->n++] = (char)ahead->keys[VLNEXT];
		ahead->bytes[ahead->n++] = bytes[i];
	}
}

static bool ends_a_line(const TypedAhead *ahead, char c)
{
	return c == '\n' || (c && ((cc_t)c == ahead->keys[VEOL] || (cc_t)c == ahead->keys[VEOL2]));
}

static size_t room(const TypedAhead *ahead)
{
	return (TYPED_AHEAD_MAX - ahead->n) / 2 - 1;
}

/* In line mode each read(2) gives one line; one without its end was ended by the end-of-file key
 * (termios(3)).
 */
static void lines_take(TypedAhead *ahead)
{
	char line[READ_MAX];

	while (room(ahead) > 0 && is_there(ahead->terminal->in_fd)) {
		size_t max = MIN_OF(room(ahead), sizeof(line));
		ssize_t n = read(ahead->terminal->in_fd, line, max);

		if (n < 0 || (n == 0 && terminal_is_gone(ahead->terminal)))
			return;
		append(ahead, line, (size_t)n);
		if ((size_t)n < max && (n == 0 || !ends_a_line(ahead, line[n - 1])))
			ahead->bytes[ahead->n++] = (char)ahead->keys[VEOF];
	}
}

/* The line that is still being typed; only a terminal without line mode gives it out. */
static void rest_take(TypedAhead *ahead)
{
	char rest[READ_MAX];
	int waiting = 0;
	ssize_t n;

	if (ioctl(ahead->terminal->in_fd, FIONREAD, &waiting) < 0 || waiting <= 0)
		return;
	n = read(ahead->terminal->in_fd, rest, MIN_OF(MIN_OF((size_t)waiting, sizeof(rest)), room(ahead)));
	if (n > 0)
		append(ahead, rest, (size_t)n);
}

/*
 * The PTY shows what it gets when a worker of the kernel hands it on, not when it is written: asking whether
 * it can be read there waits for that worker, and a change of modes for the rest (tty(4), n_tty).
 */
static size_t silently_write(const TypedAhead *ahead, int master_fd, const struct termios *modes)
{
	_cleanup_close_ int slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios silent = *modes, now;
	bool is_silent;
	ssize_t n;

	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	is_silent = slave_fd >= 0 && tcsetattr(master_fd, TCSANOW, &silent) == 0;
	do
		n = write(master_fd, ahead->bytes, ahead->n);
	while (n < 0 && errno == EINTR);
	if (is_silent) {
		(void)is_there(slave_fd);
		/* An agent that has set its own meanwhile keeps them. */
		if (tcgetattr(master_fd, &now) == 0 && now.c_lflag == silent.c_lflag) {
			now.c_lflag = modes->c_lflag;
			(void)tcsetattr(master_fd, TCSANOW, &now);
		}
	}
	return n > 0 ? (size_t)n : 0;
}

size_t typed_ahead_claim(Terminal *terminal, int master_fd, char rest[static TYPED_AHEAD_MAX])
{
	TypedAhead ahead = { .terminal = terminal, .bytes = rest };
	struct termios theirs, ours;
	size_t n;

	if (terminal->use != TERMINAL_OURS || terminal->changed || !terminal_is_foreground(terminal) ||
	    tcgetattr(terminal->in_fd, &ours) < 0 || tcgetattr(master_fd, &theirs) < 0 ||
	    !(ours.c_lflag & ICANON) || !(theirs.c_lflag & ICANON) || !(theirs.c_lflag & ECHO)) {
		terminal_claim(terminal, master_fd);
		return 0;
	}

	memcpy(ahead.keys, theirs.c_cc, sizeof(ahead.keys));
	ahead.quotes = (theirs.c_lflag & IEXTEN) && ahead.keys[VLNEXT] != _POSIX_VDISABLE;
	lines_take(&ahead);
	terminal_claim(terminal, master_fd);
	rest_take(&ahead);
	if (ahead.n == 0)
		return 0;
	n = silently_write(&ahead, master_fd, &theirs);
	memmove(rest, rest + n, ahead.n - n);
	return ahead.n - n;
}
