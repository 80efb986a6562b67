/* SPDX-License-Identifier: MIT */

/*
 * Does at a terminal what agents do, one habit for each verb, and says what it sees: the tests of conformance
 * run it natively and jailed and compare. It waits for events only.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[>1u\x1b[?2004h\x1b[?1004h\x1b[?1000h\x1b[?1006h\x1b[>4;2m\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[>4m\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[?1049l"

static struct termios sane;
static FILE *notes;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char text[4096];
	va_list arguments;
	size_t at = 0;

	va_start(arguments, format);
	int n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	while (n > 0 && at < (size_t)n) {
		ssize_t done = write(STDOUT_FILENO, text + at, (size_t)n - at);
		if (done < 0 && errno != EINTR)
			return;
		at += done > 0 ? (size_t)done : 0;
	}
}

/* What must not be mixed with the terminal's own bytes goes to a file. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (notes) {
		(void)vfprintf(notes, format, arguments);
		(void)fflush(notes);
	}
	va_end(arguments);
}

static void note_status_line(const char *name)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			note("%s", line);
	if (f)
		fclose(f);
}

static void note_modes(const char *name, int fd)
{
	struct termios t;
	struct winsize size = { 0 };

	if (tcgetattr(fd, &t) < 0)
		return;
	(void)ioctl(fd, TIOCGWINSZ, &size);
	note("%s iflag=%o oflag=%o cflag=%o lflag=%o speed=%u/%u size=%ux%u/%ux%u cc=", name, t.c_iflag,
	     t.c_oflag, t.c_cflag, t.c_lflag, cfgetispeed(&t), cfgetospeed(&t), size.ws_row, size.ws_col,
	     size.ws_xpixel, size.ws_ypixel);
	for (unsigned i = 0; i < NCCS; i++)
		note("%02x", t.c_cc[i]);
	note("\n");
}

/* Everything about the descriptors and the terminal that a program can ask. */
static int look(void)
{
	int before[3];

	for (int fd = 0; fd < 3; fd++)
		before[fd] = fcntl(fd, F_GETFL);
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	for (int fd = 0; fd < 3; fd++) {
		struct stat here, there;
		const char *name = isatty(fd) ? ttyname(fd) : NULL;

		if (before[fd] < 0) {
			note("%d closed\n", fd);
			continue;
		}
		(void)fstat(fd, &here);
		note("%d %s access=%d append=%d nonblock=%d type=%o", fd, isatty(fd) ? "terminal" : "other",
		     before[fd] & O_ACCMODE, !!(before[fd] & O_APPEND), !!(before[fd] & O_NONBLOCK),
		     here.st_mode & S_IFMT);
		if (isatty(fd)) {
			note(" named=%d", name && stat(name, &there) == 0 && there.st_rdev == here.st_rdev);
			note(" owned=%d", here.st_uid == getuid());
			note(" session=%d foreground=%d", tcgetsid(fd) == getsid(0),
			     tcgetpgrp(fd) == getpgrp());
			int again = name ? open(name, O_RDWR | O_CLOEXEC | O_NOCTTY) : -1;
			note(" reopens=%d", again >= 0 && isatty(again));
			if (again >= 0)
				close(again);
		}
		note("\n");
		note_modes("modes", fd);
	}
	note("tty=%d\n", tty >= 0);
	note("leads-session=%d leads-group=%d\n", getsid(0) == getpid(), getpgrp() == getpid());
	for (int fd = 3; fd < 256; fd++)
		if (fd != tty && fd != fileno(notes) && fcntl(fd, F_GETFD) >= 0)
			note("open %d\n", fd);
	note_status_line("SigBlk");
	note_status_line("SigIgn");
	note_status_line("SigPnd");
	note("umask=%o\n", umask(0));
	return 0;
}

static int signals_open(const char *names)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	for (const char *p = names; *p; p++) {
		static const char keys[] = "itqh12z";
		static const int numbers[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP };
		const char *at = strchr(keys, *p);
		if (at)
			sigaddset(&set, numbers[at - keys]);
	}
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int signal_take(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

static void size_say(const char *word)
{
	struct winsize size = { 0 };

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	say("%s %ux%u.", word, size.ws_row, size.ws_col);
}

static void raw_enter(void)
{
	struct termios raw = sane;

	cfmakeraw(&raw);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	say(ENTER);
}

static void raw_leave(void)
{
	say(LEAVE);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &sane);
}

