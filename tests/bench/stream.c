/* SPDX-License-Identifier: MIT */

/*
 * What goes through a terminal.
 *
 *     stream drain COMMAND...                      reads all that COMMAND writes to its terminal, as fast as
 * it comes; prints the bytes, and nanoseconds from first to last stream keys COUNT COMMAND... [-- COMMAND...]
 * each COMMAND is an "agent echo"; types COUNT keys to each in turn; prints the command's number and
 * nanoseconds for each
 */

#include <fcntl.h>
#include <poll.h>

#include "dbus/base.h"
#include "tests/bench/child.h"

#define BUFFER_BYTES (1u << 20)
#define SILENCE_MSEC 30000
#define COMMANDS_MAX 4u
#define WARM_UP 100u
#define DEADLINE_SECONDS 240u

static void drain(char **command)
{
	_cleanup_free_ char *buffer = malloc(BUFFER_BYTES);
	uint64_t first = 0, last = 0;
	unsigned long long bytes = 0;
	Child child;

	if (!buffer)
		die("memory", ENOMEM);
	child_start(&child, command, true);
	for (;;) {
		struct pollfd fd = { .fd = child.master_fd, .events = POLLIN };
		ssize_t n;

		if (poll(&fd, 1, SILENCE_MSEC) <= 0)
			die(command[0], ETIMEDOUT);
		n = read(child.master_fd, buffer, BUFFER_BYTES);
		if (n <= 0)
			break;
		last = now_nsec();
		if (first == 0)
			first = last;
		bytes += (unsigned long long)n;
	}
	child_wait(&child, command[0]);
	(void)printf("%llu %llu\n", bytes, (unsigned long long)(last - first));
}

/* Return: what was read; dies after a silence. */
static size_t hear(const Child *child, char *buffer, size_t size)
{
	struct pollfd fd = { .fd = child->master_fd, .events = POLLIN };
	ssize_t n;

	if (poll(&fd, 1, SILENCE_MSEC) <= 0)
		die("no answer from the terminal", ETIMEDOUT);
	n = read(child->master_fd, buffer, size);
	if (n <= 0)
		die("the terminal is gone", n < 0 ? errno : 0);
	return (size_t)n;
}

static void begin_echo(Child *child, char **command)
{
	char text[256];
	size_t n = 0;

	child_start(child, command, true);
	while (n < 6 || !memmem(text, n, "ready\n", 6)) {
		if (n == sizeof(text))
			die("the agent does not say that it is there", 0);
		n += hear(child, text + n, sizeof(text) - n);
	}
}

static uint64_t key(const Child *child, char typed)
{
	uint64_t begin = now_nsec();
	char heard = 0;

	if (write(child->master_fd, &typed, 1) != 1)
		die("typing", errno);
	if (hear(child, &heard, 1) != 1 || heard != typed)
		die("another key came back than was typed", 0);
	return now_nsec() - begin;
}

static void keys(unsigned count, char ***commands, size_t n)
{
	Child children[COMMANDS_MAX];

	for (size_t i = 0; i < n; i++)
		begin_echo(&children[i], commands[i]);
	for (unsigned round = 0; round < WARM_UP + count; round++)
		for (size_t i = 0; i < n; i++) {
			uint64_t nsec = key(&children[i], (char)('a' + round % 16));

			if (round >= WARM_UP)
				(void)printf("%zu %llu\n", i, (unsigned long long)nsec);
		}
	for (size_t i = 0; i < n; i++) {
		if (write(children[i].master_fd, "q", 1) != 1)
			die("typing", errno);
		child_wait(&children[i], commands[i][0]);
	}
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	size_t n = 0;

	(void)alarm(DEADLINE_SECONDS);
	if (argc > 2 && streq(argv[1], "drain"))
		drain(argv + 2);
	else if (argc > 3 && streq(argv[1], "keys")) {
		for (char **word = argv + 3; *word && n < COMMANDS_MAX;) {
			commands[n++] = word;
			while (*word && !streq(*word, "--"))
				word++;
			if (*word)
				*word++ = NULL;
		}
		keys((unsigned)strtoul(argv[2], NULL, 10), commands, n);
	} else
		die("stream drain COMMAND... | keys COUNT COMMAND... [-- COMMAND...]", EINVAL);
	return fflush(stdout) != 0;
}
