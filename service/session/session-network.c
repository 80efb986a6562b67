/* SPDX-License-Identifier: MIT */

/*
 * The network of a session that starts or runs: the wire, changes of the jail's own network, which end it,
 * and changes of the host's, which it follows. What the host has come to be connected to is denied before
 * anything else is done. Where it cannot be known, or the denial cannot be changed, there is no wire until it
 * can.
 */

#include "base/clock.h"
#include "service/session/session-state.h"

#include <poll.h>

#include "dbus/causes.h"
#include "dbus/names.h"

/* Between two looks at the agent's flows lies so many times what the last one took. */
#define FLOWS_PAUSE_FACTOR 10u
#define READ_BACK_USEC (100 * USEC_PER_MSEC) /* a burst of events is read back once */

bool session_is_offline(const Session *session)
{
	return session->network.jailed && (session->wire_down || !session->network.host.uplink);
}

void session_end_for_the_network(Session *session, const char *cause)
{
	_cleanup_free_ char *why = NULL;

	/* A namespace that is not what was meant holds no agent for a moment longer. */
	if (session->phase == PHASE_STARTING) {
		doctor_reach(session->doctor, DOCTOR_CHAIN_ROUTES);
		session_fail(session, CS_ERROR_ROUTES_DIFFER, cause);
		return;
	}
	if (asprintf(&why,
		     "the session was ended: its network is no longer what was meant (%s); start it anew, "
		     "and look "
		     "for a program that changes networks",
		     cause) < 0)
		why = NULL;
	session_end_because(session, why ?: "the session was ended: its network is no longer what was meant");
}

/* ---- the wire ---- */

static void on_wire_up(void *userdata)
{
	Session *session = userdata;

	session->wire_known = true;
	session->wire_down = false;
	session_doctor_wire(session, NULL);
	session_tell(session);
	session_advance(session);
}

static void on_wire_down(void *userdata, const char *problem)
{
	Session *session = userdata;

	session->wire_known = true;
	session->wire_down = true;
	session_tell(session);
	session_advance(session);
}

static void on_wire_failed(void *userdata, const char *problem)
{
	const Session *session = userdata;
	struct pollfd holder = { .fd = session->holder.pidfd, .events = POLLIN };

	/* Pasta finds no namespace where bwrap has ended, whose own words are about to be read. */
	if (session->phase == PHASE_STARTING && session->executed && poll(&holder, 1, 0) > 0)
		return;
	session_doctor_wire(session, problem);
	session_fail(userdata, CS_ERROR_JAIL_UNAVAILABLE, problem);
}

static int on_read_back(sd_event_source *source, uint64_t usec, void *userdata)
{
	_cleanup_free_ char *problem = NULL;
	Session *session = userdata;
	int r = network_read_back(&session->network, &problem);

	if (r < 0)
		session_end_for_the_network(session, problem ?: strerror(-r));
	return 0;
}

