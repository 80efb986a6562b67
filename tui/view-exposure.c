/* SPDX-License-Identifier: MIT */

/*
 * What one session's agent sees: paths in the order in which they were mounted (the last entry at or above a
 * path decides), then variables. Compared with another session, only what differs is shown.
 */
#include "base/paths.h"
#include "dbus/why.h"
#include "tui/words.h"

enum { DIFFERS, PATH, MODE, KIND, ORIGIN, REASON, COLUMNS };

static const Column columns[COLUMNS] = {
	[DIFFERS] = { .title = "", .key = "differs" },
	[PATH] = { .title = "PATH", .key = "path", .path = true, .least = 12 },
	[MODE] = { .title = "MODE", .key = "mode" },
	[KIND] = { .title = "KIND", .key = "kind", .weight = 3 },
	[ORIGIN] = { .title = "ORIGIN", .key = "origin", .least = 10, .weight = 1 },
	[REASON] = { .title = "REASON", .key = "reason", .least = 16, .weight = 2 },
};

static const Meaning kinds[] = {
	{ "bind", "what lies there outside, with what is mounted below it" },
	{ "tmpfs", "an empty directory of the session's own, in memory" },
	{ "dev", "a few harmless devices of the jail's own" },
	{ "proc", "the kernel's view of processes" },
	{ "device", "a device of this machine" },
	{ "file", "a file that the session made" },
	{ "link", "a link that the session made" },
	{ "directory", "an empty directory that the session made" },
	{ "descriptor", "a file outside that the caller handed in, open" },
	{ "variable", "of the environment with which the agent was started; its value is not told" },
};

typedef struct Item {
	const char *path, *mode, *kind, *origin, *reason;
	size_t nth;          /* of several with the same path and kind */
	const char *differs; /* "", "+", "-", "~" */
	const struct Item *other;
} Item;

typedef struct Items {
	Item *items;
	size_t n;
} Items;

static void items_done(Items *items)
{
	free(items->items);
}

static bool is_same(const Item *a, const Item *b)
{
	return streq(a->path, b->path) && streq(a->kind, b->kind);
}

static void add(Items *items, Item item)
{
	for (size_t i = 0; i < items->n; i++)
		item.nth += is_same(&items->items[i], &item);
	item.differs = "";
	items->items[items->n++] = item;
}

/* Of one session; borrows the model's texts. Return: 0 or -ENOMEM. */
static int items_make(const ModelSession *session, Items *ret)
{
	const ClientTable *paths = &session->exposure.table, *variables = &session->environment.table;

	*ret = (Items){ .items = calloc(paths->n_rows + variables->n_rows + 1, sizeof(Item)) };
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < paths->n_rows; i++)
		add(ret, (Item){ .path = words_cell(paths, i, EXPOSED_PATH),
				 .mode = words_cell(paths, i, EXPOSED_MODE),
				 .kind = words_cell(paths, i, EXPOSED_KIND),
				 .origin = words_cell(paths, i, EXPOSED_ORIGIN),
				 .reason = words_cell(paths, i, EXPOSED_REASON) });
	for (size_t i = 0; i < variables->n_rows; i++)
		add(ret, (Item){ .path = words_cell(variables, i, VARIABLE_NAME),
				 .mode = "",
				 .kind = "variable",
				 .origin = words_cell(variables, i, VARIABLE_ORIGIN),
				 .reason = "" });
	return 0;
}

static const Item *find_same(const Items *items, const Item *wanted)
{
	for (size_t i = 0; i < items->n; i++)
		if (is_same(&items->items[i], wanted) && items->items[i].nth == wanted->nth)
			return &items->items[i];
	return NULL;
}

/* The session to compare with, if there is one and it is known what it sees. */
static const ModelSession *base_of(const ViewContext *context, const ModelSession *session)
{
	const char *id = context->model->compare;
	const ModelSession *base = id ? model_session(context->model, id) : NULL;

	return base && session && base != session && base->exposure.state == MODEL_HERE ? base : NULL;
}

