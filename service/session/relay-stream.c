/* SPDX-License-Identifier: MIT */
#include "service/session/relay-stream.h"

#include <fcntl.h>
#include <sys/socket.h>

/* As much as a pipe holds by default (pipe(7)); asking for more gives no more. */
#define SPLICE_BYTES (64u * 1024)

/* ---- pipes ---- */

static void pipe_close(RelayPipes *pipes, RelayPipe *pipe)
{
	pipes->open--;
	close_fdp(&pipe->read_fd);
	close_fdp(&pipe->write_fd);
}

void relay_pipes_done(RelayPipes *pipes)
{
	while (pipes->n > 0)
		pipe_close(pipes, &pipes->kept[--pipes->n]);
}

static int pipe_take(RelayPipes *pipes, RelayPipe *ret)
{
	int fds[2];

	if (pipes->n > 0) {
		*ret = pipes->kept[--pipes->n];
		return 0;
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	if (pipes->open++ >= RELAY_PIPES_LARGE)
		(void)fcntl(fds[0], F_SETPIPE_SZ, RELAY_PIPE_SMALL_BYTES);
	*ret = (RelayPipe){ .read_fd = fds[0], .write_fd = fds[1] };
	return 0;
}

/* Only an empty one may serve another connection. */
static void pipe_give(RelayPipes *pipes, RelayPipe *pipe, bool empty)
{
	if (pipe->read_fd < 0)
		return;
	if (empty && pipes->n < RELAY_PIPES_KEPT)
		pipes->kept[pipes->n++] = *pipe;
	else
		pipe_close(pipes, pipe);
	*pipe = RELAY_PIPE_NONE;
}

/* ---- bytes ---- */

static ssize_t splice_some(int from, int to, size_t n)
{
	ssize_t moved;

	do
		moved = splice(from, NULL, to, NULL, n, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : moved;
}

/*
 * Only into an empty pipe: -EAGAIN then means that the socket has nothing, and never that the pipe is full.
 * Return: 1 with bytes or an end to pass on; 0 when there is nothing; negative errno.
 */
static int half_fill(RelayHalf *half, RelayEnd *from, RelayPipes *pipes)
{
	ssize_t n;
	int r;

	if (half->ended || !from->readable)
		return half->ended;
	if (half->pipe.read_fd < 0) {
		r = pipe_take(pipes, &half->pipe);
		if (r < 0)
			return r;
	}
	n = splice_some(from->fd, half->pipe.write_fd, SPLICE_BYTES);
	if (n == -EAGAIN) {
		from->readable = false;
		return 0;
	}
	if (n < 0)
		return (int)n;
	half->ended = n == 0;
	half->held = (size_t)n;
	return 1;
}

/* Return: bytes that went; 0 when the socket takes none now; negative errno. */
static ssize_t half_empty(RelayHalf *half, RelayEnd *to)
{
	ssize_t n;

	if (!to->writable)
		return 0;
	n = splice_some(half->pipe.read_fd, to->fd, half->held);
	if (n == -EAGAIN) {
		to->writable = false;
		return 0;
	}
	if (n <= 0)
		return n < 0 ? n : -EPIPE;
	half->held -= (size_t)n;
	return n;
}

static int half_pass_end(RelayHalf *half, const RelayEnd *to)
{
	half->passed = true;
	return shutdown(to->fd, SHUT_WR) < 0 ? -errno : 0;
}

/* Return: 1 when its turn is over, 0 when it waits or is done; negative errno. */
static int half_pump(RelayHalf *half, RelayEnd *from, RelayEnd *to, RelayPipes *pipes)
{
	size_t moved = 0;
	int r = 0;

	while (!half->passed && moved < RELAY_TURN_BYTES) {
		ssize_t n;

		if (half->held == 0) {
			r = half_fill(half, from, pipes);
			if (r <= 0)
				break;
			if (half->ended) {
				r = half_pass_end(half, to);
				break;
			}
		}
		n = half_empty(half, to);
		if (n <= 0) {
			r = (int)n;
			break;
		}
		moved += (size_t)n;
	}
	if (half->held == 0)
		pipe_give(pipes, &half->pipe, true);
	return r < 0 ? r : moved >= RELAY_TURN_BYTES;
}

int relay_stream_pump(RelayStream *stream, RelayPipes *pipes)
{
	bool more = false;

	for (size_t i = 0; i < ELEMENTSOF(stream->halves); i++) {
		int r = half_pump(&stream->halves[i], &stream->ends[i], &stream->ends[1 - i], pipes);

		if (r < 0)
			return r;
		more = more || r > 0;
	}
	if (stream->halves[0].passed && stream->halves[1].passed)
		return RELAY_OVER;
	return more ? RELAY_MORE : RELAY_WAITS;
}

/* ---- the end ---- */

void relay_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	/* socket(7) and tcp(7): a close that lingers for no time is a reset. */
	if (*fd >= 0)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close_fdp(fd);
}

void relay_stream_done(RelayStream *stream, RelayPipes *pipes, bool broken)
{
	for (size_t i = 0; i < ELEMENTSOF(stream->ends); i++) {
		pipe_give(pipes, &stream->halves[i].pipe, stream->halves[i].held == 0);
		if (broken || !stream->halves[1 - i].passed)
			relay_reset(&stream->ends[i].fd);
		else
			close_fdp(&stream->ends[i].fd);
	}
}
