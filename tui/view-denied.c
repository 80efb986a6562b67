/* SPDX-License-Identifier: MIT */

/* What agents tried to reach and may not, as it comes: of the open session, or of all. */
#include <inttypes.h>

#include "tui/allowing.h"
#include "tui/words.h"

enum { LAST, USEC, SESSION, PROTOCOL, ADDRESS, PORT, PROGRAM, COUNT, REASON, COLUMNS };

static const Column columns[COLUMNS] = {
	[LAST] = { .title = "LAST", .weight = 2 },
	[USEC] = { .key = "last_usec", .number = true },
	[SESSION] = { .title = "SESSION", .key = "session", .least = 6, .weight = 4 },
	[PROTOCOL] = { .title = "PROTO", .key = "protocol", .weight = 3 },
	[ADDRESS] = { .title = "ADDRESS", .key = "address" },
	[PORT] = { .title = "PORT", .key = "port", .number = true },
	[PROGRAM] = { .title = "PROGRAM", .key = "program", .least = 8, .weight = 1 },
	[COUNT] = { .title = "COUNT", .key = "count", .number = true, .weight = 1 },
	[REASON] = { .title = "REASON", .key = "reason", .least = 12, .weight = 5 },
};

typedef struct State {
	bool all; /* though a session is open */
} State;

static bool shows_all(const ViewContext *context)
{
	const State *state = context->state;

	return !model_open_session(context->model) || (state && state->all);
}

static int key_of(const ModelSession *session, size_t row, char **ret)
{
	const ClientTable *table = &session->denied.table;

	/* As the service tells them apart. */
	return words_set(ret, "%s %s %s %s %s %s", session->session.id,
			 words_cell(table, row, DENIED_PROTOCOL), words_cell(table, row, DENIED_ADDRESS),
			 words_cell(table, row, DENIED_PORT), words_cell(table, row, DENIED_PROGRAM),
			 words_cell(table, row, DENIED_REASON));
}

static int row(const ViewContext *context, const ModelSession *session, size_t i, Rows *to)
{
	const ClientTable *table = &session->denied.table;
	uint64_t usec = strtoull(words_cell(table, i, DENIED_TIME), NULL, 10);
	uint64_t count = strtoull(words_cell(table, i, DENIED_COUNT), NULL, 10);
	uint64_t port = strtoull(words_cell(table, i, DENIED_PORT), NULL, 10);
	_cleanup_free_ char *clock = format_clock(usec, context->now_usec), *number = format_count(count);
	_cleanup_free_ char *key = NULL;

	if (!clock || !number || key_of(session, i, &key) < 0)
		return -ENOMEM;
	(void)rows_add(to, key);
	(void)rows_cell_number(to, clock, usec, STYLE_PLAIN);
	(void)rows_cell_number(to, words_cell(table, i, DENIED_TIME), usec, STYLE_PLAIN);
	(void)rows_cell(to, session->session.id, STYLE_FAINT);
	(void)rows_cell(to, words_cell(table, i, DENIED_PROTOCOL), STYLE_PLAIN);
	(void)rows_cell(to, words_cell(table, i, DENIED_ADDRESS), STYLE_CAUTION);
	(void)rows_cell_number(to, port > 0 ? words_cell(table, i, DENIED_PORT) : "", port, STYLE_PLAIN);
	(void)rows_cell(to, words_cell(table, i, DENIED_PROGRAM), STYLE_PLAIN);
	(void)rows_cell_number(to, number, count, STYLE_PLAIN);
	return rows_cell(to, words_cell(table, i, DENIED_REASON), STYLE_FAINT);
}

static int rows(const ViewContext *context, Rows *to)
{
	const Model *model = context->model;
	const ModelSession *only = shows_all(context) ? NULL : model_open_session(model);
	int r = 0;

	for (size_t s = 0; s < model->n_sessions; s++) {
		const ModelSession *session = model->sessions[s];

		if (only && session != only)
			continue;
		for (size_t i = 0; r == 0 && i < session->denied.table.n_rows; i++)
			r = row(context, session, i, to);
	}
	return r;
}

static int headline(const ViewContext *context, char **ret)
{
	_cleanup_free_ char *who = NULL;

	if (shows_all(context))
		return words_set(ret,
				 "What the agents of all sessions tried to reach and may not. a: allow.");
	if (words_session_brief(context, model_open_session(context->model), &who) < 0)
		return -ENOMEM;
	return words_set(ret, "What %s tried to reach and may not. a: allow; A: all sessions.", who);
}

