/* SPDX-License-Identifier: MIT */

/* What runs now, and in a few words what each of them may touch and reach. */

#include <inttypes.h>

#include "tui/words.h"

enum { AGENT, USER, UID, STATE, AGE, STARTED, NETWORK, JAILED, DENIED, WORKSPACE, ID, COLUMNS };

static const Column columns[COLUMNS] = {
	[AGENT] = { .title = "AGENT", .key = "agent" },
	[USER] = { .title = "USER", .key = "user", .weight = 4 },
	[UID] = { .key = "uid", .number = true },
	[STATE] = { .title = "STATE", .key = "state" },
	[AGE] = { .title = "AGE", .number = true, .weight = 3 },
	[STARTED] = { .key = "started_usec", .number = true },
	[NETWORK] = { .title = "NETWORK", .weight = 2 },
	[JAILED] = { .key = "jailed", .flag = true },
	[DENIED] = { .title = "DENIED", .key = "denied", .number = true, .weight = 1 },
	[WORKSPACE] = { .title = "WORKSPACE", .key = "workspace", .path = true, .least = 10 },
	[ID] = { .title = "ID", .key = "id", .least = 6, .weight = 5 },
};

#define OWN "the jail's own" /* as the reasons of routes begin that lead nowhere else */
#define NAMED_MOST 6u        /* of a kind, in a sentence */

static bool is_shown(const Model *model, const ModelSession *session)
{
	/* Who one is on another machine is not known here, and nobody else is root there. */
	return model->all || model->host || model->uid == 0 || session->session.uid == model->uid;
}

static Style state_style(const char *state)
{
	if (streq(state, "running"))
		return STYLE_GOOD;
	return streq(state, "stopped") || streq(state, "offline") ? STYLE_CAUTION : STYLE_FAINT;
}

/* A clock that was set back makes no negative age. */
static uint64_t lasted(const ViewContext *context, uint64_t started_usec)
{
	return context->now_usec > started_usec ? context->now_usec - started_usec : 0;
}

/* In minutes: the screen is drawn once in each. */
static char *age(const ViewContext *context, uint64_t started_usec)
{
	uint64_t usec = lasted(context, started_usec);

	return usec < 60 * USEC_PER_SEC ? strdup("<1m") : format_age(usec);
}

static int row(const ViewContext *context, const ModelSession *session, Rows *to)
{
	const ClientSession *of = &session->session;
	_cleanup_free_ char *how_old = age(context, of->started_usec), *uid = NULL, *started = NULL,
			    *denied = NULL;
	bool known = session->details_state == MODEL_HERE, jailed = known && session->details.jailed;

	if (!how_old || words_set(&uid, "%" PRIu32, of->uid) < 0 ||
	    words_set(&started, "%" PRIu64, of->started_usec) < 0 ||
	    words_set(&denied, "%" PRIu64, session->denied_count) < 0)
		return -ENOMEM;
	(void)rows_add(to, of->id);
	(void)rows_cell(to, of->agent, STYLE_PLAIN);
	(void)rows_cell(to, of->user, STYLE_PLAIN);
	(void)rows_cell_number(to, uid, of->uid, STYLE_PLAIN);
	(void)rows_cell(to, of->state, state_style(of->state));
	(void)rows_cell_number(to, how_old, lasted(context, of->started_usec), STYLE_PLAIN);
	(void)rows_cell_number(to, started, of->started_usec, STYLE_PLAIN);
	(void)rows_cell(to,
			!known   ? ""
			: jailed ? "jailed"
				 : "shared",
			jailed || !known ? STYLE_PLAIN : STYLE_BAD);
	(void)rows_cell(to, !known ? NULL : jailed ? "true" : "false", STYLE_PLAIN);
	(void)rows_cell_number(to, known ? denied : "", session->denied_count,
			       session->denied_count > 0 ? STYLE_CAUTION : STYLE_FAINT);
	(void)rows_cell(to, of->workspace, STYLE_PLAIN);
	return rows_cell(to, of->id, STYLE_FAINT);
}

static int rows(const ViewContext *context, Rows *to)
{
	const Model *model = context->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->n_sessions; i++)
		if (is_shown(model, model->sessions[i]))
			r = row(context, model->sessions[i], to);
	return r;
}

static int headline(const ViewContext *context, char **ret)
{
	const Model *model = context->model;
	_cleanup_free_ char *error = NULL;

	if (model->config_error && *model->config_error) {
		error = words_bytes(context, model->config_error);
		return error ? words_set(ret, "No session can be started: %s", error) : -ENOMEM;
	}
	return model->all ? words_set(ret, "The sessions of all users, for five minutes; A shows only yours.")
			  : 0;
}

