/* SPDX-License-Identifier: MIT */
#include "shim/verbs.h"

#include <inttypes.h>

#include "dbus/client.h"
#include "dbus/names.h"
#include "shim/ahead-warn.h"
#include "shim/handoff.h"
#include "dbus/text.h"
#include "shim/verb.h"

int verb_shell(const SandboxCall *call, const SandboxContext *context)
{
	/* A script has nobody who reads it each time. */
	if (context->interactive)
		ahead_warn(context);
	handoff_complain(context->handoff("shell", call->arguments, context->environment));
	return CS_EXIT_REFUSED;
}

static const PrintColumn session_columns[] = {
	{ "ID", "id", PRINT_TEXT, false },
	{ "AGENT", "agent", PRINT_TEXT, false },
	{ "USER", "user", PRINT_TEXT, false },
	{ NULL, "uid", PRINT_NUMBER, false },
	{ "STATE", "state", PRINT_STATE, false },
	{ "AGE", NULL, PRINT_TEXT, false },
	{ NULL, "started_usec", PRINT_NUMBER, false },
	{ "NETWORK", NULL, PRINT_TEXT, false },
	{ NULL, "jailed", PRINT_FLAG, false },
	{ "WORKSPACE", "workspace", PRINT_TEXT, true },
	{ NULL, "path", PRINT_TEXT, false },
};

enum { SESSION_COLUMNS = ELEMENTSOF(session_columns) };

/* The cells that are made for the table; the others are borrowed from the session. */
typedef struct SessionTexts {
	char *uid, *age, *started;
} SessionTexts;

typedef struct SessionRows {
	SessionTexts *texts;
	const char **cells;
	size_t n;
} SessionRows;

static void session_rows_done(SessionRows *rows)
{
	for (size_t i = 0; rows->texts && i < rows->n; i++) {
		free(rows->texts[i].uid);
		free(rows->texts[i].age);
		free(rows->texts[i].started);
	}
	free(rows->texts);
	free(rows->cells);
}

static int session_texts_make(const ClientSession *session, uint64_t now_usec, SessionTexts *texts)
{
	/* A clock that was set back makes no negative age. */
	uint64_t age = now_usec > session->started_usec ? now_usec - session->started_usec : 0;

	if (asprintf(&texts->uid, "%" PRIu32, session->uid) < 0)
		texts->uid = NULL;
	if (asprintf(&texts->started, "%" PRIu64, session->started_usec) < 0)
		texts->started = NULL;
	texts->age = print_duration(age);
	return texts->uid && texts->started && texts->age ? 0 : -ENOMEM;
}

/* The list does not have it; a session that has gone meanwhile has neither. */
static void session_network(sd_bus *bus, const ClientSession *session, const char **ret_text,
			    const char **ret_jailed)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = client_get_jailed(bus, session->path, &error);

	*ret_text = r < 0 ? "" : r > 0 ? "jailed" : "shared";
	*ret_jailed = r < 0 ? NULL : r > 0 ? "true" : "false";
}

static int session_rows_make(sd_bus *bus, const ClientSessions *sessions, uint64_t now_usec,
			     SessionRows *rows)
{
	rows->n = sessions->n;
	rows->texts = calloc(rows->n + 1, sizeof(*rows->texts));
	rows->cells = calloc(rows->n + 1, SESSION_COLUMNS * sizeof(*rows->cells));
	if (!rows->texts || !rows->cells)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++) {
		const ClientSession *session = &sessions->items[i];
		SessionTexts *texts = &rows->texts[i];
		const char *row[SESSION_COLUMNS];

		if (session_texts_make(session, now_usec, texts) < 0)
			return -ENOMEM;
		row[0] = session->id, row[1] = session->agent, row[2] = session->user, row[3] = texts->uid;
		row[4] = session->state, row[5] = texts->age, row[6] = texts->started;
		session_network(bus, session, &row[7], &row[8]);
		row[9] = session->workspace, row[10] = session->path;
		memcpy(rows->cells + i * SESSION_COLUMNS, row, sizeof(row));
	}
	return 0;
}

