/* SPDX-License-Identifier: MIT */
#include "dbus/print.h"

#include <assert.h>
#include <inttypes.h>
#include <json-c/json.h>

#include "dbus/text.h"

static inline void json_put(json_object **object)
{
	json_object_put(*object);
}

#define _cleanup_json_ _cleanup_(json_put)

static json_object *cell_to_json(const PrintColumn *column, const char *cell)
{
	_cleanup_free_ char *text = NULL;

	if (column->kind == PRINT_FLAG)
		return json_object_new_boolean(streq(cell, "true"));
	if (column->kind == PRINT_NUMBER)
		return json_object_new_uint64(strtoull(cell, NULL, 10));
	text = column->kind == PRINT_ESCAPED ? text_repair_escaped(cell) : text_repair(cell);
	return text ? json_object_new_string(text) : NULL;
}

static int row_to_json(const PrintTable *table, size_t row, json_object **ret)
{
	_cleanup_json_ json_object *object = json_object_new_object();

	if (!object)
		return -ENOMEM;
	for (size_t c = 0; c < table->n_columns; c++) {
		const char *cell = table->cells[row * table->n_columns + c];
		json_object *value;

		if (!table->columns[c].key)
			continue;
		value = cell ? cell_to_json(&table->columns[c], cell) : NULL;
		if (cell && !value)
			return -ENOMEM;
		if (json_object_object_add(object, table->columns[c].key, value) < 0) {
			json_object_put(value);
			return -ENOMEM;
		}
	}

	*ret = TAKE_PTR(object);
	return 0;
}

/*
 * json-c leaves everything above U+001F as it is. In JSON text such characters stand in strings only, where
 * \uXXXX means the same (RFC 8259, 7): so those that do not show, or all that are not ASCII, are written that
 * way.
 */
static int put_json(FILE *stream, json_object *object, int layout, const PrintStyle *style)
{
	const char *text = json_object_to_json_string_ext(object, layout | JSON_C_TO_STRING_SPACED |
									  JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t size = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	while (size > 0) {
		uint32_t character = 0;
		size_t n = text_decode(text, size, &character);

		assert(n > 0); /* text_repair() */
		if (character == '\n' || (character < 0x7f) || (style->utf8 && text_shows(character)))
			fwrite(text, 1, n, stream);
		else if (character < 0x10000)
			fprintf(stream, "\\u%04" PRIx32, character);
		else
			fprintf(stream, "\\u%04" PRIx32 "\\u%04" PRIx32,
				0xd800 + ((character - 0x10000) >> 10),
				0xdc00 + ((character - 0x10000) & 0x3ff));
		text += n;
		size -= n;
	}
	putc('\n', stream);
	return print_result(stream);
}

/* Return: 0 with *ret; -ENOMEM. */
static int rows_to_json(const PrintTable *table, json_object **ret)
{
	_cleanup_json_ json_object *array = json_object_new_array();
	int r;

	if (!array)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_rows; i++) {
		json_object *row = NULL;

		if (table->n_columns == 1 && !table->columns[0].key) {
			row = cell_to_json(&table->columns[0], table->cells[i]);
			r = row ? 0 : -ENOMEM;
		} else {
			r = row_to_json(table, i, &row);
		}
		if (r < 0)
			return r;
		if (json_object_array_add(array, row) < 0) {
			json_object_put(row);
			return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(array);
	return 0;
}

int print_json(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	_cleanup_json_ json_object *array = NULL;
	int r;

	if (table->n_rows == 0) {
		fputs("[]\n", stream); /* json-c would put a line break inside */
		return print_result(stream);
	}
	r = rows_to_json(table, &array);
	return r < 0 ? r : put_json(stream, array, JSON_C_TO_STRING_PRETTY, style);
}

int print_json_document(FILE *stream, const PrintTable *table, const PrintPart *parts, size_t n_parts,
			const PrintStyle *style)
{
	_cleanup_json_ json_object *object = NULL;
	int r;

	assert(table->n_rows > 0);
	r = row_to_json(table, 0, &object);
	for (size_t i = 0; r >= 0 && i < n_parts; i++) {
		json_object *array = NULL;

		r = parts[i].table ? rows_to_json(parts[i].table, &array) : 0;
		if (r >= 0 && json_object_object_add(object, parts[i].key, array) < 0) {
			json_object_put(array);
			r = -ENOMEM;
		}
	}
	return r < 0 ? r : put_json(stream, object, JSON_C_TO_STRING_PRETTY, style);
}

int print_json_object(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	return print_json_document(stream, table, NULL, 0, style);
}

int print_json_line(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	_cleanup_json_ json_object *object = NULL;
	int r = row_to_json(table, 0, &object);

	return r < 0 ? r : put_json(stream, object, JSON_C_TO_STRING_PLAIN, style);
}
