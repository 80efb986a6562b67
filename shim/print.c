/* SPDX-License-Identifier: MIT */
#include "shim/print.h"

#include <assert.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <sys/ioctl.h>

#include "shim/text.h"

#define CUT_MARK "..."
#define COLUMN_GAP 2
#define CUT_MINIMUM 8 /* cells that a column keeps when it is cut */

/* SGR sequences (ECMA-48, 8.3.117): every terminal that is not "dumb" knows them; no terminfo is read. */
#define SGR_RESET "\033[0m"
#define SGR_HEADING "\033[1m"
#define SGR_GOOD "\033[32m"
#define SGR_NOTE "\033[33m"
#define SGR_FAINT "\033[2m"

static bool names_utf8(const char *locale)
{
	return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
}

PrintStyle print_style(FILE *stream)
{
	static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	PrintStyle style = { 0 };
	struct winsize size;
	int fd = fileno(stream);

	for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value) {
			style.utf8 = names_utf8(value);
			break;
		}
	}
	if (fd < 0 || !isatty(fd))
		return style;
	style.colour = (!no_color || !*no_color) && term && *term && !streq(term, "dumb");
	if (ioctl(fd, TIOCGWINSZ, &size) >= 0)
		style.width = size.ws_col;
	return style;
}

static int stream_result(FILE *stream)
{
	errno = 0;
	if (fflush(stream) == 0 && !ferror(stream))
		return 0;
	return errno > 0 ? -errno : -EIO;
}

static const char *state_colour(const char *state)
{
	if (streq(state, "running"))
		return SGR_GOOD;
	if (streq(state, "stopped") || streq(state, "offline"))
		return SGR_NOTE;
	return SGR_FAINT;
}

/* The escaped cells of a table and the width of each column, headings included. */
typedef struct Layout {
	char **texts;
	size_t n_texts, *widths;
} Layout;

static void layout_done(Layout *layout)
{
	for (size_t i = 0; layout->texts && i < layout->n_texts; i++)
		free(layout->texts[i]);
	free(layout->texts);
	free(layout->widths);
}

static int layout_make(const PrintTable *table, const PrintStyle *style, Layout *layout)
{
	layout->n_texts = table->n_rows * table->n_columns;
	layout->texts = calloc(layout->n_texts, sizeof(*layout->texts));
	layout->widths = calloc(table->n_columns, sizeof(*layout->widths));
	if (!layout->texts || !layout->widths)
		return -ENOMEM;
	for (size_t c = 0; c < table->n_columns; c++) {
		if (!table->columns[c].title)
			continue;
		layout->widths[c] = text_width(table->columns[c].title);
		for (size_t i = c; i < layout->n_texts; i += table->n_columns) {
			layout->texts[i] = text_escape(table->cells[i] ? table->cells[i] : "", style->utf8);
			if (!layout->texts[i])
				return -ENOMEM;
			layout->widths[c] = MAX_OF(layout->widths[c], text_width(layout->texts[i]));
		}
	}
	return 0;
}

/* Take from the columns that may be cut, the last first, until a line fits or nothing more can be taken. */
static void layout_squeeze(const PrintTable *table, size_t limit, Layout *layout)
{
	size_t total = 0;

	for (size_t c = 0; c < table->n_columns; c++) {
		if (table->columns[c].title)
			total += layout->widths[c] + (total > 0 ? 2 : 0);
	}
	for (size_t c = table->n_columns; c-- > 0 && total > limit;) {
		size_t keep, cut;

		if (!table->columns[c].title || !table->columns[c].clip)
			continue;
		keep = MAX_OF((size_t)CUT_MINIMUM, text_width(table->columns[c].title));
		if (layout->widths[c] <= keep)
			continue;
		cut = MIN_OF(total - limit, layout->widths[c] - keep);
		layout->widths[c] -= cut;
		total -= cut;
	}
}

/* One line under way: spaces are owed until something follows them. */
typedef struct Line {
	FILE *stream;
	size_t owed;
} Line;

