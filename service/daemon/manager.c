/* SPDX-License-Identifier: MIT */
/*
 * THE END OF THE SERVICE, when nobody needs it: the name is released first, and only the answer to that ends
 * the loop. The bus answers in order, so whatever was sent to the name before has been handled by then; what
 * is sent afterwards starts a new service. If something came in between, the name is taken back.
 */
#include "service/daemon/manager.h"

#include <assert.h>
#include <signal.h>

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/adopt.h"
#include "service/daemon/allow-ip.h"
#include "service/daemon/audit-bus.h"
#include "service/daemon/call.h"
#include "service/daemon/drift.h"
#include "service/daemon/launch.h"
#include "service/daemon/launch-queue.h"
#include "service/daemon/log.h"
#include "service/daemon/manager-bus.h"
#include "service/daemon/session-bus.h"
#include "service/daemon/session-tables.h"
#include "service/daemon/sight.h"
#include "service/daemon/verify-session.h"

#define STOPS_MAX 256u
#define STOPS_OF_USER_MAX 64u
#define RELEASE_USEC (2 * USEC_PER_SEC)
/* Longer than a launch may take, shorter than systemd waits (systemd-system.conf(5), DefaultTimeoutStopSec). */
#define LEAVE_USEC (80 * USEC_PER_SEC)

/* A call that waits for the end of a session. */
struct Stop {
	Manager *manager;
	Client *client;
	sd_bus_message *call;
	char id[CS_ID_LENGTH + 1];
	uint64_t grace_usec;
	bool blind;       /* there is no such session */
	AuthQuery *query; /* until somebody has decided */
	Stop *next;
};

static void stop_free(Stop *stop)
{
	for (Stop **s = &stop->manager->stops; *s; s = &(*s)->next)
		if (*s == stop) {
			*s = stop->next;
			break;
		}
	auth_query_cancel(stop->query);
	client_unref(stop->client);
	sd_bus_message_unref(stop->call);
	free(stop);
}

static void stop_refuse(Stop *stop, const char *name, const char *sentence)
{
	(void)sd_bus_reply_method_errorf(stop->call, name, "%s", sentence);
	stop_free(stop);
}

static void stop_refuse_unknown(Stop *stop)
{
	(void)sd_bus_reply_method_errorf(stop->call, CS_ERROR_NO_SUCH_SESSION,
					 "There is no session '%s'; 'claude-sandbox sessions' lists yours.",
					 stop->id);
	stop_free(stop);
}

static void stop_go(Stop *stop)
{
	Session *session = registry_find_shown(stop->manager->registry, stop->id);
	_cleanup_free_ char *why = NULL;

	if (stop->blind) {
		stop_refuse_unknown(stop);
		return;
	}
	/* It may have ended while somebody typed a password: that is what was wanted. */
	if (!session || !session->keeper) {
		(void)sd_bus_reply_method_return(stop->call, NULL);
		stop_free(stop);
		return;
	}
	audit_stop(stop->manager->audit, session, stop->client->uid);
	/* Whose it is knows what they did. */
	if (stop->client->uid == 0 && session->uid != 0)
		(void)refuse(&why, 0, "the session was stopped by root");
	else if (stop->client->uid != session->uid)
		(void)refuse(&why, 0, "the session was stopped by the user with uid %u", stop->client->uid);
	keeper_stop(session->keeper, stop->grace_usec, why);
}

static void on_stop_decided(void *userdata, int result, const char *reason)
{
	Stop *stop = userdata;
	_cleanup_free_ char *sentence = NULL;

	stop->query = NULL;
	if (result >= 0) {
		stop_go(stop);
		return;
	}
	audit_refused(stop->manager->audit, stop->client->uid, CS_MEMBER_STOP_SESSION,
		      CS_ERROR_NOT_AUTHORIZED, NULL, stop->id);
	(void)refuse(&sentence, result,
		     "There is no session '%s' that you may see; 'claude-sandbox sessions' lists yours. Of "
		     "another "
		     "user's: %s",
		     stop->id, reason);
	stop_refuse(stop, CS_ERROR_NO_SUCH_SESSION, sentence ? sentence : reason);
}

