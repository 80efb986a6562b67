/* SPDX-License-Identifier: MIT */
#include "service/session/ports.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "service/net/diag.h"
#include "service/session/program.h"
#include "service/session/relay-child.h"
#include "service/session/relay.h"

/* Another user may fill it for a moment: whoever may not come is taken out of it at once. */
#define BACKLOG 1024
/* What the session holds beside connections, one for each mount above all. */
#define DESCRIPTORS_OF_SESSION 512u
/* A browser opens some ten at a time; fewer than this are worth a word. */
#define CONNECTIONS_FEW 64u

typedef enum PortState {
	PORT_LISTENING,
	PORT_TAKEN,  /* another program has it */
	PORT_FAILED, /* it cannot be had for another reason */
	PORT_SHARED, /* nothing to do: one network */
	PORT_ENDED,  /* the session ends */
	PORT_STATE_MAX,
} PortState;

static const char *const state_names[PORT_STATE_MAX] = { "listening", "taken", "failed", "shared", "ended" };

typedef struct Port {
	uint16_t number;
	bool callback;
	PortState state;
	char *origin;
	RelayListener *listeners[2]; /* of IPv4 and IPv6 */
} Port;

struct Ports {
	Relay *relay;
	RelayChild child;
	int diag_fd;
	uid_t uid;
	sd_event_source *ended, *sockets;
	Port *ports;
	size_t n;
};

/* ---- what the configuration names ---- */

static bool is_named(const Ports *ports, uint16_t number)
{
	for (size_t i = 0; i < ports->n; i++)
		if (ports->ports[i].number == number)
			return true;
	return false;
}

static int add_ports(Ports *ports, const PortsOptions *options, ConfigKey key)
{
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(options->config, key, &index))) {
		uint16_t number = (uint16_t)strtoul(value->text, NULL, 10);

		/* A local-model-port of 0 is none, and it may be a local-port as well. */
		if (number == 0 || is_named(ports, number))
			continue;
		ports->ports[ports->n] = (Port){ .number = number,
						 .callback = key == CONFIG_CALLBACK_PORT,
						 .state = options->jailed ? PORT_FAILED : PORT_SHARED,
						 .origin = strdup(value->origin) };
		if (!ports->ports[ports->n++].origin)
			return -ENOMEM;
	}
	return 0;
}

static size_t count(const Ports *ports, bool callback)
{
	size_t n = 0;

	for (size_t i = 0; i < ports->n; i++)
		n += ports->ports[i].callback == callback;
	return n;
}

/* ---- what the relay asks ---- */

static int admit_user(void *userdata, int fd)
{
	const Ports *ports = userdata;
	uid_t uid;
	int r = peer_owner(ports->diag_fd, fd, &uid);

	if (r < 0)
		return r;
	return uid == ports->uid || uid == 0 ? 0 : -EACCES;
}

static int make_outside(void *userdata, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* Of socket(2) that is lack of memory, and no reason to wait. */
	return fd < 0 ? (errno == EAGAIN ? -ENOMEM : -errno) : fd;
}

static int make_inside(void *userdata, int family)
{
	Ports *ports = userdata;
	int fd;

	if (family != AF_INET)
		return -EAFNOSUPPORT;
	fd = relay_child_socket(&ports->child);
	if (fd == -EAGAIN)
		(void)sd_event_source_set_enabled(ports->sockets, SD_EVENT_ONESHOT);
	return fd;
}

static const RelayCalls local_calls = { .make = make_outside };
static const RelayCalls callback_calls = { .admit = admit_user, .make = make_inside };

static int on_sockets(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Ports *ports = userdata;

	relay_wake(ports->relay);
	return 0;
}

/* ---- listeners ---- */

static void port_close(Port *port, PortState state)
{
	for (size_t i = 0; i < ELEMENTSOF(port->listeners); i++)
		if (port->listeners[i]) {
			relay_listener_close(port->listeners[i]);
			port->listeners[i] = NULL;
			port->state = state;
		}
}

/* Without it nothing can be connected to inside, so nothing is accepted for it either. */
static int on_child_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Ports *ports = userdata;

	if (program_reap(fd, NULL) == 0)
		return 0;
	(void)sd_event_source_set_enabled(ports->sockets, SD_EVENT_OFF);
	ports->ended = sd_event_source_disable_unref(ports->ended);
	ports->child.pidfd = close_fd(ports->child.pidfd);
	relay_wake(ports->relay);
	for (size_t i = 0; i < ports->n; i++)
		if (ports->ports[i].callback)
			port_close(&ports->ports[i], PORT_FAILED);
	return 0;
}