static const char *empty(const ViewContext *context)
{
	const Model *model = context->model;

	switch (model->sessions_state) {
	case MODEL_HERE:
		return "No agent runs in a jail now. Start one in a project: claude, codex or pi. It appears "
		       "here by "
		       "itself.";
	case MODEL_FAILED:
		return model->sessions_problem ?: "The sessions cannot be told.";
	default:
		return words_nothing(context, &(ModelTable){ .state = MODEL_UNKNOWN }, NULL);
	}
}

/* ---- what one of them may do ---- */

/*
 * "a, b, c and 4 more" of the rows that are chosen; the one that is called first stands there first. Return:
 * how many there are, or -ENOMEM.
 */
static ssize_t list(const ViewContext *context, const ClientTable *table, size_t shown, const char *first,
		    bool (*is_chosen)(char *const *cells), char **ret)
{
	_cleanup_free_ char *text = strdup("");
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; text && i < table->n_rows; i++) {
			char *const *cells = table->cells + i * table->n_columns;
			_cleanup_free_ char *name = NULL;

			if ((pass == 0) != (first && streq(cells[shown], first)))
				continue;
			if (!is_chosen(cells) || n++ >= NAMED_MOST)
				continue;
			name = words_bytes(context, cells[shown]);
			if (!name || words_set(&text, "%s%s%s", text, n > 1 ? ", " : "", name) < 0)
				return -ENOMEM;
		}
	}
	if (!text || (n > NAMED_MOST && words_set(&text, "%s and %zu more", text, n - NAMED_MOST) < 0))
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	return (ssize_t)n;
}

static bool is_writable(char *const *cells)
{
	return streq(cells[EXPOSED_MODE], "rw") && streq(cells[EXPOSED_KIND], "bind");
}

static bool is_hidden(char *const *cells)
{
	return streq(cells[EXPOSED_MODE], "masked") ||
	       (streq(cells[EXPOSED_MODE], "private") && streq(cells[EXPOSED_KIND], "tmpfs"));
}

static bool is_allowed(char *const *cells)
{
	return streq(cells[ROUTE_SAYS], "allow") && !starts_with(cells[ROUTE_WHY], OWN);
}

static bool is_port(char *const *cells)
{
	return streq(cells[PORT_IS], "listening");
}

static int say_paths(const ViewContext *context, const ModelSession *session, Words *words)
{
	const ModelTable *exposure = &session->exposure;
	_cleanup_free_ char *writable = NULL, *hidden = NULL, *text = NULL;

	if (exposure->state != MODEL_HERE) {
		words_text(words, "Sees", words_nothing(context, exposure, ""));
		return 0;
	}
	if (list(context, &exposure->table, EXPOSED_PATH, session->session.workspace, is_writable,
		 &writable) < 0 ||
	    list(context, &exposure->table, EXPOSED_PATH, NULL, is_hidden, &hidden) < 0)
		return -ENOMEM;
	words_path(words, "May change", writable);
	if (words_set(&text, "everything else of this machine but what lies in %s", hidden) < 0)
		return -ENOMEM;
	words_path(words, "May read", text);
	return 0;
}

static int say_reach(const ViewContext *context, const ModelSession *session, Words *words)
{
	_cleanup_free_ char *allowed = NULL, *ports = NULL, *text = NULL;
	ssize_t n;

	if (session->details_state != MODEL_HERE)
		return 0;
	if (!session->details.jailed) {
		words_text(words, "Reaches",
			   "everything that this machine reaches: its network is shared, no jail holds");
		return 0;
	}
	if (session->routes.state != MODEL_HERE)
		return 0;
	n = list(context, &session->routes.table, ROUTE_TO, NULL, is_allowed, &allowed);
	if (n < 0 || list(context, &session->ports.table, PORT_NUMBER, NULL, is_port, &ports) < 0)
		return -ENOMEM;
	if (words_set(&text,
		      n > 0 ? "the internet; of internal addresses only %s"
			    : "the internet; no internal address",
		      allowed) < 0)
		return -ENOMEM;
	words_path(words, "Reaches", text);
	words_text(words, "Ports that cross", ports);
	return 0;
}

static int say_refused(const ModelSession *session, Words *words)
{
	_cleanup_free_ char *text = NULL;

	if (session->details_state != MODEL_HERE)
		return 0;
	if (session->denied_count == 0)
		words_text(words, "Refused so far", "nothing");
	else if (words_set(&text, "%" PRIu64 " attempt%s (4 shows which)", session->denied_count,
			   session->denied_count == 1 ? "" : "s") < 0)
		return -ENOMEM;
	words_text(words, "Refused so far", text ?: "");
	return 0;
}