/* What is shown: all of the open session, or how it differs. before keeps what removed ones point into. */
static int items_shown(const ViewContext *context, Items *now, Items *before)
{
	const ModelSession *session = model_open_session(context->model);
	const ModelSession *base = base_of(context, session);
	Item *larger;
	int r;

	*now = *before = (Items){ 0 };
	r = session ? items_make(session, now) : 0;
	if (r < 0 || !base)
		return r;
	r = items_make(base, before);
	if (r < 0)
		return r;
	larger = reallocarray(now->items, now->n + before->n + 1, sizeof(Item));
	if (!larger)
		return -ENOMEM;
	now->items = larger;
	for (size_t i = 0; i < now->n; i++) {
		Item *item = &now->items[i];

		item->other = find_same(before, item);
		item->differs =
			!item->other ? "+"
			: streq(item->mode, item->other->mode) && streq(item->origin, item->other->origin)
				? "="
				: "~";
	}
	for (size_t i = 0, n = now->n; i < before->n; i++) {
		Item gone = before->items[i];

		gone.differs = "-";
		if (!find_same(&(Items){ now->items, n }, &gone))
			now->items[now->n++] = gone;
	}
	return 0;
}

static Style mode_style(const char *mode)
{
	if (streq(mode, "rw"))
		return STYLE_CAUTION;
	return streq(mode, "masked") || streq(mode, "private") ? STYLE_FAINT : STYLE_PLAIN;
}

static Style path_style(const Item *item)
{
	switch (item->differs[0]) {
	case '+':
		return STYLE_ADDED;
	case '-':
		return STYLE_REMOVED;
	case '~':
		return STYLE_CAUTION;
	}
	return mode_style(item->mode);
}

static int key_of(const Item *item, char **ret)
{
	return words_set(ret, "%s %zu %s", item->kind, item->nth, item->path);
}

static int rows(const ViewContext *context, Rows *to)
{
	_cleanup_(items_done) Items now, before;
	int r = items_shown(context, &now, &before);

	for (size_t i = 0; r == 0 && i < now.n; i++) {
		const Item *item = &now.items[i];
		_cleanup_free_ char *key = NULL;

		if (item->differs[0] == '=')
			continue;
		if (key_of(item, &key) < 0)
			return -ENOMEM;
		(void)rows_add(to, key);
		(void)rows_cell(to, item->differs, path_style(item));
		(void)rows_cell(to, item->path, path_style(item));
		(void)rows_cell(to, item->mode, mode_style(item->mode));
		(void)rows_cell(to, item->kind, STYLE_PLAIN);
		(void)rows_cell(to, item->origin, STYLE_PLAIN);
		r = rows_cell(to, item->reason, STYLE_PLAIN);
	}
	return r;
}

static size_t count_mode(const ModelSession *session, const char *mode)
{
	const ClientTable *table = &session->exposure.table;
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		n += streq(words_cell(table, i, EXPOSED_MODE), mode);
	return n;
}

static int headline(const ViewContext *context, char **ret)
{
	const ModelSession *session = model_open_session(context->model);
	const ModelSession *base = base_of(context, session);
	_cleanup_free_ char *who = NULL, *other = NULL;

	if (!session || session->exposure.state != MODEL_HERE)
		return 0;
	if (words_session_brief(context, session, &who) < 0)
		return -ENOMEM;
	if (base) {
		if (words_session(context, base, &other) < 0)
			return -ENOMEM;
		return words_set(ret,
				 "%s, only what differs: + here, - there, ~ in both in another way (= ends "
				 "it). There is %s.",
				 who, other);
	}
	return words_set(
		ret,
		"%s: %zu %s be changed (rw), %zu only read (ro), %zu masked, %zu private; %zu variables. "
		"w: why?",
		who, count_mode(session, "rw"), count_mode(session, "rw") == 1 ? "path can" : "paths can",
		count_mode(session, "ro"), count_mode(session, "masked"), count_mode(session, "private"),
		session->environment.table.n_rows);
}