/* Return: a listening socket of loopback alone, or a negative errno. */
static int listen_outside(int family, uint16_t port)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
					  .sin6_port = htons(port),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *address =
		family == AF_INET ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6;
	_cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, address, family == AF_INET ? sizeof(in) : sizeof(in6)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int take_listener(Ports *ports, Port *port, size_t i, int *fd)
{
	int r = relay_listen(ports->relay, *fd, port->number, port->callback ? &callback_calls : &local_calls,
			     ports, &port->listeners[i]);

	if (r < 0)
		return r;
	(void)TAKE_FD(*fd);
	port->state = PORT_LISTENING;
	return 0;
}

static int warn_callback(const Port *port, const char *address, int error, char ***warnings)
{
	unsigned number = port->number;

	if (error == -EADDRINUSE)
		return strings_appendf(
			warnings,
			"callback-port %u: another program listens on %s:%u of this machine, "
			"and whoever connects there does not reach the agent; end that program "
			"(a session of yours?) and start again",
			number, address, number);
	return strings_appendf(warnings, "callback-port %u: %s:%u of this machine cannot be listened on: %s",
			       number, address, number, strerror(-error));
}

static int open_callback(Ports *ports, Port *port, char ***warnings)
{
	_cleanup_close_ int fd = FD_NONE, fd6 = FD_NONE;
	int r;

	fd = listen_outside(AF_INET, port->number);
	if (fd < 0) {
		port->state = fd == -EADDRINUSE ? PORT_TAKEN : PORT_FAILED;
		return warn_callback(port, "127.0.0.1", fd, warnings);
	}
	r = take_listener(ports, port, 0, &fd);
	if (r < 0)
		return r;
	fd6 = listen_outside(AF_INET6, port->number);
	/* A machine without IPv6 has no such address to be reached at. */
	if (fd6 == -EAFNOSUPPORT || fd6 == -EADDRNOTAVAIL)
		return 0;
	return fd6 < 0 ? warn_callback(port, "[::1]", fd6, warnings) : take_listener(ports, port, 1, &fd6);
}

static int open_callbacks(Ports *ports, char ***warnings)
{
	int r;

	if (count(ports, true) == 0)
		return 0;
	r = peer_owner_open(&ports->diag_fd);
	if (r == 0)
		r = peer_owner_test(ports->diag_fd);
	if (r < 0)
		return strings_appendf(warnings,
				       "no callback-port works: the kernel does not say who connects "
				       "(CONFIG_INET_DIAG: %s)",
				       strerror(-r));
	for (size_t i = 0; r >= 0 && i < ports->n; i++)
		if (ports->ports[i].callback)
			r = open_callback(ports, &ports->ports[i], warnings);
	return r;
}

/* listeners: of the local ports, in their order. All that are taken over become FD_NONE. */
static int open_locals(Ports *ports, int *listeners, char ***warnings)
{
	for (size_t i = 0, n = 0; i < ports->n; i++) {
		Port *port = &ports->ports[i];
		int r;

		if (port->callback)
			continue;
		if (listeners[n] >= 0)
			r = take_listener(ports, port, 0, &listeners[n]);
		else {
			port->state = listeners[n] == -EADDRINUSE ? PORT_TAKEN : PORT_FAILED;
			r = strings_appendf(
				warnings, "local-port %u: 127.0.0.1:%u cannot be listened on inside: %s",
				(unsigned)port->number, (unsigned)port->number, strerror(-listeners[n]));
		}
		if (r < 0)
			return r;
		n++;
	}
	return 0;
}

/* ---- birth and death ---- */

/* Raise the limit on open files as far as it may be. Return: how many connections it leaves room for. */
static unsigned settle_limit(rlim_t *ret_limit)
{
	const rlim_t wanted = DESCRIPTORS_OF_SESSION + RELAY_CONNECTIONS_MAX * RELAY_CONNECTION_DESCRIPTORS;
	struct rlimit limit = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted) {
		struct rlimit raised = { MIN_OF(wanted, limit.rlim_max), limit.rlim_max };

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	*ret_limit = limit.rlim_cur;
	if (limit.rlim_cur >= wanted)
		return RELAY_CONNECTIONS_MAX;
	if (limit.rlim_cur <= DESCRIPTORS_OF_SESSION + RELAY_CONNECTION_DESCRIPTORS)
		return 1;
	return (unsigned)(limit.rlim_cur - DESCRIPTORS_OF_SESSION) / RELAY_CONNECTION_DESCRIPTORS;
}

