/* SPDX-License-Identifier: MIT */
#pragma once

/* The relay's insides, for relay.c (listeners and the loop) and relay-connection.c (one connection) alone. */

#include "service/session/relay-stream.h"
#include "service/session/relay.h"

#define RELAY_TICK_USEC (1 * USEC_PER_SEC) /* while something waits that may wait too long */

/* What an event of the inner epoll is about; each is the first member of what it is in. */
typedef enum RelayKind {
	KIND_LISTENER,
	KIND_NEAR, /* the side that was accepted */
	KIND_FAR,
} RelayKind;

typedef enum RelayPhase {
	PHASE_WAITING,    /* for a socket of the other side */
	PHASE_CONNECTING, /* on the other side */
	PHASE_OPEN,
	PHASE_DEAD, /* closed; freed when no event is under way */
} RelayPhase;

typedef struct RelayConnection RelayConnection;

struct RelayConnection {
	RelayKind tags[2]; /* KIND_NEAR, KIND_FAR: pointers to them are what events carry */
	Relay *relay;
	RelayStream stream;
	RelayPhase phase;
	size_t family; /* the next of families[] to try */
	uint16_t port;
	const RelayCalls *calls;
	void *userdata;
	uint64_t since_usec;
	bool busy; /* in the relay's queue of those that have more to do */
	RelayConnection *next, *next_busy;
};

struct RelayListener {
	RelayKind tag;
	Relay *relay;
	int fd;
	uint16_t port;
	const RelayCalls *calls;
	void *userdata;
	bool paused; /* out of descriptors, or waiting for make() */
	RelayListener *next;
};

struct Relay {
	sd_event *event;
	int epoll_fd;
	sd_event_source *source, *turn, *tick;
	RelayPipes pipes;
	RelayConnection *connections, *busy, **busy_end;
	RelayListener *listeners;
	unsigned n_connections, max_connections;
};

uint64_t relay_now(const Relay *relay); /* CLOCK_MONOTONIC */
/* Look after what waits in usec at the latest. */
void relay_tick_in(Relay *relay, uint64_t usec);
/* Add to the epoll. Return: 0 or a negative errno. */
int relay_watch(const Relay *relay, int fd, uint32_t events, RelayKind *tag);
void relay_forget(const Relay *relay, int fd);

/*
 * fd: accepted, O_NONBLOCK; taken over unless another errno than -EAGAIN comes back. Return: 0; -EAGAIN when
 * it waits for a socket of the other side; another negative errno.
 */
int connection_new(RelayListener *listener, int fd);
/* Try again to get a socket of the other side, or the next way to connect it. */
void connection_advance(RelayConnection *connection);
/* Events (epoll_ctl(2)) of one of its ends. */
void connection_ready(RelayConnection *connection, size_t end, uint32_t events);
/* Move bytes; only while it is open. */
void connection_pump(RelayConnection *connection);
/* Close it, as relay_stream_done(). It stays in the list, dead, until no event can name it any more. */
void connection_end(RelayConnection *connection, bool broken);