static size_t stops_count(const Manager *manager, uid_t uid, size_t *ret_all)
{
	size_t n = 0, all = 0;

	for (const Stop *s = manager->stops; s; s = s->next, all++)
		n += s->client->uid == uid;
	*ret_all = all;
	return n;
}

static bool is_id(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz234567");

	return n == CS_ID_LENGTH && text[n] == '\0';
}

/*
 * May the caller stop it? Of a session that is not there polkit is asked all the same, though nobody is to
 * type a password for it: who may not stop another's session learns nothing of whether there is one.
 */
static int stop_ask(Stop *stop, sd_bus_message *call, const char *action)
{
	const char *const details[] = { "session", stop->id, NULL };
	const AuthQuestion question = {
		.actions = { action },
		.message = "Authentication is required to stop the session $(session) of another user",
		.details = details,
		.quiet = stop->blind,
	};

	return auth_ask_question(stop->manager->auth, stop->client, call, &question, on_stop_decided, stop,
				 &stop->query);
}

int manager_stop(Manager *manager, Client *client, sd_bus_message *call, const char *id, uint64_t grace_usec,
		 const char *action, sd_bus_error *reterr)
{
	Session *session = registry_find_shown(manager->registry, id);
	size_t all;
	Stop *stop;
	int r;

	if (!session && !is_id(id))
		return sd_bus_error_setf(
			reterr, CS_ERROR_NO_SUCH_SESSION,
			"There is no session '%.64s'; 'claude-sandbox sessions' lists yours.", id);
	if (stops_count(manager, client->uid, &all) >= STOPS_OF_USER_MAX || all >= STOPS_MAX)
		return sd_bus_error_setf(reterr, CS_ERROR_LIMITS_EXCEEDED,
					 "Too many calls wait for sessions to end; try again later.");
	stop = calloc(1, sizeof(*stop));
	if (!stop)
		return -ENOMEM;
	*stop = (Stop){
		.manager = manager,
		.client = client_ref(client),
		.grace_usec = grace_usec,
		.blind = !session,
		.next = manager->stops,
	};
	memcpy(stop->id, id, sizeof(stop->id));
	manager->stops = stop;

	r = call_keep(call, &stop->call);
	if (r >= 0)
		r = 1;
	if (r >= 0 && !sight_is_wide(client) && (!session || !session_visible(session, client->uid)))
		r = stop_ask(stop, call, action);
	if (r < 0) {
		stop_free(stop);
		return r;
	}
	if (r > 0)
		stop_go(stop);
	return 1;
}

static void on_session_changed(void *userdata, Session *session, unsigned changes)
{
	Manager *manager = userdata;

	if (changes & KEEPER_POSTURE && !session->hidden)
		audit_posture(manager->audit, session);
	signals_session_changed(&manager->signals, session, changes);
	if (changes & KEEPER_STATE)
		verify_session_changed(manager, session);
}

static void on_session_denied(void *userdata, Session *session, const LinkRow *rows, uint32_t n)
{
	const Manager *manager = userdata;

	signals_denied(&manager->signals, session, rows, n);
}

static void on_session_destination(void *userdata, Session *session, const LinkRow *row, uint64_t n)
{
	const Manager *manager = userdata;

	if (!session->hidden)
		audit_destination(manager->audit, session, row, n);
}

static void on_session_started(void *userdata, Session *session)
{
	launch_session_started(userdata, session);
}

static void on_session_rows(void *userdata, Session *session, bool running, const LinkRow *rows, uint32_t n)
{
	if (running)
		verify_session_rows(userdata, session, rows, n);
	else
		launch_session_rows(userdata, session, rows, n);
}

static void on_session_failed(void *userdata, Session *session, const char *error, const char *text)
{
	launch_session_failed(userdata, session, error, text);
}

