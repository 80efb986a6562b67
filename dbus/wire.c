/* SPDX-License-Identifier: MIT */
#include "dbus/wire.h"

#include <assert.h>
#include <sys/types.h>

/* D-Bus specification, "Valid Signatures": 32 arrays and 32 structs deep, variants on top of that. */
#define WEIGH_DEPTH_MAX 128u

/*
 * The length of the valid UTF-8 sequence at p (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF),
 * 0 for none. *ret_point is set only on success.
 */
static size_t utf8_sequence(const unsigned char *p, uint32_t *ret_point)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point;
	size_t n;

	if (p[0] < 0x80) {
		*ret_point = p[0];
		return p[0] ? 1 : 0;
	}
	if ((p[0] & 0xe0) == 0xc0)
		n = 2, point = p[0] & 0x1f;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3, point = p[0] & 0x0f;
	else if ((p[0] & 0xf8) == 0xf0)
		n = 4, point = p[0] & 0x07;
	else
		return 0;

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (p[i] & 0x3f);
	}
	if (point < smallest[n] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret_point = point;
	return n;
}

static bool point_is_shown(uint32_t point)
{
	if (point < 0x20 || (point >= 0x7f && point < 0xa0))
		return false;
	if (point == 0x2028 || point == 0x2029 || (point >= 0x202a && point <= 0x202e))
		return false;
	if (point >= 0x2066 && point <= 0x2069)
		return false;
	return true;
}

static char *show(const char *text, size_t max, bool reversible)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)(text ? text : "");
	size_t size = 0, cut = 0, most;
	char *shown;

	/* Each byte of text becomes at most four. */
	most = strnlen((const char *)p, max + 1) * 4;
	if (most > max)
		most = max;
	shown = malloc(most + 1);
	if (!shown)
		return NULL;

	while (*p) {
		uint32_t point = 0;
		size_t n = utf8_sequence(p, &point);
		bool plain = n > 0 && point_is_shown(point);
		bool doubled = plain && reversible && *p == '\\';
		size_t width = plain ? n + doubled : 4;

		if (size + width > most) {
			size = cut;
			for (size_t i = 0; i < 3 && size < most; i++)
				shown[size++] = '.';
			break;
		}
		if (plain) {
			memcpy(shown + size + doubled, p, n);
			if (doubled)
				shown[size] = '\\';
			p += n;
		} else {
			shown[size] = '\\';
			shown[size + 1] = 'x';
			shown[size + 2] = hex[*p >> 4];
			shown[size + 3] = hex[*p & 15];
			p++;
		}
		size += width;
		if (size + 3 <= most)
			cut = size;
	}
	shown[size] = '\0';
	return shown;
}

char *wire_text(const char *text, size_t max)
{
	return show(text, max, false);
}

char *wire_escape(const char *bytes, size_t max)
{
	return show(bytes, max, true);
}

int wire_append_bytes(sd_bus_message *m, const char *bytes)
{
	return sd_bus_message_append_array(m, 'y', bytes ? bytes : "", bytes ? strlen(bytes) : 0);
}

int wire_append_vector(sd_bus_message *m, char *const *strings)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "ay");
	if (r < 0)
		return r;
	for (size_t i = 0; strings && strings[i]; i++) {
		r = wire_append_bytes(m, strings[i]);
		if (r < 0)
			return r;
	}
	return sd_bus_message_close_container(m);
}

int wire_append_table(sd_bus_message *m, size_t n_columns, const char *const *cells, size_t n_rows,
		      size_t cell_max)
{
	static const char all_strings[] = "(ssssssss)";
	char row[sizeof(all_strings)];
	int r;

	assert(n_columns > 0 && n_columns <= sizeof(all_strings) - 3);
	memcpy(row, all_strings, n_columns + 1);
	row[n_columns + 1] = ')';
	row[n_columns + 2] = '\0';

	r = sd_bus_message_open_container(m, 'a', row);
	if (r < 0)
		return r;
	row[n_columns + 1] = '\0';
	for (size_t i = 0; i < n_rows; i++) {
		r = sd_bus_message_open_container(m, 'r', row + 1);
		if (r < 0)
			return r;
		for (size_t c = 0; c < n_columns; c++) {
			_cleanup_free_ char *shown = wire_text(cells[i * n_columns + c], cell_max);

			if (!shown)
				return -ENOMEM;
			r = sd_bus_message_append_basic(m, 's', shown);
			if (r < 0)
				return r;
		}
		r = sd_bus_message_close_container(m);
		if (r < 0)
			return r;
	}
	return sd_bus_message_close_container(m);
}

