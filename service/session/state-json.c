/* SPDX-License-Identifier: MIT */
#include "service/session/state-json.h"

/* The keys of the objects that are open, innermost last: a checked text has none twice. */
typedef struct Keys {
	const char **keys; /* with the opening quote */
	size_t n, allocated;
	bool no_memory;
} Keys;

typedef struct Cursor {
	const char *at, *end;
	Keys *keys; /* NULL: of a text that was checked before */
} Cursor;

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(Cursor *cursor)
{
	while (cursor->at < cursor->end && is_space(*cursor->at))
		cursor->at++;
}

static bool take(Cursor *cursor, char c)
{
	if (cursor->at >= cursor->end || *cursor->at != c)
		return false;
	cursor->at++;
	return true;
}

static bool take_digits(Cursor *cursor)
{
	const char *start = cursor->at;

	while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9')
		cursor->at++;
	return cursor->at > start;
}

static bool take_number(Cursor *cursor)
{
	(void)take(cursor, '-');
	if (!take(cursor, '0') && !take_digits(cursor))
		return false;
	if (take(cursor, '.') && !take_digits(cursor))
		return false;
	if (take(cursor, 'e') || take(cursor, 'E')) {
		if (!take(cursor, '+'))
			(void)take(cursor, '-');
		return take_digits(cursor);
	}
	return true;
}

static bool take_word(Cursor *cursor, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(cursor->end - cursor->at) < n || memcmp(cursor->at, word, n) != 0)
		return false;
	cursor->at += n;
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take_escape(Cursor *cursor)
{
	char c;

	if (cursor->at >= cursor->end)
		return false;
	c = *cursor->at++;
	if (c != 'u')
		return c != 0 && strchr("\"\\/bfnrt", c) != NULL;
	if (cursor->end - cursor->at < 4)
		return false;
	for (size_t i = 0; i < 4; i++)
		if (!is_hex(*cursor->at++))
			return false;
	return true;
}

/* RFC 3629, section 4: no overlong form, no surrogate, nothing beyond U+10FFFF. */
static bool take_utf8(Cursor *cursor, unsigned char first)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (first >= 0xc2 && first <= 0xdf) {
		n = 1;
	} else if (first >= 0xe0 && first <= 0xef) {
		n = 2;
		low = first == 0xe0 ? 0xa0 : 0x80;
		high = first == 0xed ? 0x9f : 0xbf;
	} else if (first >= 0xf0 && first <= 0xf4) {
		n = 3;
		low = first == 0xf0 ? 0x90 : 0x80;
		high = first == 0xf4 ? 0x8f : 0xbf;
	} else {
		return false;
	}
	for (; n > 0; n--, low = 0x80, high = 0xbf) {
		if (cursor->at >= cursor->end || (unsigned char)*cursor->at < low ||
		    (unsigned char)*cursor->at > high)
			return false;
		cursor->at++;
	}
	return true;
}

static bool take_string(Cursor *cursor)
{
	if (!take(cursor, '"'))
		return false;
	while (cursor->at < cursor->end) {
		unsigned char c = (unsigned char)*cursor->at++;

		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !take_escape(cursor)) || (c >= 0x80 && !take_utf8(cursor, c)))
			return false;
	}
	return false;
}

/* ---- keys as what they mean ---- */

/* A key is a string of characters, which a text can spell in several ways: "a", "\u0061". */
typedef struct KeyReader {
	const char *at;
	unsigned char
		bytes[4]; /* of an escaped character, in UTF-8, or as that would have a lone surrogate */
	unsigned next, n;
} KeyReader;