static const char *empty(const ViewContext *context)
{
	const ModelSession *session = model_open_session(context->model);

	if (base_of(context, session))
		return "The two sessions see the same.";
	return words_nothing(context, session ? &session->exposure : NULL, "The session names no path.");
}

/* Which entry decides is what the order says; a later one may lie on this. */
static const char *covering(const Items *items, const Item *item)
{
	const Item *last = NULL;

	for (size_t i = 0; i < items->n; i++) {
		const Item *other = &items->items[i];

		if (other > item && other->differs[0] != '-' && !streq(other->kind, "variable") &&
		    !streq(other->kind, "descriptor") && !streq(other->kind, "directory") &&
		    path_is_within(item->path, other->path))
			last = other;
	}
	return last ? last->path : "";
}

static void describe(Words *words, const ModelSession *session, const Items *items, const Item *item)
{
	bool variable = streq(item->kind, "variable");
	const ClientTable *table = &session->exposure.table;
	const char *meaning = NULL;

	for (size_t i = 0; i < table->n_rows && !variable && !meaning; i++)
		if (streq(words_cell(table, i, EXPOSED_PATH), item->path) &&
		    streq(words_cell(table, i, EXPOSED_MODE), item->mode) &&
		    streq(words_cell(table, i, EXPOSED_KIND), item->kind))
			meaning = why_meaning(table, (ssize_t)i, item->path);
	words_path(words, variable ? "Variable" : "Path", item->path);
	words_meaning(words, "Mode", item->mode, meaning);
	words_meaning(words, "Kind", item->kind, meaning_of(kinds, ELEMENTSOF(kinds), item->kind));
	words_text(words, "Origin", item->origin);
	words_text(words, "Reason", item->reason);
	if (!variable)
		words_path(words, "Covered by", covering(items, item));
	if (item->differs[0] == '+')
		words_text(words, "The other session", "does not have it");
	if (item->differs[0] == '-')
		words_text(words, "This session", "does not have it; the other one does");
	if (item->differs[0] == '~') {
		words_text(words, "Mode there", item->other->mode);
		words_text(words, "Origin there", item->other->origin);
	}
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	const ModelSession *session = model_open_session(context->model);
	_cleanup_(items_done) Items now, before;
	bool found = false;
	Words words;
	int r = items_shown(context, &now, &before);

	(void)words_begin(&words, context);
	for (size_t i = 0; r == 0 && i < now.n && !found; i++) {
		_cleanup_free_ char *own = NULL;

		r = key_of(&now.items[i], &own);
		found = r == 0 && streq(own, key);
		if (found)
			describe(&words, session, &now, &now.items[i]);
	}
	if (r < 0) {
		(void)words_end(&words, false, ret);
		return r;
	}
	return words_end(&words, found, ret);
}

/* ---- what can be done ---- */

#define OTHERS_MOST 9u /* a key each */

static bool is_other(const ViewContext *context, const ModelSession *session)
{
	return session != model_open_session(context->model) && !session->ended;
}

static int offer(const ViewContext *context, Effect *ret)
{
	ret->parts = calloc(OTHERS_MOST, sizeof(*ret->parts));
	if (!ret->parts || words_set(&ret->title, "Compare with which session?") < 0)
		return -ENOMEM;
	for (size_t i = 0; i < context->model->n_sessions; i++) {
		const ModelSession *other = context->model->sessions[i];
		Effect *part = &ret->parts[ret->n_parts];

		if (!is_other(context, other))
			continue;
		ret->n_parts++;
		part->kind = EFFECT_COMPARE;
		part->session = strdup(other->session.id);
		if (!part->session || words_session(context, other, &part->title) < 0 ||
		    words_set(&part->text, "%zu", ret->n_parts) < 0)
			return -ENOMEM;
	}
	ret->kind = EFFECT_CHOOSE;
	return 0;
}