static void line_put(Line *line, const char *text, size_t width, bool right, const char *colour)
{
	const char *mark = "";
	size_t bytes, cells;

	bytes = text_fit(text, width, &cells);
	if (text[bytes] != '\0') {
		mark = CUT_MARK;
		bytes = text_fit(text, width - strlen(CUT_MARK), &cells);
		cells += strlen(CUT_MARK);
	}
	if (right)
		line->owed += width - cells;
	if (bytes > 0) {
		fprintf(line->stream, "%*s", (int)line->owed, "");
		fprintf(line->stream, "%s%.*s%s%s", colour ? colour : "", (int)bytes, text, mark,
			colour ? SGR_RESET : "");
		line->owed = 0;
	} else {
		line->owed += cells;
	}
	if (!right)
		line->owed += width - cells;
	line->owed += COLUMN_GAP;
}

static void line_end(Line *line)
{
	putc('\n', line->stream);
	line->owed = 0;
}

int print_table(FILE *stream, const PrintTable *table, const PrintStyle *style, const char *empty)
{
	_cleanup_(layout_done) Layout layout = { 0 };
	Line line = { .stream = stream };
	int r;

	if (table->n_rows == 0) {
		fprintf(stream, "%s\n", empty);
		return stream_result(stream);
	}
	r = layout_make(table, style, &layout);
	if (r < 0)
		return r;
	if (style->width > 0)
		layout_squeeze(table, style->width, &layout);

	for (size_t c = 0; c < table->n_columns; c++) {
		const PrintColumn *column = &table->columns[c];

		if (column->title)
			line_put(&line, column->title, layout.widths[c], column->kind == PRINT_NUMBER,
				 style->colour ? SGR_HEADING : NULL);
	}
	line_end(&line);
	for (size_t i = 0; i < layout.n_texts; i++) {
		size_t c = i % table->n_columns;
		const PrintColumn *column = &table->columns[c];

		if (column->title)
			line_put(&line, layout.texts[i], layout.widths[c], column->kind == PRINT_NUMBER,
				 style->colour && column->kind == PRINT_STATE ? state_colour(layout.texts[i])
									      : NULL);
		if (c == table->n_columns - 1)
			line_end(&line);
	}
	return stream_result(stream);
}

static inline void json_put(json_object **object)
{
	json_object_put(*object);
}

#define _cleanup_json_ _cleanup_(json_put)

static json_object *cell_to_json(const PrintColumn *column, const char *cell)
{
	_cleanup_free_ char *text = NULL;

	if (column->kind == PRINT_NUMBER)
		return json_object_new_uint64(strtoull(cell, NULL, 10));
	text = text_repair(cell);
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
static int put_json(FILE *stream, json_object *object, const PrintStyle *style)
{
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
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
	return stream_result(stream);
}

int print_json(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	_cleanup_json_ json_object *array = NULL;

	if (table->n_rows == 0) {
		fputs("[]\n", stream); /* json-c would put a line break inside */
		return stream_result(stream);
	}
	array = json_object_new_array();
	if (!array)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_rows; i++) {
		json_object *row = NULL;
		int r;

		r = row_to_json(table, i, &row);
		if (r < 0)
			return r;
		if (json_object_array_add(array, row) < 0) {
			json_object_put(row);
			return -ENOMEM;
		}
	}
	return put_json(stream, array, style);
}

int print_json_object(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	_cleanup_json_ json_object *object = NULL;
	int r;

	assert(table->n_rows > 0);
	r = row_to_json(table, 0, &object);
	return r < 0 ? r : put_json(stream, object, style);
}

char *print_duration(uint64_t usec)
{
	uint64_t seconds = usec / USEC_PER_SEC, minutes = seconds / 60, hours = minutes / 60,
		 days = hours / 24;
	char *text = NULL;
	int n;

	if (minutes == 0)
		n = asprintf(&text, "%" PRIu64 "s", seconds);
	else if (hours == 0)
		n = asprintf(&text, "%" PRIu64 "m", minutes);
	else if (days == 0)
		n = asprintf(&text, "%" PRIu64 "h %02" PRIu64 "m", hours, minutes % 60);
	else
		n = asprintf(&text, "%" PRIu64 "d %02" PRIu64 "h", days, hours % 24);
	return n < 0 ? NULL : text;
}

void print_complaint(FILE *stream, const char *sentence)
{
	_cleanup_free_ char *text = sentence ? text_sentence(sentence, print_style(stream).utf8) : NULL;

	fprintf(stream, "claude-sandbox: %s\n", text ? text : "no memory; close something and try again");
	(void)fflush(stream);
}
