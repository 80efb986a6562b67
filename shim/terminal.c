/* SPDX-License-Identifier: MIT */
#include "shim/terminal.h"

#include <fcntl.h>
#include <signal.h>

static int open_anew(int fd, int access_mode)
{
	char path[64];
	int anew;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	anew = open(path, access_mode | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (anew >= 0)
		return anew;
	/* A terminal of another user (after su) opens by its name in our session only. */
	if (tcgetsid(fd) == getsid(0))
		anew = open("/dev/tty", access_mode | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return anew < 0 ? -errno : anew;
}

int terminal_open(const Streams *streams, Terminal *ret)
{
	Terminal terminal = TERMINAL_INIT;

	if (streams->use == TERMINAL_NONE) {
		*ret = terminal;
		return 0;
	}

	terminal.use = streams->use;
	terminal.in_fd = open_anew(streams->in, O_RDWR);
	terminal.out_fd = open_anew(streams->out, O_WRONLY);
	if (terminal.in_fd < 0 || terminal.out_fd < 0) {
		close_fd(terminal.in_fd);
		close_fd(terminal.out_fd);
		terminal.blocking = true;
		terminal.in_fd = fcntl(streams->in, F_DUPFD_CLOEXEC, STREAMS_N);
		terminal.out_fd = fcntl(streams->out, F_DUPFD_CLOEXEC, STREAMS_N);
		if (terminal.in_fd < 0 || terminal.out_fd < 0) {
			int error = -errno;
			terminal_done(&terminal);
			return error;
		}
	}
	if (tcgetattr(terminal.in_fd, &terminal.saved) < 0) {
		int error = -errno;
		terminal_done(&terminal);
		return error;
	}

	*ret = terminal;
	return 0;
}

void terminal_done(Terminal *terminal)
{
	close_fd(terminal->in_fd);
	close_fd(terminal->out_fd);
	*terminal = TERMINAL_INIT;
}

/* Return: 0 or a negative errno. */
static int open_pty(int *ret_master_fd, int *ret_slave_fd)
{
	_cleanup_close_ int master_fd = FD_NONE, slave_fd = FD_NONE;

	master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master_fd < 0 || unlockpt(master_fd) < 0)
		return -errno;
	/* By the master, not by a name: whatever is mounted at /dev/pts (ioctl_tty(2)). */
	slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0)
		return -errno;
	*ret_master_fd = TAKE_FD(master_fd);
	*ret_slave_fd = TAKE_FD(slave_fd);
	return 0;
}

/*
 * The number of a terminal as the kernel has it (TIOCGDEV; of /dev/tty, what it stands for). Return: 0 for
 * none, or what cannot be told.
 */
static unsigned device_number(int fd)
{
	unsigned number = 0;

	return fd >= 0 && ioctl(fd, TIOCGDEV, &number) == 0 ? number : 0;
}

/*
 * Each mount of a devpts(5) numbers its terminals from 0, so one that came from elsewhere (nsenter(1), a
 * container's console) may have the number of the new one. The service knows the caller's terminal by the
 * number alone and must refuse what looks like it: then the next one is taken, while the first is still open.
 */
static int open_distinct_pty(int *ret_master_fd, int *ret_slave_fd)
{
	_cleanup_close_ int own_fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	_cleanup_close_ int master_fd = FD_NONE, slave_fd = FD_NONE;
	unsigned own = device_number(own_fd);
	int r;

	r = open_pty(&master_fd, &slave_fd);
	if (r < 0)
		return r;
	if (own != 0 && device_number(slave_fd) == own)
		return open_pty(ret_master_fd, ret_slave_fd);
	*ret_master_fd = TAKE_FD(master_fd);
	*ret_slave_fd = TAKE_FD(slave_fd);
	return 0;
}

int terminal_make_pty(Terminal *terminal, int *ret_master_fd, int *ret_slave_fd)
{
	_cleanup_close_ int master_fd = FD_NONE, slave_fd = FD_NONE;
	int r;

	r = open_distinct_pty(&master_fd, &slave_fd);
	if (r < 0)
		return r;
	if (tcsetattr(master_fd, TCSANOW, &terminal->saved) < 0)
		return -errno;
	terminal->given = terminal->saved;
	(void)terminal_copy_size(terminal, master_fd);

	*ret_master_fd = TAKE_FD(master_fd);
	*ret_slave_fd = TAKE_FD(slave_fd);
	return 0;
}

bool terminal_is_foreground(const Terminal *terminal)
{
	pid_t group = tcgetpgrp(terminal->in_fd);

	return group < 0 || group == getpgrp();
}

