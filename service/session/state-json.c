/* SPDX-License-Identifier: MIT */
#include "service/session/state-json.h"

typedef struct Cursor {
	const char *at, *end;
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
	skip_space(cursor);
	if (take(cursor, '}'))
		return true;
	do {
		skip_space(cursor);
		if (!take_string(cursor))
			return false;
		skip_space(cursor);
		if (!take(cursor, ':') || !take_value(cursor, depth))
			return false;
	} while (take(cursor, ','));
	return take(cursor, '}');
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
	Cursor cursor = { .at = text, .end = text + size };

	skip_space(&cursor);
	if (cursor.at >= cursor.end || *cursor.at != '{')
		return -EBADMSG;
	return take_value(&cursor, STATE_JSON_DEPTH_MAX) && cursor.at == cursor.end ? 0 : -EBADMSG;
}

/* ---- objects ---- */

void state_object_done(StateObject *object)
{
	free(object->members);
	*object = (StateObject){ 0 };
}

static int compare_keys(const char *a, size_t a_size, const char *b, size_t b_size)
{
	int r = memcmp(a, b, MIN_OF(a_size, b_size));

	return r != 0 ? r : (a_size > b_size) - (a_size < b_size);
}

static int compare_members(const void *a, const void *b)
{
	const StateMember *x = a, *y = b;
	int r = compare_keys(x->key, x->key_size, y->key, y->key_size);

	return r != 0 ? r : (x->position > y->position) - (x->position < y->position);
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

static void sort(StateObject *object)
{
	size_t n = 0;

	if (object->n_members == 0)
		return;
	qsort(object->members, object->n_members, sizeof(StateMember), compare_members);
	for (size_t i = 0; i < object->n_members; i++) {
		const StateMember *next = i + 1 < object->n_members ? &object->members[i + 1] : NULL;

		if (!next || compare_keys(object->members[i].key, object->members[i].key_size, next->key,
					  next->key_size) != 0)
			object->members[n++] = object->members[i];
	}
	object->n_members = n;
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
	sort(&object);
	*ret = object;
	object = (StateObject){ 0 };
	return 0;
}

const StateMember *state_object_find(const StateObject *object, const char *key, size_t key_size)
{
	const StateMember wanted = { .key = key, .key_size = key_size };
	size_t low = 0, high = object->n_members;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const StateMember *member = &object->members[middle];
		int r = compare_keys(wanted.key, wanted.key_size, member->key, member->key_size);

		if (r == 0)
			return member;
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
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
