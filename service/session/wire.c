/* SPDX-License-Identifier: MIT */
#include "service/session/wire.h"

#include <sys/epoll.h>

#include "dbus/causes.h"
#include "service/net/monitor.h"

#define WIRE_DEADLINE_USEC (10 * USEC_PER_SEC)
#define WIRE_RETRY_FIRST_USEC (20 * USEC_PER_MSEC)
#define WIRE_RETRY_MAX_USEC (4 * USEC_PER_SEC)
/* A pasta that held for so long has earned a quick restart again. */
#define WIRE_STEADY_USEC (30 * USEC_PER_SEC)

typedef enum WireState {
	WIRE_HELD,     /* must not be */
	WIRE_WAITING,  /* waits before the next try */
	WIRE_STARTING, /* pasta runs, LOWER_UP has not come */
	WIRE_UP,
	WIRE_FAILED,
} WireState;

struct Wire {
	sd_event *event;
	WireOptions options;
	char *path;
	WireCalls calls;
	void *userdata;
	WireState state;
	bool first;          /* no wire was ever up or given up */
	char *first_problem; /* why pasta did not join by descriptors, or NULL */
	uint64_t retry_usec, up_since_usec;
	Pasta *pasta;
	Monitor monitor;
	sd_event_source *watch_source, *timer;
};

static void wire_timer(Wire *wire, uint64_t usec)
{
	(void)sd_event_source_set_time_relative(wire->timer, usec);
	(void)sd_event_source_set_enabled(wire->timer, SD_EVENT_ONESHOT);
}