static void on_session_ended(void *userdata, Session *session)
{
	Manager *manager = userdata;

	launch_session_ended(manager, session);
	verify_session_ended(manager, session);
	if (!session->hidden)
		audit_exit(manager->audit, session);

	/* The signal tells of an object that is no longer there, and of a count without it. */
	keeper_free(session->keeper);
	registry_unlink(session);
	signals_session(&manager->signals, session, false);

	for (Stop *stop = manager->stops, *next; stop; stop = next) {
		next = stop->next;
		if (!streq(stop->id, session->id) || stop->query)
			continue;
		(void)sd_bus_reply_method_return(stop->call, NULL);
		stop_free(stop);
	}
	session_free(session);
	manager_subscribers_changed(manager);
	clients_release(manager->clients);
}

static void on_session_connected(void *userdata, Session *session)
{
	Manager *manager = userdata;

	manager_subscribers_changed(manager);
	allow_ip_connected(manager, session);
}

static void on_session_greeted(void *userdata, Session *session)
{
	Manager *manager = userdata;

	clients_release(manager->clients);
}

const KeeperEvents manager_keeper_events = {
	.greeted = on_session_greeted,
	.connected = on_session_connected,
	.changed = on_session_changed,
	.started = on_session_started,
	.denied = on_session_denied,
	.destination = on_session_destination,
	.rows = on_session_rows,
	.failed = on_session_failed,
	.ended = on_session_ended,
};

void manager_subscribers_changed(Manager *manager)
{
	bool any = registry_first(manager->registry);

	for (Client *c = clients_first(manager->clients); c && !any; c = c->next)
		any = c->known && c->subscribed;
	/* Nobody has seen what was done to the file before. */
	if (config_watch_set(manager->config_watch, any))
		allow_seen_look(manager->allow_seen);
}

static void on_client_gone(void *userdata, Client *client)
{
	Manager *manager = userdata;

	if (client->subscribed)
		manager_subscribers_changed(manager);
	launch_client_gone(manager, client);
	sight_forget(manager, client);
	session_tables_client_gone(manager, client);
	audit_bus_forget(manager, client);
	verify_session_client_gone(manager, client);
	allow_ip_client_gone(manager, client);
	for (Stop *stop = manager->stops, *next; stop; stop = next) {
		next = stop->next;
		if (stop->client == client)
			stop_free(stop);
	}
}

static bool must_wait(void *userdata, const Client *client)
{
	return client->asks_to_see || adopt_awaits(userdata, client);
}

static bool holds(void *userdata, Client *client, sd_bus_message *m)
{
	return sight_holds(userdata, client, m);
}

static void on_config_changed(void *userdata, bool policy, bool allow_ip)
{
	Manager *manager = userdata;

	drift_refresh_all(manager);
	if (policy)
		signals_manager(&manager->signals, CS_SIGNAL_POLICY_CHANGED);
	if (!allow_ip)
		return;
	signals_manager(&manager->signals, CS_SIGNAL_ALLOW_IP_CHANGED);
	allow_ip_file_changed(manager);
	allow_seen_look(manager->allow_seen);
}

/* Is a call not answered yet? What was put back into the library's queue is one, too. */
static bool manager_answers(const Manager *manager)
{
	uint64_t queued = 0;

	(void)sd_bus_get_n_queued_read(manager->bus, &queued);
	return queued > 0 || clients_hold(manager->clients) || manager->launches || manager->stops ||
	       manager->table_queries || manager->allow_calls || manager->sights || manager->verify_runs ||
	       manager->log_calls;
}

static bool manager_busy(const Manager *manager)
{
	if (registry_first(manager->registry) || manager_answers(manager))
		return true;
	for (Client *c = clients_first(manager->clients); c; c = c->next)
		if (c->subscribed)
			return true;
	return false;
}

static int on_named(sd_bus_message *reply, void *userdata, sd_bus_error *reterr);

