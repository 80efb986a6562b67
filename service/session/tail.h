/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The end of what a child wrote on its standard error: read as it comes, however much that is, and kept only
 * as far as it may become the cause in a sentence of ours.
 */

#include "dbus/base.h"

#define TAIL_BYTES_MAX 2048u

typedef struct Tail {
	int fd; /* the reading end, non-blocking; owned */
	char *bytes;
	size_t size;
} Tail;

#define TAIL_INIT ((Tail){ .fd = FD_NONE })

void tail_done(Tail *tail);
/* Make the pipe. *ret_write_fd (O_CLOEXEC) is for the child. Return: 0 or a negative errno. */
int tail_open(Tail *tail, int *ret_write_fd);
/* Read what waits. Return: 1 when more may come, 0 at the end of the stream, negative errno. */
int tail_read(Tail *tail);
/*
 * The last line with text in it, without control characters and bytes beyond ASCII (shown as '?').
 * Return: the line, to be freed; NULL when nothing was written or without memory.
 */
char *tail_last_line(const Tail *tail);
