/* SPDX-License-Identifier: MIT */
#include "tui/words.h"

#include <stdarg.h>

/* Of a path in a sentence: what is longer is in the details. */
#define BYTES_WIDTH 160u
#define BRIEF_ID 6 /* characters of an id, as a narrow list of sessions has */

static int set_list(char **ret, const char *format, va_list arguments)
{
	char *text = NULL;

	if (vasprintf(&text, format, arguments) < 0)
		return -ENOMEM;
	free(*ret);
	*ret = text;
	return 0;
}

int words_set(char **ret, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = set_list(ret, format, arguments);
	va_end(arguments);
	return r;
}

int words_tell(Effect *ret, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = set_list(&ret->text, format, arguments);
	va_end(arguments);
	if (r == 0)
		ret->kind = EFFECT_TELL;
	return r;
}

int words_prompt(Effect *ret, const char *title, const char *text,
		 int (*accept)(const ViewContext *context, const char *typed, Effect *ret))
{
	if (words_set(&ret->title, "%s", title) < 0 || words_set(&ret->text, "%s", text) < 0)
		return -ENOMEM;
	ret->kind = EFFECT_PROMPT;
	ret->accept = accept;
	return 0;
}

static FormatFlags encoding(const ViewContext *context)
{
	return context->utf8 ? FORMAT_UTF8 : 0;
}

char *words_bytes(const ViewContext *context, const char *bytes)
{
	return format_cell(bytes, BYTES_WIDTH, encoding(context) | FORMAT_CUT_MIDDLE);
}

int words_session(const ViewContext *context, const ModelSession *session, char **ret)
{
	_cleanup_free_ char *workspace = words_bytes(context, session->session.workspace);
	_cleanup_free_ char *agent = words_bytes(context, session->session.agent);
	_cleanup_free_ char *user = words_bytes(context, session->session.user);

	if (!workspace || !agent || !user)
		return -ENOMEM;
	return words_set(ret, "the %s session %s of %s in %s", agent, session->session.id, user, workspace);
}

int words_session_brief(const ViewContext *context, const ModelSession *session, char **ret)
{
	_cleanup_free_ char *agent = words_bytes(context, session->session.agent);

	return agent ? words_set(ret, "%s %.*s", agent, BRIEF_ID, session->session.id) : -ENOMEM;
}

Words *words_begin(Words *words, const ViewContext *context)
{
	*words = (Words){ .context = context };
	words->stream = open_memstream(&words->text, &words->size);
	return words;
}

static void put(Words *words, const char *name, const char *text, const char *meaning, FormatFlags flags)
{
	_cleanup_free_ char *line = format_line(text, flags | encoding(words->context));

	if (!*text || !words->stream)
		return;
	if (line && meaning)
		fprintf(words->stream, "%s: %s (%s)\n", name, line, meaning);
	else if (line)
		fprintf(words->stream, "%s: %s\n", name, line);
}

void words_path(Words *words, const char *name, const char *bytes)
{
	put(words, name, bytes, NULL, 0);
}

void words_text(Words *words, const char *name, const char *text)
{
	put(words, name, text, NULL, FORMAT_SENTENCE);
}

void words_meaning(Words *words, const char *name, const char *text, const char *meaning)
{
	put(words, name, text, meaning, FORMAT_SENTENCE);
}

int words_end(Words *words, bool found, char **ret)
{
	bool failed = !words->stream || ferror(words->stream);

	if (words->stream)
		failed |= fclose(words->stream) != 0;
	if (failed || !found) {
		free(words->text);
		*ret = NULL;
		return failed ? -ENOMEM : 0;
	}
	*ret = words->text;
	return 0;
}

const char *words_nothing(const ViewContext *context, const ModelTable *table, const char *empty)
{
	if (!table)
		return "No session is open: choose one in the view Sessions, with Enter.";
	switch (table->state) {
	case MODEL_FAILED:
		return table->problem ?: "It cannot be told.";
	case MODEL_HERE:
		return empty;
	case MODEL_UNKNOWN:
	case MODEL_ASKED:
		break;
	}
	return context->model->link == LINK_UP ? "The service is being asked ..."
					       : "Nothing is known: the service does not answer.";
}

const char *words_cell(const ClientTable *table, size_t row, size_t column)
{
	return table->cells[row * table->n_columns + column];
}

const char *meaning_of(const Meaning *meanings, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (streq(meanings[i].name, name))
			return meanings[i].text;
	return NULL;
}