int wire_read_bytes(sd_bus_message *m, size_t *budget, char **ret)
{
	const void *data;
	size_t size;
	char *copy;
	int r;

	r = sd_bus_message_read_array(m, 'y', &data, &size);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	if (size >= *budget)
		return -E2BIG;
	if (size > 0 && memchr(data, 0, size))
		return -EINVAL;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	*budget -= size + 1;
	*ret = copy;
	return 0;
}

static void vector_free(char **strings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(strings[i]);
	free(strings);
}

int wire_read_vector(sd_bus_message *m, size_t max_strings, size_t *budget, char ***ret)
{
	size_t n = 0, allocated = 16, left = *budget;
	char **strings;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "ay");
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	strings = malloc(allocated * sizeof(*strings));
	if (!strings)
		return -ENOMEM;

	while ((r = sd_bus_message_at_end(m, false)) == 0) {
		if (n == max_strings) {
			r = -E2BIG;
			break;
		}
		if (n + 1 == allocated) {
			char **larger = reallocarray(strings, allocated * 2, sizeof(*strings));
			if (!larger) {
				r = -ENOMEM;
				break;
			}
			strings = larger;
			allocated *= 2;
		}
		r = wire_read_bytes(m, &left, &strings[n]);
		if (r < 0)
			break;
		n++;
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r < 0) {
		vector_free(strings, n);
		return r;
	}
	strings[n] = NULL;
	*budget = left;
	*ret = strings;
	return 0;
}

/* The width of a type that sd_bus_message_read_array() takes as one block, 0 for others. */
static size_t type_width(char type)
{
	switch (type) {
	case 'y':
		return 1;
	case 'n':
	case 'q':
		return 2;
	case 'i':
	case 'u':
		return 4;
	case 'x':
	case 't':
	case 'd':
		return 8;
	}
	return 0;
}

static int weigh_basic(sd_bus_message *m, char type, size_t *weight)
{
	union {
		const char *text;
		uint64_t number;
		double real;
		int fd;
	} value = { 0 };
	int r;

	r = sd_bus_message_read_basic(m, type, &value);
	if (r < 0)
		return r;
	if (type == 's' || type == 'o' || type == 'g')
		*weight += strlen(value.text);
	*weight += WIRE_VALUE_WEIGHT;
	return 0;
}

static int weigh_values(sd_bus_message *m, size_t limit, unsigned depth, size_t *weight)
{
	if (depth > WEIGH_DEPTH_MAX)
		return -EBADMSG;

	while (*weight <= limit) {
		const char *contents = NULL;
		char type = 0;
		int r;

		r = sd_bus_message_peek_type(m, &type, &contents);
		if (r < 0)
			return r;
		if (r == 0)
			return 0;

		if (type == 'a' && contents[1] == '\0' && type_width(contents[0]) > 0) {
			const void *data;
			size_t size;

			r = sd_bus_message_read_array(m, contents[0], &data, &size);
			if (r < 0)
				return r;
			*weight += size + WIRE_VALUE_WEIGHT;
		} else if (contents) {
			r = sd_bus_message_enter_container(m, type, contents);
			if (r < 0)
				return r;
			*weight += WIRE_VALUE_WEIGHT;
			r = weigh_values(m, limit, depth + 1, weight);
			if (r < 0)
				return r;
			if (*weight > limit)
				return 0;
			r = sd_bus_message_exit_container(m);
			if (r < 0)
				return r;
		} else {
			r = weigh_basic(m, type, weight);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

ssize_t wire_weigh(sd_bus_message *m, size_t limit)
{
	size_t weight = 0;
	int r, back;

	r = weigh_values(m, limit, 0, &weight);
	back = sd_bus_message_rewind(m, true);
	if (r < 0 || back < 0)
		return r == -ENOMEM ? -ENOMEM : -EBADMSG;
	return (ssize_t)(weight > limit ? limit + 1 : weight);
}