bool terminal_is_gone(const Terminal *terminal)
{
	struct termios modes;

	return tcgetattr(terminal->in_fd, &modes) < 0 && errno == EIO;
}

bool terminal_pty_is_taken(const Terminal *terminal, int master_fd)
{
	struct termios modes;

	return tcgetattr(master_fd, &modes) == 0 &&
	       (!(modes.c_lflag & ICANON) || ((modes.c_lflag ^ terminal->given.c_lflag) & ECHO));
}

static bool modes_are_equal(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag;
}

bool terminal_makes_returns(const Terminal *terminal)
{
	struct termios modes;

	if (terminal->changed && terminal->use == TERMINAL_OURS)
		return false;
	return tcgetattr(terminal->out_fd, &modes) == 0 && (modes.c_oflag & OPOST) && (modes.c_oflag & ONLCR);
}

static void modes_apply(Terminal *terminal, int master_fd)
{
	struct termios raw, theirs;

	if (terminal->changed && terminal->use == TERMINAL_OURS)
		return;
	/* A shell or stty(1) may have set others since the last time. */
	if (!terminal->changed && tcgetattr(terminal->in_fd, &terminal->saved) < 0)
		return;

	raw = terminal->saved;
	cfmakeraw(&raw);
	if (terminal->use != TERMINAL_OURS && tcgetattr(master_fd, &theirs) == 0)
		raw.c_oflag = theirs.c_oflag;
	if (terminal->changed && modes_are_equal(&raw, &terminal->applied))
		return;
	if (tcsetattr(terminal->in_fd, TCSANOW, &raw) < 0)
		return;
	terminal->changed = true;
	terminal->applied = raw;
}

/* Somebody asks for a password or shows pages: shells hand out terminals with line mode and echo. */
static bool is_taken_by_others(const Terminal *terminal)
{
	struct termios modes;

	return tcgetattr(terminal->in_fd, &modes) < 0 || !(modes.c_lflag & ICANON) || !(modes.c_lflag & ECHO);
}

bool terminal_keys_are_ours(const Terminal *terminal, int master_fd)
{
	struct termios now;

	if (!terminal_is_foreground(terminal))
		return false;
	if (terminal->use == TERMINAL_OURS)
		return true;
	return terminal->changed && terminal_pty_is_taken(terminal, master_fd) &&
	       tcgetattr(terminal->in_fd, &now) == 0 && modes_are_equal(&now, &terminal->applied);
}

void terminal_claim(Terminal *terminal, int master_fd)
{
	if (terminal->use == TERMINAL_NONE || !terminal_is_foreground(terminal))
		return;
	if (terminal->use != TERMINAL_OURS) {
		terminal_revisit(terminal);
		if (!terminal->changed && is_taken_by_others(terminal))
			return;
	}
	if (terminal->use == TERMINAL_OURS || terminal_pty_is_taken(terminal, master_fd))
		modes_apply(terminal, master_fd);
	else
		terminal_release(terminal, false);
}

void terminal_revisit(Terminal *terminal)
{
	struct termios now;

	if (!terminal->changed)
		return;
	if (!terminal_is_foreground(terminal) || tcgetattr(terminal->in_fd, &now) < 0 ||
	    !modes_are_equal(&now, &terminal->applied))
		terminal->changed = false;
}

void terminal_release(Terminal *terminal, bool flush)
{
	sigset_t output, before;
	struct termios now;

	if (!terminal->changed)
		return;
	terminal->changed = false;
	if (!terminal_is_foreground(terminal) &&
	    (tcgetattr(terminal->in_fd, &now) < 0 || !modes_are_equal(&now, &terminal->applied)))
		return;

	/* Giving back must work from the background too, where only a blocked SIGTTOU lets it (tcsetattr(3)).
	 */
	sigemptyset(&output);
	sigaddset(&output, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &output, &before);
	/* Output is written already, and waiting for a terminal that is paused would be for ever: no
	 * TCSADRAIN. */
	if (flush)
		(void)tcflush(terminal->in_fd, TCIFLUSH);
	(void)tcsetattr(terminal->in_fd, TCSANOW, &terminal->saved);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

bool terminal_copy_size(const Terminal *terminal, int master_fd)
{
	struct winsize ours, theirs;

	if (ioctl(terminal->out_fd, TIOCGWINSZ, &ours) < 0 || ioctl(master_fd, TIOCGWINSZ, &theirs) < 0)
		return false;
	if (memcmp(&ours, &theirs, sizeof(ours)) == 0)
		return false;
	return ioctl(master_fd, TIOCSWINSZ, &ours) == 0;
}
