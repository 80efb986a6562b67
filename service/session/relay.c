/* SPDX-License-Identifier: MIT */
#include "service/session/relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "service/session/relay-stream.h"

#define EVENTS_MAX 16 /* at a time, before the rest of the session has its turn */
#define ACCEPTS_MAX 16
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)
#define TICK_USEC (1 * USEC_PER_SEC)     /* while something waits that may wait too long */
#define PAUSE_USEC (100 * USEC_PER_MSEC) /* without descriptors or memory to accept with */
#define EDGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* What an event of the inner epoll is about; each is the first member of what it is in. */
typedef enum Kind {
	KIND_LISTENER,
	KIND_NEAR, /* the side that was accepted */
	KIND_FAR,
} Kind;

typedef enum Phase {
	PHASE_WAITING,    /* for a socket of the other side */
	PHASE_CONNECTING, /* on the other side */
	PHASE_OPEN,
	PHASE_DEAD, /* closed; freed when no event is under way */
} Phase;

typedef struct Connection Connection;

struct Connection {
	Kind tags[2]; /* KIND_NEAR, KIND_FAR: pointers to them are what events carry */
	Relay *relay;
	RelayStream stream;
	Phase phase;
	size_t family; /* the next of families[] to try */
	uint16_t port;
	const RelayCalls *calls;
	void *userdata;
	uint64_t since_usec;
	bool busy; /* in the relay's queue of those that have more to do */
	Connection *next, *next_busy;
};

struct RelayListener {
	Kind tag;
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
	Connection *connections, *busy, **busy_end;
	RelayListener *listeners;
	unsigned n_connections, max_connections;
};

static const int families[] = { AF_INET, AF_INET6 };

