/* SPDX-License-Identifier: MIT */
#include "service/session/relay-state.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "service/link/stream-outcome.h"

#define EDGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static const int families[] = { AF_INET, AF_INET6 };

void connection_end(RelayConnection *connection, bool broken)
{
	if (connection->phase == PHASE_DEAD)
		return;
	/* A fork of the session may have a copy for a moment yet: closing alone would leave it in there. */
	for (size_t i = 0; i < ELEMENTSOF(connection->stream.ends); i++)
		relay_forget(connection->relay, connection->stream.ends[i].fd);
	relay_stream_done(&connection->stream, &connection->relay->pipes, broken);
	connection->phase = PHASE_DEAD;
	connection->relay->n_connections--;
}

static void make_busy(RelayConnection *connection)
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

void connection_pump(RelayConnection *connection)
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
static int connection_try(RelayConnection *connection)
{
	int r = -ECONNREFUSED;

	for (; connection->family < ELEMENTSOF(families); connection->family++) {
		int family = families[connection->family];
		_cleanup_close_ int fd = connection->calls->make(connection->userdata, family);

		r = fd < 0 ? fd : connect_to(fd, family, connection->port);
		if (r == -EAGAIN)
			return r;
		if (r == 0)
			r = relay_watch(connection->relay, fd, EDGES,
					&connection->tags[KIND_FAR - KIND_NEAR]);
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

void connection_advance(RelayConnection *connection)
{
	int r = connection_try(connection);

	if (r == -EAGAIN)
		relay_tick_in(connection->relay, RELAY_TICK_USEC);
	else if (r < 0)
		connection_end(connection, true);
}

static void connection_opened(RelayConnection *connection)
{
	RelayStream *stream = &connection->stream;
	int r = stream_outcome(stream->ends[1].fd);

	if (r == -EINPROGRESS)
		return;
	if (r < 0 || is_connected_to_itself(stream->ends[1].fd)) {
		relay_forget(connection->relay, stream->ends[1].fd);
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

void connection_ready(RelayConnection *connection, size_t i, uint32_t events)
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

int connection_new(RelayListener *listener, int fd)
{
	RelayConnection *connection = malloc(sizeof(*connection));
	Relay *relay = listener->relay;
	const int on = 1;
	int r;

	if (!connection)
		return -ENOMEM;
	*connection = (RelayConnection){ .tags = { KIND_NEAR, KIND_FAR },
					 .relay = relay,
					 .stream = RELAY_STREAM_INIT,
					 .port = listener->port,
					 .calls = listener->calls,
					 .userdata = listener->userdata,
					 .since_usec = relay_now(relay),
					 .next = relay->connections };
	r = relay_watch(relay, fd, EDGES, &connection->tags[0]);
	if (r < 0) {
		free(connection);
		return r;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection->stream.ends[0].fd = fd;
	relay->connections = connection;
	relay->n_connections++;
	connection_advance(connection);
	relay_tick_in(relay, RELAY_TICK_USEC);
	return connection->phase == PHASE_WAITING ? -EAGAIN : 0;
}
