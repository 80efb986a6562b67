/* SPDX-License-Identifier: MIT */

/* log: what happened, and with -f what happens. */

#include <inttypes.h>

#include "dbus/client-events.h"
#include "dbus/client-peer.h"
#include "dbus/text.h"
#include "shim/verb.h"
#include "shim/verbs.h"

/* The first ones are the event's own; of the others each is a detail of that name. */
static const PrintColumn columns[] = {
	{ "TIME", NULL, PRINT_ESCAPED, false },         { NULL, "time_usec", PRINT_NUMBER, false },
	{ "EVENT", "event", PRINT_ESCAPED, false },     { NULL, "uid", PRINT_NUMBER, false },
	{ "SESSION", "session", PRINT_ESCAPED, false }, { "USER", NULL, PRINT_ESCAPED, false },
	{ "DETAILS", NULL, PRINT_ESCAPED, true },       { NULL, "user", PRINT_ESCAPED, false },
	{ NULL, "agent", PRINT_ESCAPED, false },        { NULL, "workspace", PRINT_ESCAPED, false },
	{ NULL, "widened", PRINT_ESCAPED, false },      { NULL, "by", PRINT_ESCAPED, false },
	{ NULL, "posture", PRINT_ESCAPED, false },      { NULL, "cgroup", PRINT_ESCAPED, false },
	{ NULL, "laxer", PRINT_ESCAPED, false },        { NULL, "member", PRINT_ESCAPED, false },
	{ NULL, "error", PRINT_ESCAPED, false },        { NULL, "about", PRINT_ESCAPED, false },
	{ NULL, "change", PRINT_ESCAPED, false },       { NULL, "address", PRINT_ESCAPED, false },
	{ NULL, "comment", PRINT_ESCAPED, false },      { NULL, "seconds", PRINT_NUMBER, false },
	{ NULL, "attempts", PRINT_ESCAPED, false },     { NULL, "most", PRINT_ESCAPED, false },
	{ NULL, "to", PRINT_ESCAPED, false },           { NULL, "destinations", PRINT_ESCAPED, false },
	{ NULL, "file", PRINT_ESCAPED, false },         { NULL, "owner", PRINT_ESCAPED, false },
	{ NULL, "written", PRINT_ESCAPED, false },      { NULL, "confirmed", PRINT_ESCAPED, false },
	{ NULL, "status", PRINT_ESCAPED, false },       { NULL, "why", PRINT_ESCAPED, false },
};

enum {
	COLUMN_TIME,
	COLUMN_USEC,
	COLUMN_EVENT,
	COLUMN_UID,
	COLUMN_SESSION,
	COLUMN_USER,
	COLUMN_DETAILS,
	COLUMN_OWN,
	COLUMNS = ELEMENTSOF(columns),
};

/* The cells that are made; the others are borrowed from the event. */
typedef struct Texts {
	char *time, *usec, *uid, *details;
} Texts;

typedef struct Rows {
	Texts *texts;
	const char **cells;
	size_t n;
} Rows;

static void rows_done(Rows *rows)
{
	for (size_t i = 0; rows->texts && i < rows->n; i++) {
		free(rows->texts[i].time);
		free(rows->texts[i].usec);
		free(rows->texts[i].uid);
		free(rows->texts[i].details);
	}
	free(rows->texts);
	free(rows->cells);
}

/* All but the user, who has a column. */
static char *make_details(const ClientEvent *event)
{
	_cleanup_free_ char *details = strdup("");

	for (size_t i = 0; details && i < event->details.n_rows; i++) {
		_cleanup_free_ char *before = details;
		const char *name = event->details.cells[i * 2];

		details = NULL;
		if (streq(name, "user"))
			details = strdup(before);
		else if (asprintf(&details, "%s%s%s %s", before, *before ? ", " : "", name,
				  event->details.cells[i * 2 + 1]) < 0)
			details = NULL;
	}
	return TAKE_PTR(details);
}

