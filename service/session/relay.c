/* SPDX-License-Identifier: MIT */
#include "service/session/relay-state.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define EVENTS_MAX 16 /* at a time, before the rest of the session has its turn */
#define ACCEPTS_MAX 16
#define FLUSH_ROUNDS_MAX 16
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)
#define PAUSE_USEC (100 * USEC_PER_MSEC) /* without descriptors or memory to accept with */

uint64_t relay_now(const Relay *relay)
{
	uint64_t usec = 0;

	(void)sd_event_now(relay->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

void relay_tick_in(Relay *relay, uint64_t usec)
{
	uint64_t at = 0, wanted = relay_now(relay) + usec;
	int enabled = SD_EVENT_OFF;

	(void)sd_event_source_get_enabled(relay->tick, &enabled);
	(void)sd_event_source_get_time(relay->tick, &at);
	if (enabled != SD_EVENT_OFF && at <= wanted)
		return;
	(void)sd_event_source_set_time(relay->tick, wanted);
	(void)sd_event_source_set_enabled(relay->tick, SD_EVENT_ONESHOT);
}

int relay_watch(const Relay *relay, int fd, uint32_t events, RelayKind *tag)
{
	struct epoll_event event = { .events = events, .data.ptr = tag };

	return epoll_ctl(relay->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void relay_forget(const Relay *relay, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(relay->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Those that are closed, when no event can name them any more. */
static void sweep(Relay *relay)
{
	for (RelayConnection **c = &relay->connections; *c;) {
		RelayConnection *connection = *c;

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
	relay_tick_in(listener->relay, usec);
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
			listener_pause(listener, RELAY_TICK_USEC);
			return;
		}
	}
}

void relay_wake(Relay *relay)
{
	for (RelayConnection *c = relay->connections; c; c = c->next)
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
	for (RelayConnection *c = relay->connections; c; c = c->next) {
		if (c->phase != PHASE_WAITING && c->phase != PHASE_CONNECTING)
			continue;
		if (c->since_usec + RELAY_CONNECT_USEC <= relay_now(relay))
			connection_end(c, true);
		else
			waiting = true;
	}
	if (waiting)
		relay_tick_in(relay, RELAY_TICK_USEC);
	sweep(relay);
	return 0;
}

static int on_turn(sd_event_source *source, void *userdata)
{
	Relay *relay = userdata;

	for (unsigned n = 0; n < EVENTS_MAX && relay->busy; n++) {
		RelayConnection *connection = relay->busy;

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

/* Return: how many events there were. */
static int serve_events(Relay *relay)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(relay->epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++) {
		RelayKind *tag = events[i].data.ptr;

		if (*tag == KIND_LISTENER)
			on_listener_ready((RelayListener *)((char *)tag - offsetof(RelayListener, tag)));
		else {
			size_t end = *tag - KIND_NEAR;
			char *first = (char *)(tag - end);

			connection_ready((RelayConnection *)(first - offsetof(RelayConnection, tags)), end,
					 events[i].events);
		}
	}
	sweep(relay);
	return n;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)serve_events(userdata);
	return 0;
}

void relay_flush(Relay *relay)
{
	for (unsigned n = 0; n < FLUSH_ROUNDS_MAX; n++) {
		int served = serve_events(relay);

		if (served <= 0 && !relay->busy)
			return;
		(void)on_turn(NULL, relay);
	}
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
	r = relay_watch(relay, listen_fd, EPOLLIN, &listener->tag);
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
	relay_forget(listener->relay, listener->fd);
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
	for (RelayConnection *c = relay->connections, *next; c; c = next) {
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
