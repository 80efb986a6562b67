/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pair of sockets between session and holder, and between session and the relay's child: one small
 * command or answer a packet, with descriptors beside it (SCM_RIGHTS, unix(7)). Both ends are forks of one
 * program, so the packet is a structure as it lies in memory.
 */

#include "dbus/base.h"

#define CHANNEL_TEXT_MAX 1024u
/* Far below SCM_MAX_FD (253), and below any sensible RLIMIT_NOFILE, which bounds descriptors in flight too.
 */
#define CHANNEL_FDS_MAX 32u

typedef enum ChannelKind {
	CHANNEL_OPEN,      /* holder → session, first: result, sockets, number = IPv6 is off, or
			      of a failure: the namespaces were made; relay's child: result
			    */
	CHANNEL_SELF_TEST, /* both ways */
	CHANNEL_CLOSE_TAP, /* both ways */
	CHANNEL_TRY_PROC,  /* both ways; with the pipe for the outcome; result 0: it is being tried */
	CHANNEL_PLACE,     /* session → holder: descriptors for the numbers in places; answered */
	CHANNEL_ANCHOR,    /* both ways, after CHANNEL_PLACE; when it fails, the holder is of no use */
	CHANNEL_EXECUTE,   /* session → holder, last; answered only when it fails */
	CHANNEL_LISTEN, /* relay's child → session, for each port: number = port, result, a listening socket
			 */
	CHANNEL_SOCKET, /* relay's child → session, without end: result, a socket */
	CHANNEL_KIND_MAX,
} ChannelKind;

typedef struct ChannelMessage {
	ChannelKind kind;
	int result; /* 0 or a negative errno, then text is the sentence */
	int number;
	size_t n_fds;
	int places[CHANNEL_FDS_MAX]; /* CHANNEL_PLACE: where each descriptor goes */
	char text[CHANNEL_TEXT_MAX];
} ChannelMessage;

/* Make the pair, both O_CLOEXEC. Return: 0 or a negative errno. */
int channel_make(int ret_fds[static 2]);
/* Send m with its n_fds descriptors. Blocks: the queue of the pair holds what its protocol allows. Return: 0
 * or a negative errno. */
int channel_send(int fd, const ChannelMessage *m, const int *fds);
/*
 * Wait at most timeout_msec (-1: for ever) for one message. fds has room for CHANNEL_FDS_MAX; those that came
 * are O_CLOEXEC and the caller's, the rest FD_NONE. Return: 0; -ETIMEDOUT; -ECONNRESET when the other end is
 * closed; -EBADMSG; another negative errno. Nothing is left open on failure.
 */
int channel_receive(int fd, int timeout_msec, ChannelMessage *ret, int fds[static CHANNEL_FDS_MAX]);
/* Set the text and the result of an answer. */
void channel_fail(ChannelMessage *m, int result, const char *text);
