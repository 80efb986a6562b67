/* SPDX-License-Identifier: MIT */

/*
 * Times programs from fork to the wait for them.
 *
 *     rounds each COUNT COMMAND... [-- COMMAND...]...    one after the other, the commands in turn
 *     rounds once COUNT COMMAND...                       COUNT at once
 *
 * A command that begins with "tty" has a terminal of its own. Prints a line for each run: the command's
 * number and nanoseconds. One run of each comes before those that count.
 */

#include <poll.h>

#include "dbus/base.h"
#include "tests/bench/child.h"

#define COMMANDS_MAX 4u
#define COUNT_MAX 256u
#define DEADLINE_SECONDS 240u

typedef struct Command {
	char **words;
	bool terminal;
} Command;

static void report(size_t number, uint64_t nsec)
{
	(void)printf("%zu %llu\n", number, (unsigned long long)nsec);
}

static uint64_t run(const Command *command)
{
	uint64_t begin = now_nsec();
	Child child;

	child_start(&child, command->words, command->terminal);
	child_wait(&child, command->words[0]);
	return now_nsec() - begin;
}

static void run_each(const Command *commands, size_t n, unsigned count)
{
	for (size_t i = 0; i < n; i++)
		(void)run(&commands[i]);
	for (unsigned round = 0; round < count; round++)
		for (size_t i = 0; i < n; i++)
			report(i, run(&commands[i]));
}

static void run_at_once(const Command *command, unsigned count)
{
	uint64_t begins[COUNT_MAX];
	struct pollfd fds[COUNT_MAX];
	Child children[COUNT_MAX];
	unsigned left = count;

	(void)run(command);
	for (unsigned i = 0; i < count; i++) {
		begins[i] = now_nsec();
		child_start(&children[i], command->words, false);
		fds[i] = (struct pollfd){ .fd = children[i].pidfd, .events = POLLIN };
	}
	while (left > 0) {
		if (poll(fds, count, -1) <= 0)
			die("poll", errno);
		for (unsigned i = 0; i < count; i++) {
			if (!fds[i].revents)
				continue;
			child_finish(&children[i], command->words[0]);
			report(0, now_nsec() - begins[i]);
			fds[i].fd = -1;
			left--;
		}
	}
}

int main(int argc, char **argv)
{
	Command commands[COMMANDS_MAX] = { 0 };
	unsigned long count = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	size_t n = 0;

	if (count == 0)
		die("rounds each|once COUNT COMMAND... [-- COMMAND...]...", EINVAL);
	(void)alarm(DEADLINE_SECONDS);
	for (char **word = argv + 3; *word && n < COMMANDS_MAX; n++) {
		if (streq(*word, "tty")) {
			commands[n].terminal = true;
			word++;
		}
		commands[n].words = word;
		while (*word && !streq(*word, "--"))
			word++;
		if (*word)
			*word++ = NULL;
		if (!commands[n].words[0])
			die("a command is empty", EINVAL);
	}
	if (streq(argv[1], "once") && n == 1 && count <= COUNT_MAX)
		run_at_once(&commands[0], (unsigned)count);
	else if (streq(argv[1], "each"))
		run_each(commands, n, (unsigned)count);
	else
		die(argv[1], EINVAL);
	return fflush(stdout) != 0;
}
