/* SPDX-License-Identifier: MIT */
#include "service/session/git-file.h"

/* More than any name or value that is used here; git has no limit. */
#define WORD_BYTES_MAX 4096u

typedef struct Text {
	const char *at, *end;
} Text;

/* A word being read. What does not fit is a file that nobody reads. */
typedef struct Word {
	char bytes[WORD_BYTES_MAX + 1];
	size_t size;
} Word;

/* Return: the next byte, a line break as '\n' alone; '\n' at the end too. */
static char text_next(Text *text)
{
	if (text->at == text->end)
		return '\n';
	if (*text->at == '\r' && text->at + 1 < text->end && text->at[1] == '\n')
		text->at++;
	return *text->at++;
}

static bool text_ends(const Text *text)
{
	return text->at == text->end;
}

static int word_add(Word *word, char c)
{
	if (word->size == WORD_BYTES_MAX || c == 0)
		return -EBADMSG;
	word->bytes[word->size++] = c;
	word->bytes[word->size] = 0;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static void skip_line(Text *text)
{
	while (!text_ends(text) && *text->at++ != '\n')
		continue;
}

/* Behind the first quote of a section's second part, to the bracket. */
static int read_subsection(Text *text, Word *key)
{
	int r = word_add(key, '.');

	while (r == 0) {
		char c = text_next(text);

		if (c == '\n')
			return -EBADMSG;
		if (c == '"')
			return text_next(text) == ']' ? 0 : -EBADMSG;
		if (c == '\\' && (c = text_next(text)) == '\n')
			return -EBADMSG;
		r = word_add(key, c);
	}
	return r;
}

/* Behind the bracket. */
static int read_section(Text *text, Word *key)
{
	int r = 0;

	*key = (Word){ 0 };
	while (r == 0) {
		char c = text_next(text);

		if (c == ']')
			return key->size > 0 ? 0 : -EBADMSG;
		if (is_blank(c)) {
			while (is_blank(c))
				c = text_next(text);
			return c == '"' && key->size > 0 ? read_subsection(text, key) : -EBADMSG;
		}
		r = is_name(c) || c == '.' ? word_add(key, lower(c)) : -EBADMSG;
	}
	return r;
}

/* What stands behind a backslash in a value. Return: the byte, or 0 where git knows none. */
static char unescaped(char c)
{
	static const char letters[] = "tbn\\\"", bytes[] = "\t\b\n\\\"";
	const char *letter = c ? strchr(letters, c) : NULL;

	return letter ? bytes[letter - letters] : 0;
}

/* Behind the "=", to the end of the line. Blanks around it do not count, those between its words do. */
static int read_value(Text *text, Word *value)
{
	size_t kept = 0;
	bool quoted = false;
	int r = 0;

	*value = (Word){ 0 };
	while (r == 0) {
		char c = text_next(text);

		if (c == '\n')
			break;
		if (!quoted && (c == '#' || c == ';')) {
			skip_line(text);
			break;
		}
		if (!quoted && is_blank(c)) {
			r = value->size > 0 ? word_add(value, c) : 0;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			kept = value->size;
			continue;
		}
		if (c == '\\') {
			kept = value->size;
			c = text_next(text);
			if (c == '\n')
				continue;
			c = unescaped(c);
		}
		r = word_add(value, c);
		kept = value->size;
	}
	if (r == 0 && quoted)
		r = -EBADMSG;
	value->size = kept;
	value->bytes[kept] = 0;
	return r;
}

/* first is the name's first letter. Return: 0 and whether a value follows. */
static int read_name(Text *text, char first, Word *key, bool *ret_value)
{
	int r = key->size > 0 ? word_add(key, '.') : 0;
	char c = first;

	while (r == 0 && is_name(c)) {
		r = word_add(key, lower(c));
		c = text_next(text);
	}
	while (is_blank(c))
		c = text_next(text);
	*ret_value = c == '=';
	return r == 0 && c != '=' && c != '\n' ? -EBADMSG : r;
}

int git_file_parse(const char *text, size_t size,
		   int (*each)(void *userdata, const char *key, const char *value), void *userdata)
{
	static const char mark[] = "\xef\xbb\xbf";
	_cleanup_free_ Word *words = calloc(2, sizeof(Word));
	Word *key = words, *value = words + 1;
	Text left = { text, text + size };
	size_t section = 0;
	int r = words ? 0 : -ENOMEM;

	if (size >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0)
		left.at += sizeof(mark) - 1;
	while (r == 0 && !text_ends(&left)) {
		char c = text_next(&left);
		bool has_value;

		if (c == '\n' || is_blank(c))
			continue;
		if (c == '#' || c == ';') {
			skip_line(&left);
			continue;
		}
		if (c == '[') {
			r = read_section(&left, key);
			section = key->size;
			continue;
		}
		if (!is_letter(c))
			return -EBADMSG;
		key->size = section;
		r = read_name(&left, c, key, &has_value);
		if (r == 0 && has_value)
			r = read_value(&left, value);
		if (r == 0)
			r = each(userdata, key->bytes, has_value ? value->bytes : NULL);
	}
	return r;
}
