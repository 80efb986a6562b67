/* SPDX-License-Identifier: MIT */
#include "shim/streams.h"

#include <fcntl.h>
#include <sys/stat.h>

static bool leads_to_a_program(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

static int first_terminal(const Streams *streams, const int order[static STREAMS_N])
{
	for (size_t i = 0; i < STREAMS_N; i++)
		if (streams->kinds[order[i]] == STREAM_TERMINAL)
			return order[i];
	return -1;
}

int streams_probe(Streams *ret, int *ret_key)
{
	Streams streams = { .in = -1, .out = -1 };

	for (int i = 0; i < STREAMS_N; i++) {
		struct stat status;

		if (fstat(i, &status) < 0)
			streams.kinds[i] = STREAM_CLOSED;
		else if (isatty(i))
			streams.kinds[i] = STREAM_TERMINAL;
		else if (S_ISDIR(status.st_mode)) {
			*ret_key = i;
			return -EISDIR;
		} else
			streams.kinds[i] = STREAM_OTHER;
	}

	streams.in = first_terminal(&streams, (const int[]){ STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO });
	streams.out = first_terminal(&streams, (const int[]){ STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO });
	if (streams.in < 0)
		streams.use = TERMINAL_NONE;
	else if (streams.kinds[STDIN_FILENO] != STREAM_TERMINAL)
		streams.use = TERMINAL_MIRROR;
	else if (leads_to_a_program(STDOUT_FILENO))
		streams.use = TERMINAL_OTHERS;
	else
		streams.use = TERMINAL_OURS;

	*ret = streams;
	return 0;
}
