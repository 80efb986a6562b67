/* SPDX-License-Identifier: MIT */

/* `allow-ip edit`: the list in an editor, then what has come and gone, one call each. */

#include "dbus/client-allow.h"
#include "service/link/pack.h"
#include "shim/editor.h"
#include "shim/verb.h"
#include "shim/verbs.h"

#define HEAD                                                                                    \
	"# The internal addresses that agents of all users reach: one a line, with a comment\n" \
	"# behind '#' where you like. What you remove is closed at once. Lines that begin\n"    \
	"# with '#' are not read.\n"

/* Pairs: address, comment. */
typedef struct Lines {
	char **cells;
	size_t *numbers; /* of the text, from 1; one a pair */
} Lines;

static void lines_done(Lines *lines)
{
	strings_free(lines->cells);
	free(lines->numbers);
}

static const char *comment_of(const Lines *lines, const char *address)
{
	for (size_t i = 0; lines->cells && lines->cells[i]; i += 2)
		if (streq(lines->cells[i], address))
			return lines->cells[i + 1];
	return NULL;
}

static int lines_of_table(const ClientTable *table, Lines *lines, char **ret_text)
{
	char *text = strdup(HEAD);

	for (size_t i = 0; text && i < table->n_rows; i++) {
		char *const *row = table->cells + i * table->n_columns;
		char *longer = NULL;

		if (!starts_with(row[2], CS_CONFIG_PATH))
			continue;
		if (strings_append(&lines->cells, row[0]) < 0 || strings_append(&lines->cells, row[1]) < 0 ||
		    asprintf(&longer, "%s%s%s%s\n", text, row[0], *row[1] ? "  # " : "", row[1]) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	*ret_text = text;
	return text ? 0 : -ENOMEM;
}

static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	for (n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

static int lines_add(Lines *lines, size_t number, char *line)
{
	char *comment = strchr(line, '#');
	size_t n = strings_count(lines->cells) / 2, *grown;

	if (comment)
		*comment++ = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	grown = reallocarray(lines->numbers, n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	lines->numbers = grown;
	grown[n] = number;
	return strings_append(&lines->cells, line) < 0 ||
			       strings_append(&lines->cells, comment ? trim(comment) : "") < 0
		       ? -ENOMEM
		       : 0;
}

static int lines_of_text(const char *text, Lines *lines)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy;
	size_t number = 0;
	int r = copy ? 0 : -ENOMEM;

	for (char *line; r == 0 && (line = strsep(&rest, "\n"));)
		r = lines_add(lines, ++number, line);
	return r;
}

typedef struct Edit {
	const SandboxContext *context;
	sd_bus *bus;
	unsigned n_changes;
	int status;
	size_t bad_line; /* of the text, from 1: it was refused, and nothing was changed; 0: none was */
	char *refusal;
} Edit;

static int take(Edit *edit, int r, const sd_bus_error *error, char *const *unconfirmed, const char *done,
		const char *address)
{
	if (r < 0)
		return verb_complain(edit->context, r, error);
	edit->n_changes++;
	fprintf(edit->context->out, "%s %s\n", done, address);
	for (size_t i = 0; unconfirmed && unconfirmed[i]; i++)
		edit->status = verb_refuse(edit->context, CS_EXIT_FOUND,
					   "session %s has not confirmed it within 2 seconds; the log of the "
					   "service says more",
					   unconfirmed[i]);
	return 0;
}

static int set(Edit *edit, const char *address, const char *comment, bool check)
{
	_cleanup_(strings_freep) char **unconfirmed = NULL;
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	int r;

	do
		r = check ? client_check_allow_ip(edit->bus, address, comment, &error)
			  : client_add_allow_ip(edit->bus, address, comment, asked, &unconfirmed, &error);
	while (r < 0 && verb_asks(edit->context, &agent, &asked, &error));

	if (check && sd_bus_error_has_name(&error, CS_ERROR_BAD_REQUEST)) {
		edit->refusal = client_sentence(r, &error);
		return CS_EXIT_REFUSED;
	}
	if (check)
		return r < 0 ? verb_complain(edit->context, r, &error) : 0;
	return take(edit, r, &error, unconfirmed, "set", address);
}

static int drop(Edit *edit, const char *address)
{
	_cleanup_(strings_freep) char **unconfirmed = NULL;
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	int r;

	do
		r = client_remove_allow_ip(edit->bus, address, asked, &unconfirmed, &error);
	while (r < 0 && verb_asks(edit->context, &agent, &asked, &error));

	return take(edit, r, &error, unconfirmed, "removed", address);
}

/* Everything is checked before anything is changed. Return: an exit status. */
static int apply(Edit *edit, const Lines *before, const Lines *after)
{
	int r = 0;

	for (int check = 1; r == 0 && check >= 0; check--) {
		for (size_t i = 0; r == 0 && !check && before->cells && before->cells[i]; i += 2)
			if (!comment_of(after, before->cells[i]))
				r = drop(edit, before->cells[i]);
		for (size_t i = 0; r == 0 && after->cells && after->cells[i]; i += 2) {
			const char *comment = comment_of(before, after->cells[i]);

			if (!comment || !streq(comment, after->cells[i + 1]))
				r = set(edit, after->cells[i], after->cells[i + 1], check);
			if (edit->refusal)
				edit->bad_line = after->numbers[i / 2];
		}
	}
	return r;
}

/* With the refusal above the line that it is about. */
static char *text_with_refusal(const char *text, size_t number, const char *refusal)
{
	const char *line = text;
	char *joined;

	for (size_t i = 1; i < number && line; i++) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line ||
	    asprintf(&joined, "%.*s# Not taken: %s\n%s", (int)(line - text), text, refusal, line) < 0)
		return NULL;
	return joined;
}

/* Until every line is right, or the person leaves the text as it was shown. Return: an exit status. */
static int edit_until_right(Edit *edit, const Lines *before, char **text)
{
	for (size_t line = 0;;) {
		_cleanup_free_ char *edited = NULL, *problem = NULL;
		_cleanup_(lines_done) Lines after = { 0 };
		int r;

		if (editor_run(*text, line, edit->context->environment, &edited, &problem) < 0)
			return verb_refuse(edit->context, CS_EXIT_REFUSED, "%s", problem ?: strerror(ENOMEM));
		if (line > 0 && streq(edited, *text))
			return verb_refuse(edit->context, CS_EXIT_REFUSED, "%s; nothing was changed",
					   edit->refusal);
		free(edit->refusal);
		edit->refusal = NULL;
		if (lines_of_text(edited, &after) < 0)
			return verb_complain_memory(edit->context);
		r = apply(edit, before, &after);
		if (!edit->refusal)
			return r;
		free(*text);
		*text = text_with_refusal(edited, edit->bad_line, edit->refusal);
		if (!*text)
			return verb_complain_memory(edit->context);
		line = edit->bad_line + 1;
	}
}

int verb_allow_edit(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_table_done) ClientTable table = { 0 };
	_cleanup_(lines_done) Lines before = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	Edit edit = { .context = context };
	int r;

	if (!context->interactive || call->json)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'allow-ip edit' is for a person at a terminal; use 'allow-ip add' and "
				   "'remove'");
	r = verb_open(context, &bus, &error);
	if (r >= 0)
		r = client_list_allow_ip(bus, &table, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (lines_of_table(&table, &before, &text) < 0)
		return verb_complain_memory(context);
	edit.bus = bus;
	r = edit_until_right(&edit, &before, &text);
	free(edit.refusal);
	if (r == 0 && edit.n_changes == 0)
		fputs("nothing was changed\n", context->out);
	return r != 0 ? r : edit.status;
}