int verb_sessions(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	_cleanup_(session_rows_done) SessionRows rows = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r;

	r = verb_open(context, &bus, &error);
	if (r >= 0)
		r = call->option ? verb_list_all(context, bus, &sessions, &error)
				 : client_list_sessions(bus, &sessions, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (session_rows_make(bus, &sessions, context->now_usec, &rows) < 0)
		return verb_complain_memory(context);
	return verb_show_table(call, context,
			       &(PrintTable){ session_columns, SESSION_COLUMNS, sessions.n, rows.cells },
			       "no sessions");
}

int verb_stop(const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[] = { { "ID", "id", PRINT_TEXT, false } };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	const char *cell;
	int r;

	r = verb_find_session(context, call->argument, &bus, &id);
	if (r != 0)
		return r;
	r = client_stop_session(bus, id, context->interactive, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (call->json) {
		cell = id;
		r = print_json_object(context->out, &(PrintTable){ columns, ELEMENTSOF(columns), 1, &cell },
				      &context->style);
		return r == -ENOMEM ? verb_complain_memory(context) : 0;
	}
	fprintf(context->out, "stopped %s\n", id);
	return 0;
}

static int show_three(const SandboxCall *call, const SandboxContext *context,
		      const PrintColumn columns[static 3], const ClientTable *table, const char *empty)
{
	return verb_show_table(call, context,
			       &(PrintTable){ columns, 3, table->n_rows, (const char *const *)table->cells },
			       empty);
}

int verb_policy(const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[] = {
		{ "SETTING", "setting", PRINT_TEXT, false },
		{ "VALUE", "value", PRINT_TEXT, true },
		{ "ORIGIN", "origin", PRINT_TEXT, false },
	};
	_cleanup_(client_table_done) ClientTable policy = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *config_error = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r;

	r = verb_open(context, &bus, &error);
	if (r >= 0)
		r = client_get_property(bus, CS_PROPERTY_CONFIG_ERROR, &config_error, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (*config_error) {
		print_complaint(context->err, config_error);
		return CS_EXIT_FOUND;
	}
	r = client_get_policy(bus, &policy, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	return show_three(call, context, columns, &policy, "no settings");
}

int verb_version(const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[] = {
		{ NULL, "command", PRINT_TEXT, false },
		{ NULL, "service", PRINT_TEXT, false },
	};
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *service = NULL, *shown = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	const char *cells[ELEMENTSOF(columns)] = { CS_VERSION };
	int r;

	r = verb_open(context, &bus, &error);
	if (r >= 0)
		r = client_get_property(bus, CS_PROPERTY_VERSION, &service, &error);
	cells[1] = service;
	if (call->json) {
		if (print_json_object(context->out, &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells },
				      &context->style) == -ENOMEM)
			return verb_complain_memory(context);
	} else {
		fprintf(context->out, "claude-sandbox %s\n", CS_VERSION);
		shown = service ? text_escape(service, context->style.utf8) : NULL;
		if (shown)
			fprintf(context->out, "service %s\n", shown);
	}
	ahead_warn(context);
	if (r < 0) {
		(void)verb_complain(context, r, &error);
		return CS_EXIT_FOUND;
	}
	if (!streq(service, CS_VERSION)) {
		print_complaint(context->err,
				context->host
					? "the service there has another version than this command; what "
					  "it says may be shown in part"
					: "the service has another version than this command; restart "
					  "claude-sandboxd");
		return CS_EXIT_FOUND;
	}
	return 0;
}

int verb_help(const SandboxCall *call, const SandboxContext *context)
{
	const SandboxVerb *verb = call->argument ? sandbox_verb_find(call->argument) : NULL;
	_cleanup_free_ char *problem = NULL;

	if (call->argument && !verb) {
		(void)sandbox_refuse_verb(call->argument, &problem);
		print_complaint(context->err, problem);
		return CS_EXIT_USAGE;
	}
	sandbox_help(context->out, verb);
	return 0;
}