static void on_wire_changed(void *userdata, const char *foreign)
{
	Session *session = userdata;
	int enabled = SD_EVENT_OFF;

	if (session->phase > PHASE_RUNNING)
		return;
	/* Even if it is undone already, whoever did it may do it again. */
	if (foreign) {
		session_end_for_the_network(session, foreign);
		return;
	}
	if (!session->read_back) {
		if (sd_event_add_time_relative(session->event, &session->read_back, CLOCK_MONOTONIC,
					       READ_BACK_USEC, 1, on_read_back, session) < 0)
			session_end_for_the_network(session, "it cannot be looked at: out of memory");
		return;
	}
	(void)sd_event_source_get_enabled(session->read_back, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(session->read_back, READ_BACK_USEC);
	(void)sd_event_source_set_enabled(session->read_back, SD_EVENT_ONESHOT);
}

static int warn_of_sharing(Session *session)
{
	const ConfigValue *value;
	size_t index = 0;

	value = config_next(&session->request.config, CONFIG_EGRESS_JAIL, &index);
	return strings_appendf(
		&session->warnings,
		"the network is not jailed (%s): the agent reaches all that this machine reaches, its own "
		"127.0.0.1 and abstract sockets included; remove egress-jail = 0 if that is not meant",
		value ? value->origin : "egress-jail");
}

int session_start_wire(Session *session, char **ret_problem)
{
	static const WireCalls calls = {
		.up = on_wire_up, .down = on_wire_down, .failed = on_wire_failed, .changed = on_wire_changed
	};
	const Network *network = &session->network;
	const PreparationNetwork facts = { .jailed = network->jailed,
					   .forwarder = network->routes.forwarder };
	_cleanup_(resolver_done) Resolver names = { 0 };

	if (!network->jailed) {
		session->wire_known = true;
		return warn_of_sharing(session);
	}
	if (!network->host.uplink)
		session_warn(session, (char *[]){ (char *)CAUSE_UPLINK_NONE ": " FIX_UPLINK_NONE, NULL });
	/* One that cannot be read names no server, and is warned of when the plan needs it. */
	(void)preparation_read_resolver(&facts, &names);
	return wire_new(session->event,
			&(WireOptions){ .pasta = { .path = session->pasta,
						   .uid = session->request.uid,
						   .gid = session->request.gid,
						   .holder = session->holder.pid,
						   .forwarder = network->routes.forwarder,
						   .server = resolver_first_ipv4(&names) },
					.sockets = &network->sockets,
					.denial = &network->denial },
			&calls, session, &session->wire, ret_problem);
}

/* ---- the host ---- */

static int on_flows(sd_event_source *source, uint64_t usec, void *userdata)
{
	Session *session = userdata;
	uint64_t begin = clock_usec(CLOCK_MONOTONIC);

	network_end_flows(&session->network);
	session->flows_not_before_usec =
		clock_usec(CLOCK_MONOTONIC) + FLOWS_PAUSE_FACTOR * (clock_usec(CLOCK_MONOTONIC) - begin);
	return 0;
}

/* An agent may hold very many, so they are looked at for a part of the time only, and never before a denial.
 */
static void end_flows_soon(Session *session)
{
	if (!session->flows) {
		(void)sd_event_add_time(session->event, &session->flows, CLOCK_MONOTONIC, 0, 1, on_flows,
					session);
		return;
	}
	(void)sd_event_source_set_time(session->flows, session->flows_not_before_usec);
	(void)sd_event_source_set_enabled(session->flows, SD_EVENT_ONESHOT);
}

static int on_host_changed(void *userdata)
{
	Session *session = userdata;
	Network *network = &session->network;
	bool was_offline = session_is_offline(session);
	_cleanup_free_ char *problem = NULL;
	int r;

	if (session->phase > PHASE_RUNNING || !session->wire)
		return 0;
	r = network_host_again(network, &session->request.config, &problem);
	if (r == -EREMCHG) {
		session_end_for_the_network(session, problem ?: strerror(-r));
		return 0;
	}
	if (r < 0) {
		_cleanup_(strings_freep) char **warnings = NULL;

		wire_hold(session->wire);
		(void)strings_appendf(&warnings,
				      "the session is offline until its network can follow the host's: %s",
				      problem ?: strerror(-r));
		session_warn_later(session, warnings);
		return r;
	}
	wire_release(session->wire);
	/* Where its file could not be watched. */
	session_look_at_resolver(session);
	if (r > 0) {
		end_flows_soon(session);
		session_warn_later(session, network->routes.warnings);
	}
	if (session_is_offline(session) != was_offline)
		session_tell(session);
	return 0;
}

int session_watch_host(Session *session)
{
	if (!config_flag(&session->request.config, CONFIG_EGRESS_JAIL))
		return 0;
	return host_changes_new(session->event, on_host_changed, session, &session->host);
}