static int make_row(const ClientEvent *event, Texts *texts, const char **cells)
{
	if (asprintf(&texts->usec, "%" PRIu64, event->usec) < 0)
		texts->usec = NULL;
	if (asprintf(&texts->uid, "%" PRIu32, event->uid) < 0)
		texts->uid = NULL;
	texts->time = print_time(event->usec);
	texts->details = make_details(event);
	if (!texts->usec || !texts->uid || !texts->time || !texts->details)
		return -ENOMEM;
	cells[COLUMN_TIME] = texts->time;
	cells[COLUMN_USEC] = texts->usec;
	cells[COLUMN_EVENT] = event->kind;
	cells[COLUMN_UID] = texts->uid;
	cells[COLUMN_SESSION] = *event->session ? event->session : NULL;
	cells[COLUMN_USER] = client_event_detail(event, "user") ?: texts->uid;
	cells[COLUMN_DETAILS] = texts->details;
	for (size_t c = COLUMN_OWN; c < COLUMNS; c++)
		cells[c] = client_event_detail(event, columns[c].key);
	return 0;
}

static int make_rows(const ClientEvent *events, size_t n, Rows *rows)
{
	rows->n = n;
	rows->texts = calloc(n + 1, sizeof(*rows->texts));
	rows->cells = calloc(n + 1, COLUMNS * sizeof(*rows->cells));
	if (!rows->texts || !rows->cells)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (make_row(&events[i], &rows->texts[i], rows->cells + i * COLUMNS) < 0)
			return -ENOMEM;
	return 0;
}

/* What -f shows, one event after the other. */
typedef struct Follower {
	const SandboxCall *call;
	const SandboxContext *context;
	const char *session; /* "" for all */
	uint64_t last_usec;  /* shown already */
	bool again;          /* the service has gone: what it said meanwhile was for nobody */
	int status;
	char *owner; /* of the service's name: nobody else is believed */
} Follower;

/* A table would have its widths from all of its rows. */
static int show_line(const SandboxContext *context, const Rows *rows, const char *session)
{
	_cleanup_free_ char *text = NULL, *shown = NULL;

	if (asprintf(&text, "%s  %-8s  %-*s  %-8s  %s", rows->cells[COLUMN_TIME], rows->cells[COLUMN_EVENT],
		     CS_ID_LENGTH, session, rows->cells[COLUMN_USER], rows->cells[COLUMN_DETAILS]) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	shown = text_sentence(text, context->style.utf8);
	if (!shown)
		return -ENOMEM;
	fprintf(context->out, "%s\n", shown);
	return 0;
}

static void follower_show(Follower *follower, const ClientEvent *event)
{
	const SandboxContext *context = follower->context;
	_cleanup_(rows_done) Rows rows = { 0 };
	int r;

	if (event->usec <= follower->last_usec ||
	    (*follower->session && !streq(follower->session, event->session)))
		return;
	follower->last_usec = event->usec;
	r = make_rows(event, 1, &rows);
	if (r >= 0 && follower->call->json) {
		r = print_json_line(context->out, &(PrintTable){ columns, COLUMNS, 1, rows.cells },
				    &context->style);
	} else if (r >= 0) {
		r = show_line(context, &rows, event->session);
	}
	if (r >= 0)
		r = print_result(context->out);
	if (r == -ENOMEM)
		follower->status = verb_complain_memory(context);
	else if (r < 0)
		follower->status = CS_EXIT_REFUSED;
}

static int on_event(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(client_event_done) ClientEvent event = { 0 };

	Follower *follower = userdata;

	if (client_is_from(m, follower->owner) && client_read_event(m, &event) >= 0)
		follower_show(follower, &event);
	return 0;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Follower *follower = userdata;
	const char *name, *before, *after;

	if (client_is_from_bus(m) && sd_bus_message_read(m, "sss", &name, &before, &after) >= 0 && *before)
		follower->again = true;
	return 0;
}

/* Subscribing first: what happens in between comes twice rather than never. */
static int catch_up(Follower *follower, sd_bus *bus, sd_bus_error *reterr)
{
	_cleanup_(client_events_done) ClientEvents events = { 0 };
	int r;

	follower->again = false;
	r = client_subscribe(bus, reterr);
	free(TAKE_PTR(follower->owner));
	if (r >= 0)
		r = client_find_owner(bus, &follower->owner, reterr);
	if (r >= 0)
		r = client_list_events(bus, follower->session, follower->last_usec, &events, reterr);
	for (size_t i = 0; r >= 0 && i < events.n && follower->status == 0; i++)
		follower_show(follower, &events.items[i]);
	return r;
}

static int follow(Follower *follower, sd_bus *bus)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	r = sd_bus_match_signal(bus, NULL, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
				CS_SIGNAL_EVENT, on_event, follower);
	if (r >= 0)
		r = sd_bus_add_match(bus, NULL,
				     "type='signal',sender='org.freedesktop.DBus',"
				     "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
				     "arg0='" CS_BUS_NAME "'",
				     on_owner, follower);
	if (r >= 0)
		r = catch_up(follower, bus, &error);
	while (r >= 0 && follower->status == 0) {
		if (follower->again)
			r = catch_up(follower, bus, &error);
		else if ((r = sd_bus_process(bus, NULL)) == 0 && (r = verb_wait(follower->context, bus)) > 0)
			return CS_EXIT_REFUSED;
		if (r == -EINTR)
			r = 0;
	}
	return r < 0 ? verb_complain(follower->context, r, &error) : follower->status;
}

