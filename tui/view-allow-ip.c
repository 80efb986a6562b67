/* SPDX-License-Identifier: MIT */

/*
 * The internal addresses that agents reach. Changes are collected and can be undone until they are saved;
 * what others change meanwhile appears below them. What a session has of its own is taken back at once.
 */
#include "dbus/names.h"
#include "tui/allowing.h"
#include "tui/words.h"

enum { MARK, ADDRESS, COMMENT, ORIGIN, COLUMNS };

static const Column columns[COLUMNS] = {
	[MARK] = { .title = "", .key = "unsaved" },
	[ADDRESS] = { .title = "ADDRESS", .key = "address" },
	[COMMENT] = { .title = "COMMENT", .key = "comment", .least = 10, .weight = 1 },
	[ORIGIN] = { .title = "ORIGIN", .key = "origin", .least = 12, .weight = 2 },
};

typedef enum ChangeKind {
	CHANGE_SET, /* added, or another comment */
	CHANGE_REMOVE,
} ChangeKind;

typedef struct Change {
	ChangeKind kind;
	char *address, *comment;
} Change;

typedef struct State {
	Change *changes; /* the latest last: of one address that one counts */
	size_t n;
	char *edited; /* address whose comment is typed */
} State;

static void change_done(Change *change)
{
	free(change->address);
	free(change->comment);
}

static void state_done(void *data)
{
	State *state = data;

	for (size_t i = 0; i < state->n; i++)
		change_done(&state->changes[i]);
	free(TAKE_PTR(state->changes));
	free(TAKE_PTR(state->edited));
	state->n = 0;
}

static int state_add(State *state, ChangeKind kind, const char *address, const char *comment)
{
	Change change = { .kind = kind, .address = strdup(address), .comment = strdup(comment) };
	Change *larger = reallocarray(state->changes, state->n + 1, sizeof(*larger));

	if (larger)
		state->changes = larger;
	if (!larger || !change.address || !change.comment) {
		change_done(&change);
		return -ENOMEM;
	}
	state->changes[state->n++] = change;
	return 0;
}

/* All changes of one address are over. */
static void state_drop(State *state, const char *address)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->n; i++) {
		if (streq(state->changes[i].address, address))
			change_done(&state->changes[i]);
		else
			state->changes[kept++] = state->changes[i];
	}
	state->n = kept;
}

/* The change of address that counts. Return: NULL for none. */
static const Change *change_of(const State *state, const char *address)
{
	for (size_t i = state ? state->n : 0; i-- > 0;)
		if (streq(state->changes[i].address, address))
			return &state->changes[i];
	return NULL;
}

static bool is_of_file(const char *origin)
{
	return !starts_with(origin, "session ");
}

/* The row of the file that has address. Return: NULL for none, else its comment. */
static const char *comment_in_file(const ViewContext *context, const char *address)
{
	const ClientTable *table = &context->model->allow_ip.table;

	for (size_t i = 0; i < table->n_rows; i++)
		if (is_of_file(words_cell(table, i, ALLOWED_ORIGIN)) &&
		    streq(words_cell(table, i, ALLOWED_ADDRESS), address))
			return words_cell(table, i, ALLOWED_COMMENT);
	return NULL;
}

/* Does it change anything, as the file is now? */
static bool is_needed(const ViewContext *context, const Change *change)
{
	const char *comment = comment_in_file(context, change->address);

	return change->kind == CHANGE_REMOVE ? comment != NULL : !comment || !streq(comment, change->comment);
}

/* The change of the index-th address that has one to be saved, in the order in which they were begun. */
static const Change *pending_at(const ViewContext *context, size_t index)
{
	const State *state = context->state;

	for (size_t i = 0; state && i < state->n; i++) {
		const Change *change = change_of(state, state->changes[i].address);
		bool first = true;

		for (size_t k = 0; k < i && first; k++)
			first = !streq(state->changes[k].address, change->address);
		if (first && is_needed(context, change) && index-- == 0)
			return change;
	}
	return NULL;
}

static size_t pending_count(const ViewContext *context)
{
	size_t n = 0;

	while (pending_at(context, n))
		n++;
	return n;
}

static int add_row(Rows *to, const char *mark, const char *address, const char *comment, const char *origin,
		   Style style)
{
	_cleanup_free_ char *key = NULL;

	if (words_set(&key, "%s %s", is_of_file(origin) ? "file" : origin, address) < 0)
		return -ENOMEM;
	(void)rows_add(to, key);
	(void)rows_cell(to, mark, style);
	(void)rows_cell(to, address, style == STYLE_PLAIN ? STYLE_CAUTION : style);
	(void)rows_cell(to, comment, style);
	return rows_cell(to, origin, style == STYLE_PLAIN ? STYLE_FAINT : style);
}

