/* SPDX-License-Identifier: MIT */
#include "service/plan/named-programs.h"

#include <ctype.h>

#include "service/link/pack.h"

#define STRING_MAX 4096u /* a longer text names nothing */

typedef struct Reader {
	const char *at, *end;
	const char *home;
	char ***paths;
	size_t n_words;
} Reader;

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Neither JSON's strings nor TOML's simple ones go over the end of a line: what is not one ends there. */
static void read_string(Reader *reader, char text[static STRING_MAX])
{
	char quote = *reader->at++;
	size_t n = 0;

	for (; reader->at < reader->end && *reader->at != quote && *reader->at != '\n'; reader->at++) {
		char c = *reader->at;

		if (c == '\\' && quote == '"' && reader->at + 1 < reader->end) {
			c = *++reader->at;
			c = c == 'n' || c == 't' || c == 'r' ? ' ' : c;
		}
		if (n < STRING_MAX - 1)
			text[n++] = c;
	}
	if (reader->at < reader->end && *reader->at == quote)
		reader->at++;
	text[n < STRING_MAX - 1 ? n : 0] = 0;
}

static void skip(Reader *reader, const char *what)
{
	while (reader->at < reader->end && *reader->at && strchr(what, *reader->at))
		reader->at++;
}

static int add_word(Reader *reader, const char *word, size_t n)
{
	static const char *const homes[] = { "~/", "$HOME/", "${HOME}/" };
	_cleanup_free_ char *path = NULL;
	const char *rest = NULL;

	for (size_t i = 0; i < ELEMENTSOF(homes); i++) {
		size_t length = strlen(homes[i]);

		if (n > length && strncmp(word, homes[i], length) == 0)
			rest = word + length;
	}
	if ((!rest && word[0] != '/') || reader->n_words >= NAMED_WORDS_MAX)
		return 0;
	reader->n_words++;
	if (asprintf(&path, "%s%s%.*s", rest ? reader->home : "", rest ? "/" : "",
		     (int)(n - (size_t)((rest ?: word) - word)), rest ?: word) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; *reader->paths && (*reader->paths)[i]; i++)
		if (streq((*reader->paths)[i], path))
			return 0;
	return strings_append(reader->paths, path);
}

/* As a shell would take it apart, as far as paths go: a word in quotes may have blanks. */
static int add_words(Reader *reader, const char *text)
{
	int r = 0;

	while (r == 0 && *text) {
		char quote = *text == '"' || *text == '\'' ? *text++ : 0;
		size_t n = quote ? strcspn(text, quote == '"' ? "\"" : "'") : strcspn(text, " \t;|&()<>`\"'");

		if (n > 0)
			r = add_word(reader, text, n);
		text += n;
		if (*text && (quote || !strchr("\"'", *text)))
			text++;
	}
	return r;
}

static int read_value(Reader *reader)
{
	char text[STRING_MAX];
	bool list;
	int r = 0;

	skip(reader, " \t\r\n");
	list = reader->at < reader->end && *reader->at == '[';
	if (list)
		reader->at++;
	do {
		if (list)
			skip(reader, " \t\r\n,");
		if (reader->at >= reader->end || (*reader->at != '"' && *reader->at != '\''))
			return 0;
		read_string(reader, text);
		r = add_words(reader, text);
	} while (r == 0 && list);
	return r;
}

static bool is_wanted(const char *const *keys, const char *key)
{
	for (size_t i = 0; keys[i]; i++)
		if (streq(keys[i], key))
			return true;
	return false;
}

int named_programs_find(const char *text, size_t size, const char *const *keys, const char *home,
			char ***paths)
{
	Reader reader = { .at = text, .end = text + size, .home = home, .paths = paths };
	char key[STRING_MAX];
	int r = 0;

	while (r == 0 && reader.at < reader.end) {
		if (*reader.at == '"' || *reader.at == '\'') {
			read_string(&reader, key);
		} else if (is_name(*reader.at)) {
			size_t n = 0;

			for (; reader.at < reader.end && is_name(*reader.at); reader.at++)
				if (n < sizeof(key) - 1)
					key[n++] = *reader.at;
			key[n] = 0;
		} else {
			reader.at++;
			continue;
		}
		skip(&reader, " \t");
		if (reader.at < reader.end && (*reader.at == ':' || *reader.at == '=') &&
		    is_wanted(keys, key)) {
			reader.at++;
			r = read_value(&reader);
		}
	}
	return r;
}
