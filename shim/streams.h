/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors 0, 1 and 2 of the caller: what each is, and who else uses the terminal among them. */

#include "dbus/base.h"

#define STREAMS_N 3

typedef enum StreamKind {
	STREAM_CLOSED,
	STREAM_TERMINAL, /* never given away: the agent gets a PTY there */
	STREAM_OTHER,    /* passed as that very descriptor */
} StreamKind;

/*
 * A terminal among several programs of one pipeline belongs to whoever reads it.
 */
typedef enum TerminalUse {
	TERMINAL_NONE,   /* no terminal among the three */
	TERMINAL_OURS,   /* standard input is the terminal, and standard output leads to no other program */
	TERMINAL_MIRROR, /* standard input is something else: the modes follow what the agent does to its PTY
			  */
	TERMINAL_OTHERS, /* standard output leads to a program that may own the terminal: its modes stay */
} TerminalUse;

typedef struct Streams {
	StreamKind kinds[STREAMS_N];
	TerminalUse use;
	int in, out; /* which of the three is the terminal to read and to write; -1 without one */
} Streams;

/*
 * Look at the three. Return: 0; -EISDIR with *ret_key the one that is a directory: with it an agent could
 * walk out of its jail (openat(2)).
 */
int streams_probe(Streams *ret, int *ret_key);