static int accept_other(const ViewContext *context, const char *typed, Effect *ret)
{
	const ModelSession *found = NULL;

	for (size_t i = 0; *typed && i < context->model->n_sessions; i++) {
		const ModelSession *other = context->model->sessions[i];

		if (!is_other(context, other) || !starts_with(other->session.id, typed))
			continue;
		if (found)
			return words_tell(ret, "more than one session's id begins so; give more of it");
		found = other;
	}
	if (!found)
		return words_tell(ret, "no other session's id begins so; the view Sessions lists them");
	ret->kind = EFFECT_COMPARE;
	ret->session = strdup(found->session.id);
	return ret->session ? 0 : -ENOMEM;
}

static int compare(const ViewContext *context, const char *key, Effect *ret)
{
	size_t others = 0;

	if (!model_open_session(context->model))
		return words_tell(ret, WORDS_NO_SESSION);
	if (context->model->compare) {
		ret->kind = EFFECT_COMPARE;
		return 0;
	}
	for (size_t i = 0; i < context->model->n_sessions; i++)
		others += is_other(context, context->model->sessions[i]);
	if (others == 0)
		return words_tell(ret, "there is no other session to compare this one with");
	if (others <= OTHERS_MOST)
		return offer(context, ret);
	return words_prompt(ret, "Compare with the session whose id begins with", "", accept_other);
}

/* "PATH": which entry decides about it? Links are the agent's business: what is typed is taken as it is. */
static int explain(const ViewContext *context, const char *typed, Effect *ret)
{
	const ModelSession *session = model_open_session(context->model);
	const ClientTable *table = session ? &session->exposure.table : NULL;
	_cleanup_free_ char *path = strdup(typed);
	ssize_t row;
	Words words;
	size_t n;

	if (!path)
		return -ENOMEM;
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (path[0] != '/')
		return words_tell(ret, "a path begins with /; addresses are explained in Routes");
	row = table ? why_entry(table, path) : WHY_NONE;
	if (row == WHY_NONE)
		return words_tell(ret, "the session tells of no entry at or above that path");
	(void)words_begin(&words, context);
	words_path(&words, "Path", path);
	words_meaning(&words, "Mode", words_cell(table, (size_t)row, EXPOSED_MODE),
		      why_meaning(table, row, path));
	words_path(&words, "Decided by", words_cell(table, (size_t)row, EXPOSED_PATH));
	words_text(&words, "Kind", words_cell(table, (size_t)row, EXPOSED_KIND));
	words_text(&words, "Origin", words_cell(table, (size_t)row, EXPOSED_ORIGIN));
	words_text(&words, "Reason", words_cell(table, (size_t)row, EXPOSED_REASON));
	words_text(&words, "Links", "are not followed here; 'claude-sandbox why' follows them");
	if (words_end(&words, true, &ret->text) < 0 || words_set(&ret->title, "Why it is as it is") < 0)
		return -ENOMEM;
	ret->kind = EFFECT_SHOW;
	return 0;
}

static int ask_why(const ViewContext *context, const char *key, Effect *ret)
{
	if (!model_open_session(context->model))
		return words_tell(ret, WORDS_NO_SESSION);
	return words_prompt(ret, "Which path, from / on", "", explain);
}

static const ViewAction actions[] = {
	{ COMMAND_DIFF, compare },
	{ COMMAND_WHY, ask_why },
	{ COMMAND_NONE, NULL },
};

const View view_exposure = {
	.name = "exposure",
	.title = "Exposure",
	.about = "What the agent sees and may change: paths in the order of their mounts, then variables.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_SESSIONS | MODEL_EXPOSURE | MODEL_ENVIRONMENT,
	.of_session = true,
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
	.actions = actions,
};