static const char *empty(const ViewContext *context)
{
	const ModelSession *session = model_open_session(context->model);

	if (session && !shows_all(context))
		return words_nothing(context, &session->denied,
				     "Nothing was refused in this session. A: all sessions.");
	if (context->model->sessions_state == MODEL_HERE)
		return "Nothing was refused.";
	return words_nothing(context, &(ModelTable){ .state = context->model->sessions_state }, NULL);
}

/* Return: the session and row of key; NULL for none, or without memory (*ret_error is set then). */
static const ModelSession *find(const ViewContext *context, const char *key, size_t *ret_row, int *ret_error)
{
	*ret_error = 0;
	for (size_t s = 0; key && s < context->model->n_sessions; s++) {
		const ModelSession *session = context->model->sessions[s];

		if (!starts_with(key, session->session.id))
			continue;
		for (size_t i = 0; i < session->denied.table.n_rows; i++) {
			_cleanup_free_ char *own = NULL;

			*ret_error = key_of(session, i, &own);
			if (*ret_error < 0)
				return NULL;
			if (streq(own, key)) {
				*ret_row = i;
				return session;
			}
		}
	}
	return NULL;
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	_cleanup_free_ char *who = NULL, *time = NULL, *allowed = NULL;
	const ModelSession *session;
	const ClientTable *table;
	Words words;
	size_t i;
	int r;

	session = find(context, key, &i, &r);
	if (!session) {
		*ret = NULL;
		return r;
	}
	table = &session->denied.table;
	time = format_clock(strtoull(words_cell(table, i, DENIED_TIME), NULL, 10), 0);
	if (!time || words_session(context, session, &who) < 0 ||
	    allowing_now(context, session, words_cell(table, i, DENIED_ADDRESS), &allowed) < 0)
		return -ENOMEM;
	(void)words_begin(&words, context);
	words_text(&words, "Address", words_cell(table, i, DENIED_ADDRESS));
	if (!streq(words_cell(table, i, DENIED_PORT), "0"))
		words_text(&words, "Port", words_cell(table, i, DENIED_PORT));
	words_text(&words, "Protocol", words_cell(table, i, DENIED_PROTOCOL));
	words_text(&words, "Refused because", words_cell(table, i, DENIED_REASON));
	words_text(&words, "Allowed now", allowed ?: "");
	words_text(&words, "Program", words_cell(table, i, DENIED_PROGRAM));
	words_text(&words, "Attempts", words_cell(table, i, DENIED_COUNT));
	words_text(&words, "Last", time);
	words_text(&words, "In", who);
	if (!allowed && *words_cell(table, i, DENIED_ADDRESS))
		words_text(&words, "To allow it", "press a; you are told what that opens before it is done");
	return words_end(&words, true, ret);
}

static int allow(const ViewContext *context, const char *key, Effect *ret)
{
	_cleanup_free_ char *allowed = NULL;
	const ModelSession *session;
	const char *address;
	size_t i;
	int r;

	if (!key)
		return words_tell(ret, "there is no row to allow");
	session = find(context, key, &i, &r);
	if (!session)
		return r < 0 ? r : words_tell(ret, "that row has gone");
	address = words_cell(&session->denied.table, i, DENIED_ADDRESS);
	if (!*address)
		return words_tell(ret, "this row stands for several destinations, whose addresses were not "
				       "kept; choose one that has an address");
	r = allowing_now(context, session, address, &allowed);
	if (r < 0)
		return r;
	/* It may be allowed for longer. */
	return allowing_choose(context, session, address,
			       allowed ? "" : words_cell(&session->denied.table, i, DENIED_REASON), ret);
}

static int toggle_all(const ViewContext *context, const char *key, Effect *ret)
{
	State *state = context->state;

	if (!model_open_session(context->model))
		return words_tell(ret, "no session is open: those of all are shown");
	state->all = !state->all;
	ret->kind = EFFECT_REFRESH;
	return 0;
}

static const ViewAction actions[] = {
	{ COMMAND_ALLOW, allow },
	{ COMMAND_ALL_SESSIONS, toggle_all },
	{ COMMAND_NONE, NULL },
};

const View view_denied = {
	.name = "denied",
	.title = "Denied",
	.about = "What agents tried to reach and may not, as it comes; a allows an address.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = LAST,
	.descending = true,
	.wants = MODEL_SESSIONS | MODEL_DENIED | MODEL_ROUTES | MODEL_ALLOW_IP,
	.state_size = sizeof(State),
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
	.actions = actions,
};
