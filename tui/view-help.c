/* SPDX-License-Identifier: MIT */

/* Help: what the words on the screen mean, and every key, from the one table of them. */

#include "tui/words.h"

enum { NAME, WHAT, WHERE, COLUMNS };

static const Column columns[COLUMNS] = {
	[NAME] = { .title = "KEY OR WORD", .key = "name" },
	[WHAT] = { .title = "WHAT IT DOES OR MEANS", .key = "text", .least = 20 },
	[WHERE] = { .key = "views" },
};

static const Meaning meanings[] = {
	{ "session", "one agent that runs in its jail, with everything that holds it" },
	{ "workspace", "the project's directory: the agent may change it" },
	{ "rw", "the agent reads and changes what lies there: these are your files" },
	{ "ro", "the agent reads it and cannot change it" },
	{ "masked", "hidden: the agent finds nothing there" },
	{ "private", "the session's own: empty at its start, gone at its end" },
	{ "origin", "the rule, or the line of the configuration, that asks for it" },
	{ "jailed", "the agent reaches the internet, and of internal addresses what Allow-IP names" },
	{ "shared", "no jail around the network: the agent reaches all that this machine reaches" },
	{ "denied", "attempts to reach an internal address that is not allowed; nothing was sent" },
	{ "offline", "the session has no way to the internet now; it comes back by itself" },
	{ "stopped", "the agent waits in the background of its shell (fg goes on)" },
};

static int add(Rows *to, const char *name, const char *what, const char *where, Style style)
{
	_cleanup_free_ char *key = NULL;

	if (words_set(&key, "%zu", rows_count(to)) < 0)
		return -ENOMEM;
	(void)rows_add(to, key);
	(void)rows_cell(to, name, style);
	(void)rows_cell(to, what, style == STYLE_TITLE ? STYLE_TITLE : STYLE_PLAIN);
	return rows_cell(to, where, STYLE_FAINT);
}

/* "in Verify, Doctor: run the checks" */
static int say_where(const KeyBinding *binding, char **ret)
{
	const char *between = "in ";
	const View *view;
	int r = words_set(ret, "%s", "");

	if (!binding->views || binding->group != KEY_GROUP_ACTION)
		return words_set(ret, "%s", binding->help);
	for (size_t i = 0; r == 0 && (view = view_at(i)); i++) {
		if (!key_binding_is_for(binding, view->name))
			continue;
		r = words_set(ret, "%s%s%s", *ret, between, view->title);
		between = ", ";
	}
	return r < 0 ? r : words_set(ret, "%s: %s", *ret, binding->help);
}

static int add_group(Rows *to, KeyGroup group)
{
	const KeyBinding *binding;
	int r;

	(void)add(to, "", "", "", STYLE_PLAIN);
	r = add(to, key_group_title(group), "", "", STYLE_TITLE);
	for (size_t i = 0; r == 0 && (binding = key_binding_at(i)); i++) {
		_cleanup_free_ char *what = NULL;

		if (binding->group != group || !binding->names)
			continue;
		r = say_where(binding, &what);
		if (r == 0)
			r = add(to, binding->names, what, binding->views ?: "", STYLE_MESSAGE);
	}
	return r;
}

static int rows(const ViewContext *context, Rows *to)
{
	int r = add(to, "Views", "", "", STYLE_TITLE);
	const View *view;

	for (size_t i = 0; r == 0 && (view = view_at(i)); i++) {
		_cleanup_free_ char *name = NULL;

		r = words_set(&name, "%zu %s", i + 1, view->title);
		if (r == 0)
			r = add(to, name, view->about, "", STYLE_MESSAGE);
	}
	for (KeyGroup group = 0; r == 0 && group < KEY_GROUP_MAX; group++)
		r = add_group(to, group);
	(void)add(to, "", "", "", STYLE_PLAIN);
	(void)add(to, "Words", "", "", STYLE_TITLE);
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(meanings); i++)
		r = add(to, meanings[i].name, meanings[i].text, "", STYLE_CAUTION);
	return r;
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	_cleanup_(rows_freep) Rows *all = rows_new(COLUMNS);
	size_t i = strtoul(key, NULL, 10);
	const Cell *cells;

	if (!all || rows(context, all) < 0)
		return -ENOMEM;
	*ret = NULL;
	if (i >= rows_count(all))
		return 0;
	cells = rows_cells(all, i);
	return *cells[WHAT].text ? words_set(ret, "%s: %s\n", cells[NAME].text, cells[WHAT].text) : 0;
}

const View view_help = {
	.name = "help",
	.title = "Help",
	.about = "Every view, every key, and what the words mean.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.rows = rows,
	.details = details,
};
