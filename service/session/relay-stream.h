/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection that is relayed: two stream sockets and the bytes between them, moved by splice(2) through a
 * pipe for each direction. A pipe is held only while bytes are in it, so an idle connection costs two
 * descriptors; what the slower side does not take waits in its pipe and in the sockets, never in memory of
 * ours. Pure of any loop: whoever watches the sockets says what is ready and calls relay_stream_pump().
 */

#include "dbus/base.h"

/* Empty pipes that are kept for the next connection. */
#define RELAY_PIPES_KEPT 8u
/*
 * Pipes that hold as much as a pipe usually does. The kernel counts their pages for each user, and gives
 * small ones above a limit (pipe(7), pipe-user-pages-soft: 1024 usual pipes) to the user's other programs
 * too, so more than these are small from the beginning.
 */
#define RELAY_PIPES_LARGE 64u
#define RELAY_PIPE_SMALL_BYTES (16 * 1024)
/* What one call moves of one connection before others have their turn. */
#define RELAY_TURN_BYTES (256u * 1024)

typedef struct RelayPipe {
	int read_fd, write_fd;
} RelayPipe;

#define RELAY_PIPE_NONE ((RelayPipe){ FD_NONE, FD_NONE })

typedef struct RelayPipes {
	RelayPipe kept[RELAY_PIPES_KEPT];
	size_t n;
	size_t open; /* in use or kept */
} RelayPipes;

void relay_pipes_done(RelayPipes *pipes);

/* One socket. readable and writable: not known to be otherwise; set by whoever sees an event. */
typedef struct RelayEnd {
	int fd;
	bool readable, writable;
} RelayEnd;

/* What comes from ends[i] and goes to the other. */
typedef struct RelayHalf {
	RelayPipe pipe;
	size_t held; /* bytes in it */
	bool ended;  /* the source has said its last byte */
	bool passed; /* and the other was told */
} RelayHalf;

typedef struct RelayStream {
	RelayEnd ends[2];
	RelayHalf halves[2];
} RelayStream;

#define RELAY_STREAM_INIT                                                 \
	((RelayStream){ .ends = { { .fd = FD_NONE }, { .fd = FD_NONE } }, \
			.halves = { { .pipe = RELAY_PIPE_NONE }, { .pipe = RELAY_PIPE_NONE } } })

typedef enum RelayProgress {
	RELAY_WAITS, /* until a socket is ready */
	RELAY_MORE,  /* its turn is over, there is more to do */
	RELAY_OVER,  /* both sides have said their last byte, and have been told */
} RelayProgress;

/*
 * Move what can be moved, in both directions, at most about RELAY_TURN_BYTES. SIGPIPE must be ignored.
 * Return: a RelayProgress; a negative errno when the connection is broken: reset both ends.
 */
int relay_stream_pump(RelayStream *stream, RelayPipes *pipes);

/*
 * Close both ends and give the pipes back. A peer that was not told of an end sees a reset, so that nothing
 * cut off looks complete; broken: both do.
 */
void relay_stream_done(RelayStream *stream, RelayPipes *pipes, bool broken);

/* Close a socket so that its peer sees a reset. */
void relay_reset(int *fd);