static int on_released(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	Manager *manager = userdata;
	int r;

	if (!manager->stopping && !manager->leaving && manager_busy(manager)) {
		r = sd_bus_request_name_async(manager->bus, NULL, CS_BUS_NAME, 0, on_named, manager);
		if (r >= 0)
			return 0;
		log_line("the name cannot be taken back: %s", strerror(-r));
	}
	manager->released = true;
	return 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *userdata)
{
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static void manager_release(Manager *manager)
{
	int r;

	manager->named = false;
	(void)sd_event_source_set_enabled(manager->idle, SD_EVENT_OFF);
	r = sd_bus_release_name_async(manager->bus, NULL, CS_BUS_NAME, on_released, manager);
	if (r < 0)
		(void)sd_event_exit(manager->event, 0);
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata)
{
	Manager *manager = userdata;

	if (!manager->named || manager_busy(manager))
		return 0;
	/* For systemd the unit then ends, whatever we do: the name cannot be taken back. Sessions go on. */
	manager->leaving = manager->unit;
	if (manager->leaving)
		(void)sd_event_add_time_relative(manager->event, &manager->late, CLOCK_MONOTONIC, LEAVE_USEC,
						 0, on_late, manager);
	manager_release(manager);
	return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	Manager *manager = userdata;

	if (manager->stopping)
		return sd_event_exit(manager->event, 0);
	/* The first one is systemd's answer to the name's release. */
	if (manager->leaving && manager->unit) {
		manager->unit = false;
		return 0;
	}
	manager->stopping = true;
	launch_end_all(manager);
	sight_forget(manager, NULL);
	session_tables_end_all(manager);
	audit_bus_forget(manager, NULL);
	verify_session_end_all(manager);
	allow_ip_end_all(manager);
	while (manager->stops)
		stop_refuse(manager->stops, CS_ERROR_SHUTTING_DOWN, "The service is stopping; try again.");
	manager->late = sd_event_source_disable_unref(manager->late);
	(void)sd_event_add_time_relative(manager->event, &manager->late, CLOCK_MONOTONIC, RELEASE_USEC, 0,
					 on_late, manager);
	manager_release(manager);
	return 0;
}

void manager_touch(Manager *manager)
{
	if (manager->named)
		(void)sd_event_source_set_time_relative(manager->idle, MANAGER_IDLE_USEC);
}

/* After whatever has happened: nobody's work is done any more, and does the time of idleness run? */
static int after_event(sd_event_source *source, void *userdata)
{
	Manager *manager = userdata;
	bool idle = manager->named && !manager_busy(manager);
	int enabled = SD_EVENT_OFF;
	uint64_t unsent = 0;

	turns_end(manager->turns, sd_bus_get_n_queued_write(manager->bus, &unsent) < 0 || unsent == 0);
	if (manager->released && !manager_answers(manager))
		return sd_event_exit(manager->event, 0);
	(void)sd_event_source_get_enabled(manager->idle, &enabled);
	if (idle == (enabled != SD_EVENT_OFF))
		return 0;
	if (idle)
		(void)sd_event_source_set_time_relative(manager->idle, MANAGER_IDLE_USEC);
	return sd_event_source_set_enabled(manager->idle, idle ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_named(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	Manager *manager = userdata;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	uint32_t result = 0;

	/* D-Bus specification, RequestName: 1 is the primary owner, 4 already was. */
	if (!error && sd_bus_message_read(reply, "u", &result) >= 0 && (result == 1 || result == 4)) {
		if (!manager->named) {
			manager->named = true;
			adopt_sessions(manager);
			allow_seen_look(manager->allow_seen);
		}
		return 0;
	}
	if (error) {
		log_line("the bus does not give us the name %s: %s", CS_BUS_NAME,
			 error->message ? error->message : error->name);
		return sd_event_exit(manager->event, 1);
	}
	/* Another service was faster; it serves whoever calls. */
	log_line("the name %s has an owner already", CS_BUS_NAME);
	return sd_event_exit(manager->event, 0);
}

int manager_run(Manager *manager)
{
	return sd_bus_request_name_async(manager->bus, NULL, CS_BUS_NAME, 0, on_named, manager);
}

static const ClientEvents client_events = { .gone = on_client_gone, .waits = must_wait, .holds = holds };

static int manager_attach(Manager *manager)
{
	sd_event *event = manager->event;
	int r;

	r = clients_new(manager->bus, manager->turns, &client_events, manager, &manager->clients);
	if (r >= 0)
		r = config_watch_new(event, CS_CONFIG_PATH, on_config_changed, manager,
				     &manager->config_watch);
	if (r >= 0)
		r = auth_new(manager->bus, &manager->auth);
	if (r >= 0)
		r = users_new(&manager->users);
	if (r >= 0)
		r = cgroups_new(event, &manager->cgroups);
	if (r < 0)
		return r;
	manager->signals =
		(Signals){ .bus = manager->bus, .clients = manager->clients, .registry = manager->registry };
	r = audit_new(audit_bus_tell, manager, manager->users, &manager->audit);
	if (r >= 0)
		r = allow_seen_new(manager->audit, CS_CONFIG_PATH, &manager->allow_seen);
	if (r < 0)
		return r;

	r = sd_event_add_signal(event, &manager->terminate, SIGTERM, on_signal, manager);
	if (r >= 0)
		r = sd_event_add_signal(event, &manager->interrupt, SIGINT, on_signal, manager);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &manager->idle, CLOCK_MONOTONIC, MANAGER_IDLE_USEC,
					       USEC_PER_SEC, on_idle, manager);
	if (r >= 0)
		r = sd_event_add_post(event, &manager->after, after_event, manager);
	if (r >= 0)
		r = launch_queue_open(manager);
	if (r >= 0)
		r = manager_bus_register(manager);
	if (r >= 0)
		r = session_bus_register(manager);
	return r;
}

int manager_new(sd_event *event, sd_bus *bus, Manager **ret)
{
	_cleanup_(manager_freep) Manager *manager = calloc(1, sizeof(*manager));
	int r;

	if (!manager)
		return -ENOMEM;
	manager->event = sd_event_ref(event);
	manager->bus = sd_bus_ref(bus);
	r = registry_new(&manager->registry);
	if (r >= 0)
		r = turns_new(event, &manager->turns);
	if (r >= 0)
		r = manager_attach(manager);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(manager);
	return 0;
}

Manager *manager_free(Manager *manager)
{
	if (!manager)
		return NULL;
	manager->stopping = true;
	if (manager->clients)
		launch_end_all(manager);
	sight_forget(manager, NULL);
	session_tables_end_all(manager);
	audit_bus_forget(manager, NULL);
	verify_session_end_all(manager);
	allow_ip_end_all(manager);
	while (manager->stops)
		stop_refuse(manager->stops, CS_ERROR_SHUTTING_DOWN, "The service is stopping; try again.");
	clients_free(manager->clients);
	config_watch_free(manager->config_watch);
	auth_free(manager->auth);
	for (Session *s = manager->registry ? registry_first(manager->registry) : NULL; s; s = s->next)
		keeper_free(s->keeper);
	registry_free(manager->registry);
	turns_free(manager->turns);
	cgroups_free(manager->cgroups);
	users_free(manager->users);
	allow_seen_free(manager->allow_seen);
	audit_free(manager->audit);
	sd_event_source_disable_unref(manager->idle);
	sd_event_source_disable_unref(manager->after);
	sd_event_source_disable_unref(manager->late);
	sd_event_source_disable_unref(manager->settling);
	sd_event_source_disable_unref(manager->launch_turns);
	sd_event_source_disable_unref(manager->terminate);
	sd_event_source_disable_unref(manager->interrupt);
	sd_bus_unref(manager->bus);
	sd_event_unref(manager->event);
	free(manager);
	return NULL;
}
