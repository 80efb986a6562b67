/* SPDX-License-Identifier: MIT */
/*
 * A log is long, and everybody may ask for it: it is read and written into the answer in small steps, in turn by
 * user (turns.h), one call of a user after the other.
 */
#include "service/daemon/audit-bus.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/audit-store.h"
#include "service/daemon/call.h"
#include "service/daemon/log.h"
#include "service/daemon/record.h"
#include "service/daemon/request.h"

static int append_event(sd_bus_message *m, const AuditEvent *event)
{
	int r;

	r = sd_bus_message_open_container(m, 'r', "tsusa{ss}");
	if (r >= 0)
		r = sd_bus_message_append(m, "tsus", event->usec, audit_kind_name(event->kind), event->uid,
					  event->session);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{ss}");
	for (size_t i = 0; r >= 0 && i < event->n_details; i++)
		r = sd_bus_message_append(m, "{ss}", event->details[i].name, event->details[i].value);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Calls of one user that wait. */
#define CALLS_OF_USER_MAX 64u
#define EVENTS_OF_STEP 32u

/* A call that reads the log. */
struct LogCall {
	Manager *manager;
	Client *client;
	sd_bus_message *call, *reply;
	char session[CS_ID_LENGTH + 1];
	AuditQuery query;
	Turn turn;
	AuditReading *reading;
	AuditEvents events;
	size_t written; /* of events */
	bool read;      /* events are complete */
	LogCall *next;
};

static void call_free(LogCall *call)
{
	for (LogCall **c = &call->manager->log_calls; *c; c = &(*c)->next)
		if (*c == call) {
			*c = call->next;
			break;
		}
	turns_leave(call->manager->turns, &call->turn);
	audit_reading_free(call->reading);
	audit_events_done(&call->events);
	client_unref(call->client);
	sd_bus_message_unref(call->call);
	sd_bus_message_unref(call->reply);
	free(call);
}

/* The user's oldest call goes on; the others wait behind it. Return: 0 or -ENOMEM. */
static int calls_continue(Manager *manager, uid_t uid)
{
	LogCall *oldest = NULL;

	for (LogCall *c = manager->log_calls; c; c = c->next)
		if (c->client->uid == uid)
			oldest = c;
	return oldest ? turns_wait(manager->turns, uid, &oldest->turn) : 0;
}

static void call_end(LogCall *call)
{
	Manager *manager = call->manager;
	uid_t uid = call->client->uid;

	call_free(call);
	if (calls_continue(manager, uid) < 0)
		log_line("no memory: calls of uid %u wait for its next one", uid);
}

static void call_refuse(LogCall *call, int r)
{
	if (r == -ENOMEM)
		(void)sd_bus_reply_method_errno(call->call, r, NULL);
	else
		(void)sd_bus_reply_method_errorf(
			call->call, SD_BUS_ERROR_FAILED,
			"The audit log in %s cannot be read: %s; look at what is there.", CS_LOG_DIR,
			strerror(-r));
}

/* Return: 1 when there is more to do, 0 when the answer is sent. */
static int call_write(LogCall *call)
{
	size_t end = MIN_OF(call->written + EVENTS_OF_STEP, call->events.n);
	int r = 0;

	if (!call->reply) {
		r = sd_bus_message_new_method_return(call->call, &call->reply);
		if (r >= 0)
			r = sd_bus_message_open_container(call->reply, 'a', CS_EVENT_SIGNATURE);
	}
	for (; r >= 0 && call->written < end; call->written++)
		r = append_event(call->reply, &call->events.events[call->written]);
	if (r < 0 || call->written < call->events.n)
		return r < 0 ? r : 1;
	r = sd_bus_message_close_container(call->reply);
	if (r >= 0)
		r = sd_bus_send(NULL, call->reply, NULL);
	return r < 0 ? r : 0;
}

static int call_read(LogCall *call)
{
	int r = 0;

	if (!call->reading)
		r = audit_reading_new(&call->query, &call->reading);
	if (r >= 0)
		r = audit_reading_step(call->reading, &call->events);
	call->read = r == 0;
	return r < 0 ? r : 1;
}

static void call_step(void *userdata)
{
	LogCall *call = userdata;
	int r;

	r = call->read ? call_write(call) : call_read(call);
	if (r < 0)
		call_refuse(call, r);
	if (r <= 0)
		call_end(call);
}

static int call_new(Manager *manager, Client *client, sd_bus_message *m, const AuditQuery *query)
{
	LogCall *call = calloc(1, sizeof(*call));
	int r;

	if (!call)
		return -ENOMEM;
	*call = (LogCall){
		.manager = manager,
		.client = client_ref(client),
		.query = *query,
		.turn = { .step = call_step, .userdata = call },
		.next = manager->log_calls,
	};
	manager->log_calls = call;
	if (query->session) {
		(void)snprintf(call->session, sizeof(call->session), "%s", query->session);
		call->query.session = call->session;
	}
	r = call_keep(m, &call->call);
	if (r >= 0)
		r = calls_continue(manager, client->uid);
	if (r < 0)
		call_free(call);
	return r < 0 ? r : 1;
}

int audit_bus_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		   sd_bus_error *reterr)
{
	uint64_t after = 0, max = AUDIT_EVENTS_MAX;
	const OptionSpec options[] = { { "after", 't', &after }, { "max", 't', &max } };
	AuditQuery query = { .everybody = client->uid == 0, .uid = client->uid };
	const char *session;
	size_t waiting = 0;
	int r;

	r = sd_bus_message_read(m, "s", &session);
	if (r < 0)
		return r;
	r = options_read(m, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	if (*session && !session_id_valid(session))
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
					 "A session's id has %d characters of [a-z2-7]; give it whole.",
					 CS_ID_LENGTH);
	for (const LogCall *c = manager->log_calls; c; c = c->next)
		waiting += c->client->uid == client->uid;
	if (waiting >= CALLS_OF_USER_MAX)
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"%u calls of yours wait for the log; wait for answers before you send "
			"more.",
			CALLS_OF_USER_MAX);
	/* What the answer would not have without it. */
	if (client->uid == 0)
		allow_seen_look(manager->allow_seen);
	query.session = *session ? session : NULL;
	query.after = after;
	query.max = (size_t)MIN_OF(max, (uint64_t)AUDIT_EVENTS_MAX);
	return call_new(manager, client, m, &query);
}

void audit_bus_forget(Manager *manager, const Client *client)
{
	for (LogCall *call = manager->log_calls, *next; call; call = next) {
		next = call->next;
		if (client && call->client != client)
			continue;
		if (!client)
			(void)sd_bus_reply_method_errorf(call->call, CS_ERROR_SHUTTING_DOWN,
							 "The service is stopping; try again.");
		call_free(call);
	}
	if (client && calls_continue(manager, client->uid) < 0)
		log_line("no memory: calls of uid %u wait for its next one", client->uid);
}

void audit_bus_tell(void *userdata, const AuditEvent *event)
{
	Manager *manager = userdata;

	for (Client *client = clients_first(manager->clients); client; client = client->next) {
		_cleanup_message_ sd_bus_message *m = NULL;
		int r;

		if (!client->known || !client->subscribed || (client->uid != 0 && client->uid != event->uid))
			continue;
		r = sd_bus_message_new_signal(manager->bus, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					      CS_SIGNAL_EVENT);
		if (r >= 0)
			r = append_event(m, event);
		if (r >= 0)
			r = sd_bus_send_to(manager->bus, m, client->name, NULL);
		if (r < 0)
			log_line("a signal to %s is lost: %s", client->name, strerror(-r));
	}
}
