/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The child that is in the jail's network: it opens the listeners of the local ports there, then makes one
 * unconnected socket after another and hands all of them out. A socket stays in the network where it was
 * made, so that the session, outside, accepts and connects there itself. The child reads nothing, from
 * nobody; it holds no descriptor but the channel, no capability, and after the listeners no system call but
 * those that its work takes. It is outside the jail's other namespaces and dies with the session.
 */

#include <sys/types.h>

#include "dbus/base.h"

/* It does little, and a session that starts waits for it. */
#define RELAY_CHILD_ANSWER_MSEC 5000

typedef struct RelayChild {
	int pidfd;
	int channel_fd; /* readable when there is a socket */
} RelayChild;

#define RELAY_CHILD_INIT ((RelayChild){ FD_NONE, FD_NONE })

typedef struct RelayChildOptions {
	int holder_pidfd; /* of a process in the user and network namespace */
	const uint16_t *ports;
	size_t n_ports;
} RelayChildOptions;

/*
 * Fork, enter, listen. listeners[i] is the socket of ports[i] (O_NONBLOCK), or a negative errno. Return: 0; a
 * negative errno with *ret_problem, and then no listener is open.
 */
int relay_child_start(RelayChild *child, const RelayChildOptions *options, int *listeners,
		      char **ret_problem);
/* A TCP socket of IPv4 in there, O_NONBLOCK. Return: it; -EAGAIN when none is ready; -ECONNRESET when the
 * child is gone. */
int relay_child_socket(const RelayChild *child);
/* Kill, reap, close. */
void relay_child_done(RelayChild *child);