static uint64_t now_usec(Wire *wire)
{
	uint64_t usec = 0;

	(void)sd_event_now(wire->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static int wire_start(Wire *wire, char **ret_problem);

/*
 * Pasta ended before there was a wire: once it is told the namespaces in the other way, which asks more of it.
 * What kept it from the first is what a person is told, whatever comes of the second.
 */
static bool wire_other_way(Wire *wire, const char *problem)
{
	_cleanup_free_ char *second = NULL;

	if (!wire->first || wire->state != WIRE_STARTING || wire->first_problem)
		return false;
	wire->first_problem = strdup(problem);
	wire->pasta = pasta_free(wire->pasta);
	wire->options.pasta.way = PASTA_BY_PROCESS;
	return wire->first_problem && wire_start(wire, &second) == 0;
}

/* There is no wire now. The first time that is a refusal; later it heals. */
static void wire_lost(Wire *wire, const char *problem)
{
	bool was_up = wire->state == WIRE_UP;

	wire->pasta = pasta_free(wire->pasta);
	if (wire->first) {
		wire->state = WIRE_FAILED;
		(void)sd_event_source_set_enabled(wire->timer, SD_EVENT_OFF);
		wire->calls.failed(wire->userdata, wire->first_problem ?: problem);
		return;
	}
	if (was_up && now_usec(wire) - wire->up_since_usec >= WIRE_STEADY_USEC)
		wire->retry_usec = WIRE_RETRY_FIRST_USEC;
	wire->state = WIRE_WAITING;
	wire_timer(wire, wire->retry_usec);
	wire->retry_usec = MIN_OF(wire->retry_usec * 4, WIRE_RETRY_MAX_USEC);
	if (was_up)
		wire->calls.down(wire->userdata, problem);
}

static void wire_is_up(Wire *wire)
{
	if (wire->state != WIRE_STARTING)
		return;
	wire->state = WIRE_UP;
	wire->first = false;
	wire->up_since_usec = now_usec(wire);
	(void)sd_event_source_set_enabled(wire->timer, SD_EVENT_OFF);
	wire->calls.up(wire->userdata);
}

static void on_pasta_ended(void *userdata, const char *line)
{
	_cleanup_free_ char *problem = NULL;
	Wire *wire = userdata;

	if (asprintf(&problem, BECAUSE(PASTA_ENDED), line ?: "without a word") < 0)
		problem = NULL;
	if (!wire_other_way(wire, problem ?: "pasta ended"))
		wire_lost(wire, problem ?: "pasta ended");
}

static int wire_start(Wire *wire, char **ret_problem)
{
	PastaOptions *pasta = &wire->options.pasta;
	int r;

	/* Each time: the package may have become another one. */
	pasta->knows_dns_host = pasta_knows_dns_host(pasta->path);
	r = pasta_start(wire->event, pasta, on_pasta_ended, wire, &wire->pasta, ret_problem);
	if (r < 0)
		return r;
	wire->state = WIRE_STARTING;
	wire_timer(wire, WIRE_DEADLINE_USEC);
	return 0;
}

static void wire_try(Wire *wire)
{
	_cleanup_free_ char *problem = NULL;

	if (wire_start(wire, &problem) < 0)
		wire_lost(wire, problem ?: "out of memory");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	Wire *wire = userdata;

	switch (wire->state) {
	case WIRE_STARTING:
		/* An event may have been lost; the kernel knows. */
		if (monitor_wire_is_up(wire->options.sockets->route_fd) == 1)
			wire_is_up(wire);
		else
			wire_lost(wire, BECAUSE(PASTA_SILENT));
		break;
	case WIRE_WAITING:
		wire_try(wire);
		break;
	case WIRE_HELD:
	case WIRE_UP:
	case WIRE_FAILED:
		break;
	}
	return 0;
}

static int on_watch(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Wire *wire = userdata;
	Monitor *monitor = &wire->monitor;
	_cleanup_free_ char *foreign = NULL;
	int r;

	monitor->wire_up = monitor->look = false;
	r = monitor_read(monitor);
	foreign = TAKE_PTR(monitor->foreign);
	if (r < 0 && r != -ENOBUFS && r != -EAGAIN)
		/* A socket that cannot be read would wake the loop for ever; the read-back says what is the
		 * matter. */
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (monitor->wire_up || (r == -ENOBUFS && monitor_wire_is_up(wire->options.sockets->route_fd) == 1))
		wire_is_up(wire);
	if (monitor->look || foreign)
		wire->calls.changed(wire->userdata, foreign);
	return 0;
}

static int wire_begin(Wire *wire, char **ret_problem)
{
	int r;

	/* Older events about the tap, which had carrier while the holder owned it, say how it is now
	 * (monitor.c).
	 */
	r = sd_event_add_io(wire->event, &wire->watch_source, wire->options.sockets->watch_fd, EPOLLIN,
			    on_watch, wire);
	if (r == 0)
		r = sd_event_add_time_relative(wire->event, &wire->timer, CLOCK_MONOTONIC, WIRE_DEADLINE_USEC,
					       0, on_timer, wire);
	return r < 0 ? r : wire_start(wire, ret_problem);
}

int wire_new(sd_event *event, const WireOptions *options, const WireCalls *calls, void *userdata, Wire **ret,
	     char **ret_problem)
{
	_cleanup_(wire_freep) Wire *wire = NULL;
	int r;

	wire = malloc(sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (Wire){ .event = sd_event_ref(event),
			.options = *options,
			.path = strdup(options->pasta.path),
			.calls = *calls,
			.userdata = userdata,
			.first = true,
			.retry_usec = WIRE_RETRY_FIRST_USEC };
	wire->options.pasta.path = wire->path;
	r = monitor_init(&wire->monitor, options->sockets, options->denial);
	if (r == 0)
		r = wire->path ? wire_begin(wire, ret_problem) : -ENOMEM;
	if (r < 0)
		return ret_problem && *ret_problem
			       ? r
			       : refuse(ret_problem, r, "the wire cannot be watched: %s", strerror(-r));
	*ret = TAKE_PTR(wire);
	return 0;
}

int wire_read_back(const Wire *wire, char **ret_problem)
{
	if (!wire || wire->state != WIRE_UP || !wire->pasta)
		return 0;
	return pasta_read_back(wire->pasta, &wire->options.pasta, ret_problem);
}

const char *wire_other_way_because(const Wire *wire)
{
	return wire ? wire->first_problem : NULL;
}

char *wire_profile(const Wire *wire)
{
	return wire ? pasta_profile(wire->pasta) : NULL;
}

void wire_tell_server(Wire *wire, uint32_t server)
{
	if (wire->options.pasta.server == server)
		return;
	wire->options.pasta.server = server;
	/* One that waits to be started is told then. */
	if (wire->state != WIRE_UP && wire->state != WIRE_STARTING)
		return;
	wire->retry_usec = WIRE_RETRY_FIRST_USEC;
	wire->pasta = pasta_free(wire->pasta);
	wire_try(wire);
}

void wire_hold(Wire *wire)
{
	bool was_up = wire->state == WIRE_UP;

	if (wire->state == WIRE_HELD || wire->state == WIRE_FAILED)
		return;
	wire->pasta = pasta_free(wire->pasta);
	wire->state = WIRE_HELD;
	(void)sd_event_source_set_enabled(wire->timer, SD_EVENT_OFF);
	if (was_up || wire->first)
		wire->calls.down(wire->userdata, NULL);
	wire->first = false;
}

void wire_release(Wire *wire)
{
	if (wire->state == WIRE_HELD)
		wire_try(wire);
}

void wire_end(Wire *wire)
{
	if (!wire)
		return;
	(void)sd_event_source_set_enabled(wire->watch_source, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(wire->timer, SD_EVENT_OFF);
	pasta_end(wire->pasta);
}

Wire *wire_free(Wire *wire)
{
	if (!wire)
		return NULL;
	wire->pasta = pasta_free(wire->pasta);
	(void)sd_event_source_disable_unref(wire->watch_source);
	(void)sd_event_source_disable_unref(wire->timer);
	monitor_done(&wire->monitor);
	(void)sd_event_unref(wire->event);
	free(wire->path);
	free(wire->first_problem);
	free(wire);
	return NULL;
}
