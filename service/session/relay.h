/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ports that cross between the jail and the host: listening sockets on one side, connections made on the
 * other, bytes between them (relay-stream.h). All of it runs on the session's loop, behind everything else
 * that is ready there. A connection that cannot go on is reset at once, never held: one whose peer may not
 * come, one without a listener at the other side, and one too many.
 *
 * No keepalive: both peers are sockets of this machine, whose kernel says when one goes. TCP_NODELAY on both
 * sides: whoever wrote decides what goes together. Urgent data (tcp(7)) is none that splice(2) moves: a
 * connection on which some is sent stays where it is until an end closes it.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"

#define RELAY_CONNECTIONS_MAX 512u
/* Descriptors of one connection with bytes on the way in both directions. */
#define RELAY_CONNECTION_DESCRIPTORS 6u
/* From accept to a connection on the other side; on a loopback it takes a moment or is refused at once. */
#define RELAY_CONNECT_USEC (10 * USEC_PER_SEC)

typedef struct Relay Relay;
typedef struct RelayListener RelayListener;

typedef struct RelayCalls {
	/* May the peer of fd, just accepted, come in? NULL: everyone. Return: 0 or a negative errno. */
	int (*admit)(void *userdata, int fd);
	/*
	 * A stream socket (O_NONBLOCK, O_CLOEXEC) of family AF_INET or AF_INET6 on the other side.
	 * Return: it; -EAGAIN when there is none now: relay_wake() when there is; another negative errno.
	 */
	int (*make)(void *userdata, int family);
} RelayCalls;

/* At most max_connections, and never more than RELAY_CONNECTIONS_MAX. Return: 0 or a negative errno. */
int relay_new(sd_event *event, unsigned max_connections, Relay **ret);
/* Every connection ends; what a socket has taken still goes out. */
Relay *relay_free(Relay *relay);
DEFINE_CLEANUP(Relay, relay_free)

/*
 * Relay what comes to listen_fd (listening, O_NONBLOCK; taken over on success) to port of the other side's
 * 127.0.0.1, and where nothing listens there, of ::1. Return: 0 or a negative errno.
 */
int relay_listen(Relay *relay, int listen_fd, uint16_t port, const RelayCalls *calls, void *userdata,
		 RelayListener **ret);
/* Nothing more is accepted; connections that are there go on. */
void relay_listener_close(RelayListener *listener);
/* Move now what the loop would have moved next, in bounds: the last words of an agent that has ended. */
void relay_flush(Relay *relay);
/* make() may have a socket again. */
void relay_wake(Relay *relay);
unsigned relay_connections(const Relay *relay);