static void key_act(unsigned char key)
{
	static bool asked;

	if (asked) {
		say("key %02x.", key);
		asked = key != '.';
		if (!asked)
			say("answered.");
		return;
	}
	switch (key) {
	case 0x1a: /* as agents do it: the terminal restored, a word, then the whole group stops */
		raw_leave();
		say("suspended\r\n");
		(void)kill(0, SIGTSTP);
		raw_enter();
		size_say("resumed");
		break;
	case 's': /* as no agent should */
		(void)raise(SIGSTOP);
		size_say("continued");
		break;
	case 't':
		(void)raise(SIGTSTP);
		size_say("continued");
		break;
	case 'q':
		raw_leave();
		exit(0);
	case 'e':
		exit(3);
	case 'k':
		(void)raise(SIGKILL);
		break;
	case '?':
		say("\x1b[c\x1b[>0q\x1b[?u\x1b[6n\x1b]11;?\x1b\\asked.");
		asked = true;
		break;
	case '!': /* asks, and does not wait for the answer */
		say("\x1b[c\x1b[6n");
		raw_leave();
		exit(0);
	default:
		say("key %02x.", key);
	}
}

/* A full-screen agent. */
static int screen(void)
{
	int fd = signals_open("t");
	struct pollfd polls[] = { { .fd = 0, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	if (tcgetattr(STDIN_FILENO, &sane) < 0)
		return 99;
	raw_enter();
	size_say("ready");
	for (;;) {
		unsigned char keys[64];

		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return 98;
		if (polls[1].revents & POLLIN) {
			int number = signal_take(fd);
			note("signal %d\n", number);
			if (number == SIGWINCH)
				size_say("size");
			if (number == SIGTERM) {
				raw_leave();
				return 128 + SIGTERM;
			}
		}
		if (polls[0].revents) {
			ssize_t n = read(0, keys, sizeof(keys));
			if (n <= 0)
				return 97;
			for (ssize_t i = 0; i < n; i++)
				key_act(keys[i]);
		}
	}
}

/* A line-mode agent that hears the signals named by letters. */
static int lines(const char *names)
{
	int fd = signals_open(names);
	struct pollfd polls[] = { { .fd = 0, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	size_say("ready");
	say("\n");
	for (;;) {
		char line[4097];

		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return 98;
		if (polls[1].revents & POLLIN) {
			int number = signal_take(fd);
			note("signal %d\n", number);
			if (number == SIGCONT)
				say("continued\n");
			else if (number != SIGWINCH)
				say("got %d\n", number);
			continue;
		}
		if (polls[0].revents) {
			ssize_t n = read(0, line, sizeof(line) - 1);
			if (n <= 0) {
				say("end %d\n", n < 0 ? errno : 0);
				return n < 0 ? 5 : 0;
			}
			line[n] = 0;
			if (line[0] == 'x')
				return atoi(line + 1);
			say("line %zd %.40s", n, line);
		}
	}
}

/* Two processes of one group, and who of them hears what. */
static int family(const char *names)
{
	int ready[2];
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return 99;
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
	}
	const char *who = child == 0 ? "child" : "parent";
	int fd = signals_open(names);

	if (child == 0)
		(void)!write(ready[1], "", 1);
	else {
		(void)!read(ready[0], &c, 1);
		say("ready\n");
	}
	struct pollfd polls[] = { { .fd = child ? 0 : -1, .events = POLLIN },
				  { .fd = fd, .events = POLLIN } };
	for (;;) {
		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return 98;
		if (polls[1].revents & POLLIN) {
			int number = signal_take(fd);
			note("%s %d\n", who, number);
			if (number != SIGCONT)
				say("%s %d\n", who, number);
			continue;
		}
		if (polls[0].revents) {
			if (read(0, &c, 1) > 0 && c != 'x')
				continue;
			(void)kill(child, SIGKILL);
			(void)waitpid(child, NULL, 0);
			return 0;
		}
	}
}

/* Hears everything until its input ends: numbers in the order of arrival, as the exit status how many. */
static int hear(bool obey)
{
	sigset_t all;
	int count = 0;

	sigfillset(&all);
	sigdelset(&all, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	int fd = signalfd(-1, &all, SFD_CLOEXEC);
	say("ready\n");
	struct pollfd polls[] = { { .fd = 0, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	for (;;) {
		char c;

		if (poll(polls, 2, -1) < 0)
			return 98;
		if (polls[1].revents & POLLIN) {
			int number = signal_take(fd);
			note("signal %d\n", number);
			count++;
			say("got %d\n", number);
			if (obey && number == SIGHUP)
				return 7;
		}
		if (polls[0].revents) {
			if (read(0, &c, 1) > 0) {
				if (c == 'x')
					return count;
				continue;
			}
			if (!isatty(0) && errno != EIO)
				return count;
			note("input ended\n");
			polls[0].fd = -1;
		}
	}
}

static int flood(size_t n)
{
	for (size_t i = 0; i < n; i++)
		say("%08zu the quick brown fox jumps over the lazy dog, and then it does it again\n", i);
	return 0;
}

/* A tool in a session of its own, as agents start them; what it says goes through its parent. */
static int tool(void)
{
	int ends[2], status;
	char text[256];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 99;
	pid_t child = fork();
	if (child == 0) {
		(void)setsid();
		int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
		dprintf(ends[1], "tty=%s stdin=%d leader=%d\n", tty < 0 ? strerrorname_np(errno) : "open",
			isatty(0), getsid(0) == getpid());
		_exit(4);
	}
	close(ends[1]);
	(void)waitpid(child, &status, 0);
	ssize_t n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	say("%stool status %d\n", text, WEXITSTATUS(status));
	return 0;
}

/* Something stays behind with the terminal in its hands, for a while. */
static int leave_behind(void)
{
	if (fork() == 0) {
		(void)signal(SIGHUP, SIG_IGN);
		(void)alarm(2);
		for (;;)
			(void)pause();
	}
	say("parent is done");
	return 6;
}

/* The terminal's modes as the agent changes them, and how it leaves them. */
static int change_modes(const char *how)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t) < 0)
		return 99;
	for (; *how; how++) {
		switch (*how) {
		case 'e':
			t.c_lflag &= ~(tcflag_t)ECHO;
			break;
		case 'i':
			t.c_lflag &= ~(tcflag_t)ISIG;
			break;
		case 'c':
			t.c_lflag &= ~(tcflag_t)ICANON;
			break;
		case 'o':
			t.c_oflag &= ~(tcflag_t)OPOST;
			break;
		case 'n':
			t.c_iflag &= ~(tcflag_t)ICRNL;
			break;
		case 'x':
			t.c_iflag &= ~(tcflag_t)IXON;
			break;
		default:
			break;
		}
	}
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
	note_modes("set", STDIN_FILENO);
	say("set\n");
	char text[64];
	ssize_t n = read(0, text, sizeof(text));
	say("read %zd:", n);
	for (ssize_t i = 0; i < n; i++)
		say(" %02x", (unsigned char)text[i]);
	say("\n");
	return 0;
}

static int read_some(size_t n)
{
	char text[8192];
	size_t at = 0;

	while (at < n && at < sizeof(text)) {
		ssize_t got = read(0, text + at, (n - at < sizeof(text) ? n - at : sizeof(text)));
		if (got <= 0)
			break;
		at += (size_t)got;
	}
	return fwrite(text, 1, at, stdout) == at && fflush(stdout) == 0 ? 0 : 1;
}

static int write_text(const char *text)
{
	ssize_t n = write(STDOUT_FILENO, text, strlen(text));

	if (n < 0)
		note("write %s\n", strerrorname_np(errno));
	return n < 0 ? 9 : 0;
}

static int die(int number)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(number, SIG_DFL);
	return raise(number) ? 1 : 0;
}

/* Reads from and writes to the terminal by its name, whatever 0 and 1 are. */
static int by_name(const char *path)
{
	char line[256];
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd < 0) {
		say("%s\n", strerrorname_np(errno));
		return 2;
	}
	dprintf(fd, "password: ");
	ssize_t n = read(fd, line, sizeof(line));
	dprintf(fd, "read %zd %.*s", n, (int)(n > 0 ? n : 0), line);
	return 0;
}

int main(int argc, char **argv)
{
	/* The test makes the file. */
	notes = access("stand-in-notes", W_OK) == 0 ? fopen("stand-in-notes", "ae") : NULL;
	const char *verb = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "";

	if (argc == 1)
		return screen();
	if (strcmp(verb, "exec") == 0 && argc > 2) {
		execvp(argv[2], argv + 2);
		return 127;
	}
	if (strcmp(verb, "look") == 0)
		return look();
	if (strcmp(verb, "screen") == 0)
		return screen();
	if (strcmp(verb, "lines") == 0)
		return lines(more);
	if (strcmp(verb, "family") == 0)
		return family(more);
	if (strcmp(verb, "hear") == 0)
		return hear(strcmp(more, "obey") == 0);
	if (strcmp(verb, "flood") == 0)
		return flood(strtoul(more, NULL, 10));
	if (strcmp(verb, "tool") == 0)
		return tool();
	if (strcmp(verb, "leave-behind") == 0)
		return leave_behind();
	if (strcmp(verb, "modes") == 0)
		return change_modes(more);
	if (strcmp(verb, "read") == 0)
		return read_some(strtoul(more, NULL, 10));
	if (strcmp(verb, "write") == 0)
		return write_text(more);
	if (strcmp(verb, "both") == 0)
		return dprintf(1, "out\n") == 4 && dprintf(2, "err\n") == 4 ? 0 : 1;
	if (strcmp(verb, "exit") == 0)
		return atoi(more);
	if (strcmp(verb, "die") == 0)
		return die(atoi(more));
	if (strcmp(verb, "by-name") == 0)
		return by_name(more);
	fprintf(stderr, "agent-stand-in: what?\n");
	return 2;
}
