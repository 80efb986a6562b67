/* SPDX-License-Identifier: MIT */
#include "service/session/tail.h"

#include <fcntl.h>

/* A child that writes without end must not keep the session in this loop: the event loop comes back. */
#define TAIL_READS_MAX 16u
#define TAIL_LINE_MAX 512u

void tail_done(Tail *tail)
{
	free(tail->bytes);
	*tail = (Tail){ .fd = close_fd(tail->fd) };
}

int tail_open(Tail *tail, int *ret_write_fd)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		int r = -errno;
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		return r;
	}
	tail_done(tail);
	tail->fd = fds[0];
	*ret_write_fd = fds[1];
	return 0;
}

int tail_read(Tail *tail)
{
	if (tail->fd < 0)
		return 0;
	if (!tail->bytes) {
		tail->bytes = malloc(2 * TAIL_BYTES_MAX);
		if (!tail->bytes)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < TAIL_READS_MAX; i++) {
		ssize_t n = read(tail->fd, tail->bytes + tail->size, TAIL_BYTES_MAX);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 1 : -errno;
		if (n == 0)
			return 0;
		tail->size += (size_t)n;
		if (tail->size > TAIL_BYTES_MAX) {
			memmove(tail->bytes, tail->bytes + tail->size - TAIL_BYTES_MAX, TAIL_BYTES_MAX);
			tail->size = TAIL_BYTES_MAX;
		}
	}
	return 1;
}

char *tail_last_line(const Tail *tail)
{
	size_t end = tail->size, start;
	char *line;

	while (end > 0 && (unsigned char)tail->bytes[end - 1] <= ' ')
		end--;
	if (end == 0)
		return NULL;
	start = end;
	while (start > 0 && tail->bytes[start - 1] != '\n' && end - start < TAIL_LINE_MAX)
		start--;
	line = strndup(tail->bytes + start, end - start);
	for (char *p = line; p && *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
	return line;
}