static int follow_all(const SandboxCall *call, const SandboxContext *context, const char *session,
		      sd_bus *bus)
{
	Follower follower = { .call = call, .context = context, .session = session };
	int status = follow(&follower, bus);

	free(follower.owner);
	return status;
}

/*
 * The session that is meant: one that has ended is known by its events alone. Return: 0 with *ret, or an exit
 * status, and the sentence is said.
 */
static int find_whole(const SandboxContext *context, sd_bus *bus, const char *prefix, char **ret)
{
	_cleanup_(client_events_done) ClientEvents events = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	const char *found = NULL;
	int r = 0;

	if (strlen(prefix) == CS_ID_LENGTH)
		found = prefix;
	else
		r = client_list_events(bus, "", 0, &events, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	for (size_t i = 0; i < events.n; i++) {
		const char *session = events.items[i].session;

		if (!starts_with(session, prefix) || (found && streq(session, found)))
			continue;
		if (found)
			return verb_refuse(
				context, CS_EXIT_FOUND,
				"more than one session of which something is known begins with '%s'; "
				"write more of its id",
				prefix);
		found = session;
	}
	if (!found)
		return verb_refuse(
			context, CS_EXIT_FOUND,
			"none of the newest events is about a session that begins with '%s'; write its "
			"whole id",
			prefix);
	*ret = strdup(found);
	return *ret ? 0 : verb_complain_memory(context);
}

int verb_log(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_events_done) ClientEvents events = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(rows_done) Rows rows = { 0 };
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *session = NULL;
	int r;

	if (call->argument && !client_id_is_prefix(call->argument))
		return verb_refuse(
			context, CS_EXIT_USAGE,
			"'%s' is no session's id; 'claude-sandbox log' shows those that have ended too",
			call->argument);
	r = verb_open(context, &bus, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (call->argument) {
		r = find_whole(context, bus, call->argument, &session);
		if (r != 0)
			return r;
	}
	if (call->option)
		return follow_all(call, context, session ?: "", bus);
	r = client_list_events(bus, session ?: "", 0, &events, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (make_rows(events.items, events.n, &rows) < 0)
		return verb_complain_memory(context);
	return verb_show_table(call, context, &(PrintTable){ columns, COLUMNS, rows.n, rows.cells },
			       "nothing has happened");
}