static unsigned take_hex(const char *digits)
{
	unsigned value = 0;

	for (size_t i = 0; i < 4; i++) {
		char c = digits[i];

		value = value << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

static unsigned take_code(KeyReader *reader)
{
	unsigned code = take_hex(reader->at), low;

	reader->at += 4;
	if (code < 0xd800 || code > 0xdbff || reader->at[0] != '\\' || reader->at[1] != 'u')
		return code;
	low = take_hex(reader->at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return code;
	reader->at += 6;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static void key_encode(KeyReader *reader, unsigned code)
{
	static const unsigned char firsts[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (unsigned i = n; i-- > 1; code >>= 6)
		reader->bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
	reader->bytes[0] = (unsigned char)(firsts[n] | code);
	reader->next = 0;
	reader->n = n;
}

/* The next byte of a key that was checked. Return: -1 at its end. */
static int key_byte(KeyReader *reader)
{
	static const char escapes[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *escape;
	char c;

	if (reader->next < reader->n)
		return reader->bytes[reader->next++];
	if (*reader->at == '"')
		return -1;
	if (*reader->at != '\\')
		return (unsigned char)*reader->at++;
	c = reader->at[1];
	reader->at += 2;
	if (c == 'u') {
		key_encode(reader, take_code(reader));
		return reader->bytes[reader->next++];
	}
	escape = strchr(escapes, c);
	return escape ? meanings[escape - escapes] : c;
}

static int compare_keys(const char *a, const char *b)
{
	KeyReader x = { .at = a + 1 }, y = { .at = b + 1 };
	int c, d;

	do {
		c = key_byte(&x);
		d = key_byte(&y);
	} while (c == d && c >= 0);
	return (c > d) - (c < d);
}

static int compare_listed(const void *a, const void *b)
{
	return compare_keys(*(const char *const *)a, *(const char *const *)b);
}

static bool keys_add(Keys *keys, const char *key)
{
	if (keys->n == keys->allocated) {
		size_t n = keys->allocated ? 2 * keys->allocated : 64;
		const char **grown = reallocarray(keys->keys, n, sizeof(*grown));

		if (!grown) {
			keys->no_memory = true;
			return false;
		}
		keys->keys = grown;
		keys->allocated = n;
	}
	keys->keys[keys->n++] = key;
	return true;
}

/* The object that began at start ends. */
static bool keys_close(Keys *keys, size_t start)
{
	bool good = true;

	if (keys->n > start + 1)
		qsort(keys->keys + start, keys->n - start, sizeof(*keys->keys), compare_listed);
	for (size_t i = start + 1; good && i < keys->n; i++)
		good = compare_keys(keys->keys[i - 1], keys->keys[i]) != 0;
	keys->n = start;
	return good;
}

/* ---- values ---- */

static bool take_value(Cursor *cursor, unsigned depth);

static bool take_array(Cursor *cursor, unsigned depth)
{
	skip_space(cursor);
	if (take(cursor, ']'))
		return true;
	do {
		if (!take_value(cursor, depth))
			return false;
	} while (take(cursor, ','));
	return take(cursor, ']');
}

static bool take_object(Cursor *cursor, unsigned depth)
{
	size_t start = cursor->keys ? cursor->keys->n : 0;

	skip_space(cursor);
	if (take(cursor, '}'))
		return true;
	do {
		const char *key;

		skip_space(cursor);
		key = cursor->at;
		if (!take_string(cursor) || (cursor->keys && !keys_add(cursor->keys, key)))
			return false;
		skip_space(cursor);
		if (!take(cursor, ':') || !take_value(cursor, depth))
			return false;
	} while (take(cursor, ','));
	return take(cursor, '}') && (!cursor->keys || keys_close(cursor->keys, start));
}

/* With the white space on both sides. depth: how many more levels may open. */
static bool take_value(Cursor *cursor, unsigned depth)
{
	bool good;

	skip_space(cursor);
	if (cursor->at >= cursor->end)
		return false;
	switch (*cursor->at) {
	case '{':
		cursor->at++;
		good = depth > 0 && take_object(cursor, depth - 1);
		break;
	case '[':
		cursor->at++;
		good = depth > 0 && take_array(cursor, depth - 1);
		break;
	case '"':
		good = take_string(cursor);
		break;
	case 't':
		good = take_word(cursor, "true");
		break;
	case 'f':
		good = take_word(cursor, "false");
		break;
	case 'n':
		good = take_word(cursor, "null");
		break;
	default:
		good = take_number(cursor);
		break;
	}
	skip_space(cursor);
	return good;
}

int state_json_check(const char *text, size_t size)
{
	Keys keys = { 0 };
	Cursor cursor = { .at = text, .end = text + size, .keys = &keys };
	bool good;

	skip_space(&cursor);
	good = cursor.at < cursor.end && *cursor.at == '{' && take_value(&cursor, STATE_JSON_DEPTH_MAX) &&
	       cursor.at == cursor.end;
	free(keys.keys);
	return good ? 0 : keys.no_memory ? -ENOMEM : -EBADMSG;
}

/* ---- objects ---- */

void state_object_done(StateObject *object)
{
	free(object->members);
	*object = (StateObject){ 0 };
}

static int compare_members(const void *a, const void *b)
{
	const StateMember *x = a, *y = b;

	return compare_keys(x->key, y->key);
}

static int append(StateObject *object, size_t *allocated, const StateMember *member)
{
	if (object->n_members >= STATE_JSON_MEMBERS_MAX)
		return -E2BIG;
	if (object->n_members == *allocated) {
		size_t n = *allocated ? 2 * *allocated : 64;
		StateMember *grown = reallocarray(object->members, n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		object->members = grown;
		*allocated = n;
	}
	object->members[object->n_members++] = *member;
	return 0;
}

int state_object_read(const char *text, size_t size, StateObject *ret)
{
	_cleanup_(state_object_done) StateObject object = { 0 };
	Cursor cursor = { .at = text, .end = text + size };
	size_t allocated = 0;

	skip_space(&cursor);
	if (!take(&cursor, '{'))
		return -EBADMSG;
	skip_space(&cursor);
	while (cursor.at < cursor.end && *cursor.at != '}') {
		StateMember member = { .position = object.n_members };
		const char *end;
		int r;

		skip_space(&cursor);
		member.key = cursor.at;
		if (!take_string(&cursor))
			return -EBADMSG;
		member.key_size = (size_t)(cursor.at - member.key);
		skip_space(&cursor);
		if (!take(&cursor, ':'))
			return -EBADMSG;
		skip_space(&cursor);
		member.value = cursor.at;
		if (!take_value(&cursor, STATE_JSON_DEPTH_MAX))
			return -EBADMSG;
		for (end = cursor.at; is_space(end[-1]); end--)
			continue;
		member.value_size = (size_t)(end - member.value);
		r = append(&object, &allocated, &member);
		if (r < 0)
			return r;
		(void)take(&cursor, ',');
	}
	if (object.n_members > 0)
		qsort(object.members, object.n_members, sizeof(StateMember), compare_members);
	*ret = object;
	object = (StateObject){ 0 };
	return 0;
}

const StateMember *state_object_find(const StateObject *object, const char *key)
{
	const StateMember wanted = { .key = key };

	return object->n_members == 0 ? NULL
				      : bsearch(&wanted, object->members, object->n_members,
						sizeof(StateMember), compare_members);
}

bool state_json_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
	const char *a_end = a + a_size, *b_end = b + b_size;
	bool quoted = false;

	for (;;) {
		while (!quoted && a < a_end && is_space(*a))
			a++;
		while (!quoted && b < b_end && is_space(*b))
			b++;
		if (a == a_end || b == b_end)
			return a == a_end && b == b_end;
		if (*a != *b)
			return false;
		if (quoted && *a == '\\') {
			/* In a checked text something follows, the same number of bytes in both or they
			 * differ. */
			a++;
			b++;
			if (a == a_end || b == b_end || *a != *b)
				return false;
		} else if (*a == '"') {
			quoted = !quoted;
		}
		a++;
		b++;
	}
}

int state_json_string(const StateMember *member, char **ret)
{
	KeyReader reader = { .at = member->value + 1 };
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	int c;

	if (member->value_size < 2 || member->value[0] != '"')
		return -EBADMSG;
	text = malloc(member->value_size); /* an escape is longer than what it stands for */
	if (!text)
		return -ENOMEM;
	while ((c = key_byte(&reader)) >= 0) {
		if (c == 0)
			return -EBADMSG;
		text[n++] = (char)c;
	}
	text[n] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}