static void say_posture(const ModelSession *session, Words *words)
{
	const ClientTable *warnings = &session->details.warnings, *posture = &session->details.posture;

	for (size_t i = 0; i < warnings->n_rows; i++)
		words_text(words, "Warning", words_cell(warnings, i, 0));
	for (size_t i = 0; i < posture->n_rows; i++) {
		_cleanup_free_ char *text = NULL;
		const char *detail = words_cell(posture, i, POSTURE_DETAIL);

		if (words_set(&text, "%s: %s%s%s", words_cell(posture, i, POSTURE_LAYER),
			      words_cell(posture, i, POSTURE_STRENGTH), *detail ? ", " : "", detail) >= 0)
			words_text(words, "Layer", text);
	}
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	const ModelSession *session = model_session(context->model, key);
	_cleanup_free_ char *started = NULL, *who = NULL;
	Words words;
	int r;

	if (!session) {
		*ret = NULL;
		return 0;
	}
	started = format_clock(session->session.started_usec, context->now_usec);
	if (!started || words_session(context, session, &who) < 0)
		return -ENOMEM;
	(void)words_begin(&words, context);
	r = say_paths(context, session, &words);
	if (r == 0)
		r = say_reach(context, session, &words);
	if (r == 0)
		r = say_refused(session, &words);
	words_text(&words, "Not told", session->ended ? "" : session->details_problem ?: "");
	say_posture(session, &words);
	words_path(&words, "Workspace", session->session.workspace);
	words_text(&words, "Agent", session->session.agent);
	words_text(&words, "User", session->session.user);
	words_text(&words, "Id", session->session.id);
	words_text(&words, "Started", started);
	return words_end(&words, true, ret) < 0 ? -ENOMEM : r;
}

/* ---- what can be done ---- */

static int open_session(const ViewContext *context, const char *key, Effect *ret)
{
	if (!key)
		return words_tell(ret, "there is no session to open");
	ret->kind = EFFECT_GO;
	ret->session = strdup(key);
	ret->view = strdup("exposure");
	return ret->session && ret->view ? 0 : -ENOMEM;
}

static int stop(const ViewContext *context, const char *key, Effect *ret)
{
	const ModelSession *session = key ? model_session(context->model, key) : NULL;
	_cleanup_free_ char *who = NULL;

	if (!session || session->ended)
		return words_tell(ret, session ? "this session has ended" : "there is no session to stop");
	if (words_session(context, session, &who) < 0)
		return -ENOMEM;
	ret->kind = EFFECT_CALL;
	ret->call = CALL_STOP;
	ret->session = strdup(key);
	if (!ret->session || words_set(&ret->title, "Stop a session") < 0 ||
	    words_set(&ret->question,
		      "Stop %s? Its agent is hung up on as if its terminal closed, and killed after 5 "
		      "seconds if it is "
		      "still there.",
		      who) < 0)
		return -ENOMEM;
	return words_set(&ret->done, "the session has been stopped");
}

static int verify(const ViewContext *context, const char *key, Effect *ret)
{
	const ModelSession *session = key ? model_session(context->model, key) : NULL;

	if (!session || session->ended)
		return words_tell(ret, session ? "this session has ended" : "there is no session to check");
	ret->kind = EFFECT_RUN;
	ret->part = MODEL_VERIFY;
	ret->session = strdup(key);
	return ret->session ? 0 : -ENOMEM;
}

static int show_all(const ViewContext *context, const char *key, Effect *ret)
{
	if (context->model->uid == 0 && !context->model->host)
		return words_tell(ret, "root sees the sessions of all users");
	if (context->model->all) {
		ret->kind = EFFECT_OWN;
		return 0;
	}
	ret->kind = EFFECT_CALL;
	ret->call = CALL_LIST_ALL;
	return words_set(&ret->done, "the sessions of all users are shown, for five minutes");
}

static const ViewAction actions[] = {
	{ COMMAND_OPEN, open_session },     { COMMAND_STOP, stop }, { COMMAND_VERIFY, verify },
	{ COMMAND_ALL_SESSIONS, show_all }, { COMMAND_NONE, NULL },
};

const View view_sessions = {
	.name = "sessions",
	.title = "Sessions",
	.about = "The agents that run in jails now. Enter shows what one sees and may change.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_SESSIONS | MODEL_DETAILS | MODEL_EXPOSURE | MODEL_ROUTES | MODEL_PORTS,
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
	.actions = actions,
};