static uint64_t now(const Relay *relay)
{
	uint64_t usec = 0;

	(void)sd_event_now(relay->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static void tick_in(Relay *relay, uint64_t usec)
{
	uint64_t at = 0, wanted = now(relay) + usec;
	int enabled = SD_EVENT_OFF;

	(void)sd_event_source_get_enabled(relay->tick, &enabled);
	(void)sd_event_source_get_time(relay->tick, &at);
	if (enabled != SD_EVENT_OFF && at <= wanted)
		return;
	(void)sd_event_source_set_time(relay->tick, wanted);
	(void)sd_event_source_set_enabled(relay->tick, SD_EVENT_ONESHOT);
}

static int watch(const Relay *relay, int fd, uint32_t events, Kind *tag)
{
	struct epoll_event event = { .events = events, .data.ptr = tag };

	return epoll_ctl(relay->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void forget(const Relay *relay, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(relay->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- connections ---- */

static void connection_end(Connection *connection, bool broken)
{
	if (connection->phase == PHASE_DEAD)
		return;
	/* A fork of the session may have a copy for a moment yet: closing alone would leave it in there. */
	for (size_t i = 0; i < ELEMENTSOF(connection->stream.ends); i++)
		forget(connection->relay, connection->stream.ends[i].fd);
	relay_stream_done(&connection->stream, &connection->relay->pipes, broken);
	connection->phase = PHASE_DEAD;
	connection->relay->n_connections--;
}

static void make_busy(Connection *connection)
{
	Relay *relay = connection->relay;

	if (connection->busy)
		return;
	connection->busy = true;
	connection->next_busy = NULL;
	*relay->busy_end = connection;
	relay->busy_end = &connection->next_busy;
	(void)sd_event_source_set_enabled(relay->turn, SD_EVENT_ONESHOT);
}

static void connection_pump(Connection *connection)
{
	int r = relay_stream_pump(&connection->stream, &connection->relay->pipes);

	if (r < 0)
		connection_end(connection, true);
	else if (r == RELAY_OVER)
		connection_end(connection, false);
	else if (r == RELAY_MORE)
		make_busy(connection);
}

static int connect_to(int fd, int family, uint16_t port)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
					  .sin6_port = htons(port),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const int on = 1;
	int r;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (family == AF_INET)
		r = connect(fd, (const struct sockaddr *)&in, sizeof(in));
	else
		r = connect(fd, (const struct sockaddr *)&in6, sizeof(in6));
	return r < 0 && errno != EINPROGRESS ? -errno : 0;
}

/* Return: 0 when it is under way; -EAGAIN when it waits for a socket; another negative errno: no way is left.
 */
static int connection_try(Connection *connection)
{
	int r = -ECONNREFUSED;

	for (; connection->family < ELEMENTSOF(families); connection->family++) {
		int family = families[connection->family];
		_cleanup_close_ int fd = connection->calls->make(connection->userdata, family);

		r = fd < 0 ? fd : connect_to(fd, family, connection->port);
		if (r == -EAGAIN)
			return r;
		if (r == 0)
			r = watch(connection->relay, fd, EDGES, &connection->tags[KIND_FAR - KIND_NEAR]);
		if (r < 0)
			continue;
		connection->stream.ends[1].fd = TAKE_FD(fd);
		connection->phase = PHASE_CONNECTING;
		return 0;
	}
	return r;
}

/*
 * A port of the range that outgoing connections get theirs from can become both ends of one connection
 * (RFC 9293, 3.5: simultaneous open) where nobody listens.
 */
static bool is_connected_to_itself(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_length = sizeof(own), peer_length = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 && own_length == peer_length &&
	       memcmp(&own, &peer, own_length) == 0;
}

static int socket_error(int fd)
{
	socklen_t length = sizeof(int);
	int error = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? -errno : -error;
}

static void connection_advance(Connection *connection)
{
	int r = connection_try(connection);

	if (r == -EAGAIN)
		tick_in(connection->relay, TICK_USEC);
	else if (r < 0)
		connection_end(connection, true);
}

static void connection_opened(Connection *connection)
{
	RelayStream *stream = &connection->stream;

	if (socket_error(stream->ends[1].fd) < 0 || is_connected_to_itself(stream->ends[1].fd)) {
		forget(connection->relay, stream->ends[1].fd);
		relay_reset(&stream->ends[1].fd);
		connection->phase = PHASE_WAITING;
		connection->family++;
		connection_advance(connection);
		return;
	}
	connection->phase = PHASE_OPEN;
	for (size_t i = 0; i < ELEMENTSOF(stream->ends); i++)
		stream->ends[i].readable = stream->ends[i].writable = true;
	connection_pump(connection);
}

static void on_end_ready(Connection *connection, size_t i, uint32_t events)
{
	RelayEnd *end = &connection->stream.ends[i];

	if (connection->phase == PHASE_DEAD)
		return;
	if (connection->phase != PHASE_OPEN) {
		if (i == 1)
			connection_opened(connection);
		else if (events & EPOLLERR)
			connection_end(connection, true);
		return;
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		end->writable = true;
	connection_pump(connection);
	/* A reset that no byte was waiting for: of a side that has said its last byte before. */
	if (events & EPOLLERR && connection->phase == PHASE_OPEN && socket_error(end->fd) < 0)
		connection_end(connection, true);
}

static int connection_new(RelayListener *listener, int fd)
{
	Connection *connection = malloc(sizeof(*connection));
	Relay *relay = listener->relay;
	const int on = 1;
	int r;

	if (!connection)
		return -ENOMEM;
	*connection = (Connection){ .tags = { KIND_NEAR, KIND_FAR },
				    .relay = relay,
				    .stream = RELAY_STREAM_INIT,
				    .port = listener->port,
				    .calls = listener->calls,
				    .userdata = listener->userdata,
				    .since_usec = now(relay),
				    .next = relay->connections };
	r = watch(relay, fd, EDGES, &connection->tags[0]);
	if (r < 0) {
		free(connection);
		return r;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection->stream.ends[0].fd = fd;
	relay->connections = connection;
	relay->n_connections++;
	connection_advance(connection);
	tick_in(relay, TICK_USEC);
	return connection->phase == PHASE_WAITING ? -EAGAIN : 0;
}

/* Those that are closed, when no event can name them any more. */
static void sweep(Relay *relay)
{
	for (Connection **c = &relay->connections; *c;) {
		Connection *connection = *c;

		if (connection->phase != PHASE_DEAD || connection->busy) {
			c = &connection->next;
			continue;
		}
		*c = connection->next;
		free(connection);
	}
}

/* ---- listeners ---- */

static void listener_watch(RelayListener *listener, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.ptr = &listener->tag };

	listener->paused = !on;
	(void)epoll_ctl(listener->relay->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
}

static void listener_pause(RelayListener *listener, uint64_t usec)
{
	listener_watch(listener, false);
	tick_in(listener->relay, usec);
}

static void on_listener_ready(RelayListener *listener)
{
	Relay *relay = listener->relay;

	for (unsigned n = 0; n < ACCEPTS_MAX; n++) {
		_cleanup_close_ int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		int r = fd < 0 ? -errno : 0;

		if (r == -EAGAIN)
			return;
		/* accept(2): errors of the connection itself, which is gone. */
		if (r == -ECONNABORTED || r == -EINTR || r == -EPROTO || r == -EPERM)
			continue;
		/* It stays ready: asking again at once would be all that is done here. */
		if (r < 0) {
			listener_pause(listener, PAUSE_USEC);
			return;
		}
		if (relay->n_connections >= relay->max_connections)
			r = -EMFILE;
		if (r == 0 && listener->calls->admit)
			r = listener->calls->admit(listener->userdata, fd);
		if (r < 0) {
			relay_reset(&fd);
			continue;
		}
		r = connection_new(listener, fd);
		if (r == 0 || r == -EAGAIN)
			(void)TAKE_FD(fd);
		else
			relay_reset(&fd);
		if (r == -EAGAIN) {
			listener_pause(listener, TICK_USEC);
			return;
		}
	}
}

void relay_wake(Relay *relay)
{
	for (Connection *c = relay->connections; c; c = c->next)
		if (c->phase == PHASE_WAITING)
			connection_advance(c);
	for (RelayListener *l = relay->listeners; l; l = l->next)
		if (l->paused)
			listener_watch(l, true);
}

/* ---- the loop ---- */

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	Relay *relay = userdata;
	bool waiting = false;

	relay_wake(relay);
	for (Connection *c = relay->connections; c; c = c->next) {
		if (c->phase != PHASE_WAITING && c->phase != PHASE_CONNECTING)
			continue;
		if (c->since_usec + RELAY_CONNECT_USEC <= now(relay))
			connection_end(c, true);
		else
			waiting = true;
	}
	if (waiting)
		tick_in(relay, TICK_USEC);
	sweep(relay);
	return 0;
}

static int on_turn(sd_event_source *source, void *userdata)
{
	Relay *relay = userdata;

	for (unsigned n = 0; n < EVENTS_MAX && relay->busy; n++) {
		Connection *connection = relay->busy;

		relay->busy = connection->next_busy;
		if (!relay->busy)
			relay->busy_end = &relay->busy;
		connection->busy = false;
		if (connection->phase == PHASE_OPEN)
			connection_pump(connection);
	}
	if (relay->busy)
		(void)sd_event_source_set_enabled(relay->turn, SD_EVENT_ONESHOT);
	sweep(relay);
	return 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct epoll_event events[EVENTS_MAX];
	Relay *relay = userdata;
	int n = epoll_wait(relay->epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++) {
		Kind *tag = events[i].data.ptr;

		if (*tag == KIND_LISTENER)
			on_listener_ready((RelayListener *)((char *)tag - offsetof(RelayListener, tag)));
		else {
			size_t end = *tag - KIND_NEAR;
			char *first = (char *)(tag - end);

			on_end_ready((Connection *)(first - offsetof(Connection, tags)), end,
				     events[i].events);
		}
	}
	sweep(relay);
	return 0;
}

int relay_listen(Relay *relay, int listen_fd, uint16_t port, const RelayCalls *calls, void *userdata,
		 RelayListener **ret)
{
	RelayListener *listener = malloc(sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	*listener = (RelayListener){ .tag = KIND_LISTENER,
				     .relay = relay,
				     .fd = listen_fd,
				     .port = port,
				     .calls = calls,
				     .userdata = userdata,
				     .next = relay->listeners };
	r = watch(relay, listen_fd, EPOLLIN, &listener->tag);
	if (r < 0) {
		free(listener);
		return r;
	}
	relay->listeners = listener;
	*ret = listener;
	return 0;
}

void relay_listener_close(RelayListener *listener)
{
	for (RelayListener **l = &listener->relay->listeners; *l; l = &(*l)->next)
		if (*l == listener) {
			*l = listener->next;
			break;
		}
	forget(listener->relay, listener->fd);
	(void)close(listener->fd);
	free(listener);
}

unsigned relay_connections(const Relay *relay)
{
	return relay->n_connections;
}

static int relay_init(Relay *relay)
{
	int r;

	relay->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (relay->epoll_fd < 0)
		return -errno;
	r = sd_event_add_io(relay->event, &relay->source, relay->epoll_fd, EPOLLIN, on_events, relay);
	if (r >= 0)
		r = sd_event_add_defer(relay->event, &relay->turn, on_turn, relay);
	if (r >= 0)
		r = sd_event_source_set_enabled(relay->turn, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(relay->event, &relay->tick, CLOCK_MONOTONIC, 0, 0, on_tick, relay);
	if (r >= 0)
		r = sd_event_source_set_enabled(relay->tick, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(relay->source, PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_priority(relay->turn, PRIORITY);
	return r;
}

int relay_new(sd_event *event, unsigned max_connections, Relay **ret)
{
	_cleanup_(relay_freep) Relay *relay = malloc(sizeof(*relay));
	int r;

	if (!relay)
		return -ENOMEM;
	*relay = (Relay){ .event = sd_event_ref(event),
			  .epoll_fd = FD_NONE,
			  .max_connections = MIN_OF(max_connections, RELAY_CONNECTIONS_MAX) };
	relay->busy_end = &relay->busy;
	r = relay_init(relay);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(relay);
	return 0;
}

Relay *relay_free(Relay *relay)
{
	if (!relay)
		return NULL;
	(void)sd_event_source_disable_unref(relay->source);
	(void)sd_event_source_disable_unref(relay->turn);
	(void)sd_event_source_disable_unref(relay->tick);
	while (relay->listeners)
		relay_listener_close(relay->listeners);
	for (Connection *c = relay->connections, *next; c; c = next) {
		next = c->next;
		connection_end(c, c->phase != PHASE_OPEN);
		free(c);
	}
	relay_pipes_done(&relay->pipes);
	close_fdp(&relay->epoll_fd);
	(void)sd_event_unref(relay->event);
	free(relay);
	return NULL;
}