static int rows(const ViewContext *context, Rows *to)
{
	const ClientTable *table = &context->model->allow_ip.table;
	const State *state = context->state;
	const Change *change;
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->n_rows; i++) {
		const char *address = words_cell(table, i, ALLOWED_ADDRESS);
		const char *comment = words_cell(table, i, ALLOWED_COMMENT);
		const char *origin = words_cell(table, i, ALLOWED_ORIGIN);

		change = is_of_file(origin) ? change_of(state, address) : NULL;
		if (!change || !is_needed(context, change))
			r = add_row(to, "", address, comment, origin, STYLE_PLAIN);
		else if (change->kind == CHANGE_REMOVE)
			r = add_row(to, "-", address, comment, origin, STYLE_REMOVED);
		else
			r = add_row(to, "~", address, change->comment, origin, STYLE_ADDED);
	}
	for (size_t i = 0; r == 0 && (change = pending_at(context, i)); i++)
		if (change->kind == CHANGE_SET && !comment_in_file(context, change->address))
			r = add_row(to, "+", change->address, change->comment, "not saved", STYLE_ADDED);
	return r;
}

static int headline(const ViewContext *context, char **ret)
{
	size_t n = pending_count(context);

	if (n == 0)
		return 0;
	return words_set(ret, "%zu %s not saved: s saves, u takes the last one back.", n,
			 n == 1 ? "change is" : "changes are");
}

static const char *empty(const ViewContext *context)
{
	return words_nothing(context, &context->model->allow_ip,
			     "No internal address is allowed; a adds one.");
}

static const char *unsaved(const ViewContext *context)
{
	return pending_count(context) > 0 ? "Changes of Allow-IP are not saved. Leave all the same?" : NULL;
}

/* "file ADDRESS" or "session ID[ until TIME] ADDRESS". Return: the address in key. */
static const char *address_of(const char *key)
{
	const char *space = strrchr(key, ' ');

	return space ? space + 1 : key;
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	const char *address = address_of(key), *comment = comment_in_file(context, address);
	bool of_file = starts_with(key, "file ") != NULL;
	const Change *change = of_file ? change_of(context->state, address) : NULL;
	Words words;

	(void)words_begin(&words, context);
	words_text(&words, "Address", address);
	if (of_file) {
		words_text(&words, "Comment", comment ?: "");
		words_text(&words, "Reached by", "the agents of all users, every port");
	} else {
		_cleanup_free_ char *origin = strndup(key, (size_t)(address - key));

		words_text(&words, "Reached by", origin ?: "");
	}
	words_text(&words, "Note", allowing_warning(address));
	if (change && is_needed(context, change)) {
		words_text(&words, "Not saved",
			   change->kind == CHANGE_REMOVE ? "it is to be removed; connections to it end then"
			   : comment                     ? "another comment"
							 : "it is to be added");
		words_text(&words, "New comment", change->kind == CHANGE_SET ? change->comment : "");
	}
	return words_end(&words, true, ret);
}

/* ---- what can be done ---- */