static int start_relay(Ports *ports, sd_event *event, char ***warnings)
{
	rlim_t limit;
	unsigned n = settle_limit(&limit);
	int r = relay_new(event, n, &ports->relay);

	if (r < 0 || n >= CONNECTIONS_FEW)
		return r;
	return strings_appendf(
		warnings,
		"ports that cross: the limit of %llu open files leaves room for %u connections "
		"at a time; raise it (ulimit -Hn, limits.conf)",
		(unsigned long long)limit, n);
}

static int start_child(Ports *ports, sd_event *event, const PortsOptions *options, char ***warnings,
		       char **ret_problem)
{
	size_t n_locals = count(ports, false), n = 0;
	_cleanup_free_ uint16_t *numbers = calloc(n_locals + 1, sizeof(*numbers));
	_cleanup_free_ int *listeners = calloc(n_locals + 1, sizeof(*listeners));
	_cleanup_free_ char *problem = NULL;
	int r;

	if (!numbers || !listeners)
		return -ENOMEM;
	for (size_t i = 0; i < ports->n; i++)
		if (!ports->ports[i].callback)
			numbers[n++] = ports->ports[i].number;
	r = relay_child_start(&ports->child,
			      &(RelayChildOptions){ .holder_pidfd = options->holder_pidfd,
						    .ports = numbers,
						    .n_ports = n_locals },
			      listeners, &problem);
	if (r < 0 && n_locals == 0)
		return strings_appendf(warnings, "no callback-port works: %s", problem ?: strerror(-r));
	if (r < 0)
		return refuse(ret_problem, r, "no local-port works: %s", problem ?: strerror(-r));

	r = open_locals(ports, listeners, warnings);
	for (size_t i = 0; i < n_locals; i++)
		close_fdp(&listeners[i]);
	if (r < 0)
		return r;
	if (count(ports, true) == 0) {
		relay_child_done(&ports->child);
		return 0;
	}
	r = sd_event_add_io(event, &ports->ended, ports->child.pidfd, EPOLLIN, on_child_ended, ports);
	if (r >= 0)
		r = sd_event_add_io(event, &ports->sockets, ports->child.channel_fd, EPOLLIN, on_sockets,
				    ports);
	if (r >= 0)
		r = sd_event_source_set_enabled(ports->sockets, SD_EVENT_OFF);
	return r < 0 ? r : open_callbacks(ports, warnings);
}

int ports_new(sd_event *event, const PortsOptions *options, char ***warnings, Ports **ret, char **ret_problem)
{
	static const ConfigKey keys[] = { CONFIG_LOCAL_PORT, CONFIG_LOCAL_MODEL_PORT, CONFIG_CALLBACK_PORT };
	_cleanup_(ports_freep) Ports *ports = malloc(sizeof(*ports));
	int r = 0;

	if (!ports)
		return -ENOMEM;
	*ports = (Ports){ .child = RELAY_CHILD_INIT, .diag_fd = FD_NONE, .uid = options->uid };
	ports->ports = calloc(options->config->n_values + 1, sizeof(*ports->ports));
	if (!ports->ports)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(keys); i++)
		r = add_ports(ports, options, keys[i]);
	if (r == 0 && ports->n == 0) {
		*ret = NULL;
		return 0;
	}
	if (r == 0 && options->jailed)
		r = start_relay(ports, event, warnings);
	if (r == 0 && options->jailed)
		r = start_child(ports, event, options, warnings, ret_problem);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ports);
	return 0;
}

void ports_stop(Ports *ports)
{
	if (ports && ports->relay)
		relay_flush(ports->relay);
	for (size_t i = 0; ports && i < ports->n; i++)
		port_close(&ports->ports[i], PORT_ENDED);
}

Ports *ports_free(Ports *ports)
{
	if (!ports)
		return NULL;
	(void)sd_event_source_disable_unref(ports->ended);
	(void)sd_event_source_disable_unref(ports->sockets);
	(void)relay_free(ports->relay);
	relay_child_done(&ports->child);
	close_fdp(&ports->diag_fd);
	for (size_t i = 0; i < ports->n; i++)
		free(ports->ports[i].origin);
	free(ports->ports);
	free(ports);
	return NULL;
}

size_t ports_count(const Ports *ports)
{
	return ports ? ports->n : 0;
}

PortsRow ports_row(const Ports *ports, size_t i)
{
	const Port *port = &ports->ports[i];

	return (PortsRow){ .port = port->number,
			   .direction = port->callback ? "callback" : "local",
			   .state = state_names[port->state],
			   .origin = port->origin };
}