static int accept_added(const ViewContext *context, const char *typed, Effect *ret)
{
	_cleanup_free_ char *address = NULL, *comment = NULL;
	int r = allowing_parse(typed, &address, &comment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	ret->kind = EFFECT_REFRESH;
	return state_add(context->state, CHANGE_SET, address, comment);
}

static int add(const ViewContext *context, const char *key, Effect *ret)
{
	ret->check = allowing_check;
	return words_prompt(ret, "Address or network, then a comment", "", accept_added);
}

static bool check_comment(const ViewContext *context, const char *typed, Effect *ret_call, char **ret_problem)
{
	const State *state = context->state;

	ret_call->kind = EFFECT_CALL;
	ret_call->call = CALL_ADD;
	ret_call->address = strdup(state->edited ?: "");
	ret_call->comment = strdup(typed);
	return ret_call->address && ret_call->comment;
}

static int accept_comment(const ViewContext *context, const char *typed, Effect *ret)
{
	State *state = context->state;

	ret->kind = EFFECT_REFRESH;
	return state->edited ? state_add(state, CHANGE_SET, state->edited, typed) : 0;
}

static int edit(const ViewContext *context, const char *key, Effect *ret)
{
	State *state = context->state;
	const char *address = key ? address_of(key) : NULL;
	const Change *change = address ? change_of(state, address) : NULL;
	const char *comment = address ? comment_in_file(context, address) : NULL;

	if (!key)
		return words_tell(ret, "there is no row to edit; a adds an address");
	if (!starts_with(key, "file "))
		return words_tell(ret, "an address of one session has no comment");
	if (change && change->kind == CHANGE_SET)
		comment = change->comment;
	free(state->edited);
	state->edited = strdup(address);
	if (!state->edited || words_set(&ret->title, "Comment of %s", address) < 0 ||
	    words_set(&ret->text, "%s", comment ?: "") < 0)
		return -ENOMEM;
	ret->kind = EFFECT_PROMPT;
	ret->check = check_comment;
	ret->accept = accept_comment;
	return 0;
}

/* key: "session ID[ until TIME] ADDRESS" */
static int take_from_session(const ViewContext *context, const char *key, Effect *ret)
{
	const char *id = key + strlen("session "), *address = address_of(key);
	_cleanup_free_ char *shown = words_bytes(context, address);

	ret->kind = EFFECT_CALL;
	ret->call = CALL_REVOKE;
	ret->session = strndup(id, strcspn(id, " "));
	ret->address = strdup(address);
	if (!shown || !ret->session || !ret->address ||
	    words_set(&ret->question, "Take %s back from the session %s? Its connections to it end.", shown,
		      ret->session) < 0)
		return -ENOMEM;
	return words_set(&ret->done, "%s is closed for that session", shown);
}

static int take_back(const ViewContext *context, const char *key, Effect *ret)
{
	State *state = context->state;
	const char *address;

	if (!key)
		return words_tell(ret, "there is no row to remove");
	if (!starts_with(key, "file "))
		return take_from_session(context, key, ret);
	address = address_of(key);
	ret->kind = EFFECT_REFRESH;
	if (!comment_in_file(context, address)) {
		state_drop(state, address);
		return 0;
	}
	return state_add(state, CHANGE_REMOVE, address, "");
}

static int undo(const ViewContext *context, const char *key, Effect *ret)
{
	State *state = context->state;

	if (state->n == 0)
		return words_tell(ret, "there is nothing to undo");
	change_done(&state->changes[--state->n]);
	ret->kind = EFFECT_REFRESH;
	return 0;
}

static void saved(const ViewContext *context, const Effect *call, const char *error)
{
	if (!error)
		state_drop(context->state, call->address);
}

/* One line of the question for each change. Return: 0 or -ENOMEM. */
static int ask_line(const ViewContext *context, const Change *change, char **question)
{
	_cleanup_free_ char *before = TAKE_PTR(*question), *address = words_bytes(context, change->address);
	_cleanup_free_ char *comment = words_bytes(context, change->comment);
	bool known = comment_in_file(context, change->address) != NULL;

	if (!address || !comment)
		return -ENOMEM;
	if (change->kind == CHANGE_REMOVE)
		return words_set(question, "%sClose %s; connections to it end.\n", before, address);
	if (known)
		return words_set(question, "%s%s gets the comment '%s'.\n", before, address, comment);
	return words_set(question, "%sOpen %s.%s\n", before, address, allowing_warning(change->address));
}

/* What narrows goes first. */
static int save(const ViewContext *context, const char *key, Effect *ret)
{
	size_t n = pending_count(context);

	if (n == 0)
		return words_tell(ret, "there is nothing to save");
	ret->parts = calloc(n, sizeof(*ret->parts));
	if (!ret->parts ||
	    words_set(&ret->question, "For the agents of all users, in " CS_CONFIG_PATH ":\n") < 0)
		return -ENOMEM;
	for (int kind = CHANGE_REMOVE; kind >= CHANGE_SET; kind--) {
		for (size_t i = 0; i < n; i++) {
			const Change *change = pending_at(context, i);
			Effect *part = &ret->parts[ret->n_parts];

			if ((int)change->kind != kind)
				continue;
			ret->n_parts++;
			part->kind = EFFECT_CALL;
			part->call = kind == CHANGE_REMOVE ? CALL_REMOVE : CALL_ADD;
			part->address = strdup(change->address);
			part->comment = strdup(change->comment);
			part->finished = saved;
			if (!part->address || !part->comment || ask_line(context, change, &ret->question) < 0)
				return -ENOMEM;
		}
	}
	ret->kind = EFFECT_CHAIN;
	return words_set(&ret->done, "saved");
}

static const ViewAction actions[] = {
	{ COMMAND_ADD, add },   { COMMAND_EDIT, edit }, { COMMAND_REMOVE, take_back },
	{ COMMAND_UNDO, undo }, { COMMAND_SAVE, save }, { COMMAND_NONE, NULL },
};

const View view_allow_ip = {
	.name = "allow-ip",
	.title = "Allow-IP",
	.about = "Internal addresses that agents reach: those of the configuration, and what single sessions "
		 "have.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_ALLOW_IP,
	.state_size = sizeof(State),
	.state_done = state_done,
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
	.unsaved = unsaved,
	.actions = actions,
};
