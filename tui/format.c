/* SPDX-License-Identifier: MIT */
#include "tui/format.h"

#include <inttypes.h>
#include <time.h>
#include <wchar.h>

#include "dbus/print.h"
#include "dbus/text.h"

/* More than these on one character is an ornament of hostile names; curses keeps four in a cell. */
#define MARKS_MAX 3u
#define UNIT_BYTES_MAX 32u /* a character of four bytes and its marks, or an escape of each */

#define CUT_MARK_UTF8 "\xe2\x80\xa6" /* U+2026 */
#define CUT_MARK_ASCII "~"
#define MIDDLE_MINIMUM 8u /* columns below which a middle is not worth it */

/* What is never taken apart: a character with its marks, or one written as an escape. */
typedef struct Unit {
	char text[UNIT_BYTES_MAX];
	size_t size, cells;
	size_t taken; /* bytes of the source */
	bool space;   /* a line can be broken behind it */
} Unit;

/*
 * Is the character the same width to us and to the C library, by which curses moves the cursor? Where they
 * differ (what is not assigned, parts of syllables), terminals do as well.
 */
static bool has_sure_width(uint32_t character, unsigned cells)
{
	return character < 0x80 || wcwidth((wchar_t)character) == (int)cells;
}

static void unit_add_escape(Unit *unit, const char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		unit->text[unit->size++] = '\\';
		unit->text[unit->size++] = 'x';
		unit->text[unit->size++] = digits[(uint8_t)bytes[i] >> 4];
		unit->text[unit->size++] = digits[(uint8_t)bytes[i] & 0x0f];
	}
	unit->cells += 4 * n;
	unit->taken += n;
}

static void unit_add(Unit *unit, const char *bytes, size_t n, size_t cells)
{
	memcpy(unit->text + unit->size, bytes, n);
	unit->size += n;
	unit->cells += cells;
	unit->taken += n;
}

/* The combining mark at bytes that can follow a character. Return: its length, or 0. */
static size_t mark_length(const char *bytes, size_t size)
{
	uint32_t character = 0;
	size_t n = size > 0 ? text_decode(bytes, size, &character) : 0;

	return n > 1 && text_shows(character) && text_cells(character) == 0 && has_sure_width(character, 0)
		       ? n
		       : 0;
}

/* size > 0 */
static Unit unit_at(const char *bytes, size_t size, FormatFlags flags)
{
	uint32_t character = 0;
	size_t n = text_decode(bytes, size, &character);
	Unit unit = { .size = 0 };
	unsigned cells;

	if ((flags & FORMAT_SENTENCE) && n == 1 && strchr("\t\n\r", (int)character)) {
		unit_add(&unit, " ", 1, 1);
		return unit;
	}
	cells = n > 0 && text_shows(character) ? text_cells(character) : 0;
	if (cells == 0 || (n > 1 && !(flags & FORMAT_UTF8)) || !has_sure_width(character, cells)) {
		unit_add_escape(&unit, bytes, n > 0 ? n : 1);
		return unit;
	}
	if (character == '\\' && !(flags & (FORMAT_SENTENCE | FORMAT_ESCAPED))) {
		unit_add(&unit, "\\", 1, 1);
		unit_add(&unit, "\\", 1, 1);
		unit.taken = 1;
		return unit;
	}
	unit_add(&unit, bytes, n, cells);
	for (unsigned i = 0; (flags & FORMAT_UTF8) && i < MARKS_MAX; i++) {
		size_t mark = mark_length(bytes + unit.taken, size - unit.taken);

		if (mark == 0)
			break;
		unit_add(&unit, bytes + unit.taken, mark, 0);
	}
	unit.space = character == ' ' && unit.taken == 1;
	return unit;
}

static bool is_plain(char c, FormatFlags flags)
{
	return c >= 0x20 && c < 0x7f && (c != '\\' || (flags & (FORMAT_SENTENCE | FORMAT_ESCAPED)));
}

typedef struct Line {
	char *text;
	size_t size, allocated, cells;
} Line;

static bool line_put(Line *line, const char *text, size_t size, size_t cells)
{
	if (line->size + size + 1 > line->allocated) {
		size_t allocated = MAX_OF(line->allocated * 2, line->size + size + 64);
		char *larger = realloc(line->text, allocated);

		if (!larger)
			return false;
		line->text = larger;
		line->allocated = allocated;
	}
	memcpy(line->text + line->size, text, size);
	line->size += size;
	line->text[line->size] = '\0';
	line->cells += cells;
	return true;
}

static bool line_fill(Line *line, size_t columns)
{
	while (columns-- > 0)
		if (!line_put(line, " ", 1, 1))
			return false;
	return true;
}

static bool line_put_mark(Line *line, FormatFlags flags)
{
	const char *mark = flags & FORMAT_UTF8 ? CUT_MARK_UTF8 : CUT_MARK_ASCII;

	return line_put(line, mark, strlen(mark), 1);
}

/* Units from the beginning while they fit. Return: how many bytes they were, SIZE_MAX without memory. */
static size_t line_take(Line *line, const char *bytes, size_t size, size_t width, FormatFlags flags)
{
	size_t at = 0;

	while (at < size) {
		Unit unit = unit_at(bytes + at, size - at, flags);

		if (unit.cells > width - line->cells)
			break;
		if (!line_put(line, unit.text, unit.size, unit.cells))
			return SIZE_MAX;
		at += unit.taken;
	}
	return at;
}

static bool line_cut_tail(Line *line, const char *bytes, size_t size, size_t width, FormatFlags flags)
{
	size_t whole = line_take(line, bytes, size, width, flags);

	if (whole == SIZE_MAX)
		return false;
	if (whole == size || width == 0)
		return true;
	line->size = line->cells = 0;
	return line_take(line, bytes, size, width - 1, flags) != SIZE_MAX && line_put_mark(line, flags);
}

/* Without its middle: a third of the columns are its beginning, the others its end. */
static bool line_cut_middle(Line *line, const char *bytes, size_t size, size_t width, FormatFlags flags)
{
	size_t left = format_width(bytes, SIZE_MAX, flags), head;

	if (left <= width || width < MIDDLE_MINIMUM)
		return line_cut_tail(line, bytes, size, width, flags);
	head = line_take(line, bytes, size, (width - 1) / 3, flags);
	if (head == SIZE_MAX || !line_put_mark(line, flags))
		return false;
	left -= line->cells - 1;
	for (bytes += head, size -= head; left > width - line->cells;) {
		Unit unit = unit_at(bytes, size, flags);

		left -= unit.cells;
		bytes += unit.taken;
		size -= unit.taken;
	}
	return line_take(line, bytes, size, width, flags) != SIZE_MAX;
}

char *format_cell(const char *bytes, size_t width, FormatFlags flags)
{
	Line line = { 0 }, filled = { 0 };
	size_t size = strlen(bytes);
	bool done;

	done = line_put(&line, "", 0, 0) &&
	       (flags & FORMAT_CUT_MIDDLE ? line_cut_middle(&line, bytes, size, width, flags)
					  : line_cut_tail(&line, bytes, size, width, flags));
	if (done && (flags & FORMAT_RIGHT)) {
		done = line_fill(&filled, width - line.cells) &&
		       line_put(&filled, line.text, line.size, line.cells);
		free(line.text);
		line = filled;
	} else if (done && (flags & FORMAT_PAD)) {
		done = line_fill(&line, width - line.cells);
	}
	if (!done) {
		free(line.text);
		return NULL;
	}
	return line.text;
}

char *format_line(const char *bytes, FormatFlags flags)
{
	Line line = { 0 };

	if (line_put(&line, "", 0, 0) && line_take(&line, bytes, strlen(bytes), SIZE_MAX, flags) != SIZE_MAX)
		return line.text;
	free(line.text);
	return NULL;
}

size_t format_width(const char *bytes, size_t limit, FormatFlags flags)
{
	size_t size = strlen(bytes), cells = 0;

	while (size > 0 && cells < limit) {
		Unit unit;

		/* A mark may follow the last plain one. */
		if (is_plain(bytes[0], flags) && (size == 1 || is_plain(bytes[1], flags))) {
			cells++, bytes++, size--;
			continue;
		}
		unit = unit_at(bytes, size, flags);
		cells += unit.cells;
		bytes += unit.taken;
		size -= unit.taken;
	}
	return MIN_OF(cells, limit);
}

char *format_skip(const char *line, size_t columns)
{
	size_t skipped = 0, size = strlen(line), at = text_fit(line, columns, &skipped);
	Line rest = { 0 };
	bool done = line_put(&rest, "", 0, 0);

	if (at < size && skipped < columns) { /* a wide one is halved */
		uint32_t character;

		at += text_decode(line + at, size - at, &character);
		done = done && line_put(&rest, " ", 1, 1);
	}
	/* its marks went with it */
	while (at < size && mark_length(line + at, size - at) > 0)
		at += mark_length(line + at, size - at);
	if (done && line_put(&rest, line + at, size - at, 0))
		return rest.text;
	free(rest.text);
	return NULL;
}

typedef struct Wrap {
	char **lines;
	size_t n, allocated;
} Wrap;

static bool wrap_add(Wrap *wrap, size_t indent, const char *bytes, size_t size, FormatFlags flags)
{
	Line line = { 0 };

	if (wrap->n + 1 >= wrap->allocated) {
		size_t allocated = wrap->allocated > 0 ? wrap->allocated * 2 : 8;
		char **larger = reallocarray(wrap->lines, allocated, sizeof(*larger));

		if (!larger)
			return false;
		wrap->lines = larger;
		wrap->allocated = allocated;
	}
	while (size > 0 && bytes[size - 1] == ' ')
		size--;
	wrap->lines[wrap->n] = NULL;
	if (!line_put(&line, "", 0, 0) || !line_fill(&line, indent) ||
	    line_take(&line, bytes, size, SIZE_MAX, flags) == SIZE_MAX) {
		free(line.text);
		return false;
	}
	wrap->lines[wrap->n++] = line.text;
	wrap->lines[wrap->n] = NULL;
	return true;
}

/* Where the line that begins bytes (size > 0) ends: behind the last space within width, else what fits. */
static size_t line_end(const char *bytes, size_t size, size_t width, FormatFlags flags)
{
	size_t at = 0, cells = 0, behind_space = 0;
	bool words = false;

	while (at < size) {
		Unit unit = unit_at(bytes + at, size - at, flags);

		if (cells + unit.cells > width && !unit.space)
			break;
		at += unit.taken;
		cells += unit.cells;
		words |= !unit.space;
		if (unit.space && words)
			behind_space = at;
	}
	if (at == size)
		return at;
	return behind_space > 0 ? behind_space : at;
}

static bool wrap_paragraph(Wrap *wrap, const char *bytes, size_t size, size_t width, size_t indent,
			   FormatFlags flags)
{
	size_t used = 0;

	do {
		size_t n = size > 0 ? line_end(bytes, size, width - used, flags) : 0;

		/* What is wider than a whole line has its mark instead. */
		if (n == 0 && size > 0) {
			if (!wrap_add(wrap, used, "~", 1, flags))
				return false;
			n = unit_at(bytes, size, flags).taken;
		} else if (!wrap_add(wrap, used, bytes, n, flags)) {
			return false;
		}
		bytes += n;
		size -= n;
		used = indent;
	} while (size > 0);
	return true;
}

char **format_lines_free(char **lines)
{
	for (size_t i = 0; lines && lines[i]; i++)
		free(lines[i]);
	free(lines);
	return NULL;
}

char **format_wrap(const char *text, size_t width, size_t indent, FormatFlags flags)
{
	Wrap wrap = { 0 };

	if (indent > width / 2)
		indent = 0;
	for (;;) {
		size_t size = strcspn(text, "\n");

		if (!wrap_paragraph(&wrap, text, size, width, indent, flags)) {
			(void)format_lines_free(wrap.lines);
			return NULL;
		}
		if (!text[size])
			return wrap.lines;
		text += size + 1;
	}
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool begins_with(const char *text, const char *needle, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (lower(text[i]) != lower(needle[i]))
			return false;
	return true;
}

/* Return: the first place of needle, SIZE_MAX for none. */
static size_t find_from(const char *text, size_t from, const char *needle)
{
	size_t size = strlen(text), wanted = strlen(needle);

	for (size_t at = from; at + wanted <= size; at++)
		if (begins_with(text + at, needle, wanted))
			return at;
	return SIZE_MAX;
}

/* Columns of the first n bytes. */
static size_t columns_of(const char *line, size_t n)
{
	_cleanup_free_ char *part = strndup(line, n);

	return part ? text_width(part) : 0;
}

bool format_find(const char *line, const char *needle, size_t from, FormatPlace *ret)
{
	size_t at = find_from(line, from, needle);

	if (at == SIZE_MAX || !*needle)
		return false;
	ret->at = at;
	ret->size = strlen(needle);
	ret->column = columns_of(line, at);
	ret->columns = columns_of(line + at, ret->size);
	return true;
}

bool format_holds(const char *bytes, const char *needle, FormatFlags flags)
{
	_cleanup_free_ char *line = NULL;
	size_t plain = 0;

	while (bytes[plain] && is_plain(bytes[plain], flags))
		plain++;
	if (!bytes[plain])
		return find_from(bytes, 0, needle) != SIZE_MAX;
	line = format_line(bytes, flags);
	return line && find_from(line, 0, needle) != SIZE_MAX;
}

char *format_age(uint64_t usec)
{
	return print_duration(usec);
}

char *format_count(uint64_t count)
{
	static const char units[] = "kMGTPE";
	uint64_t whole = count, rest = 0;
	size_t unit = 0;
	char *text = NULL;
	int n;

	if (count < 10000) {
		n = asprintf(&text, "%" PRIu64, count);
		return n < 0 ? NULL : text;
	}
	for (; whole >= 1000; unit++) {
		rest = whole % 1000;
		whole /= 1000;
	}
	n = whole < 10 ? asprintf(&text, "%" PRIu64 ".%" PRIu64 "%c", whole, rest / 100, units[unit - 1])
		       : asprintf(&text, "%" PRIu64 "%c", whole, units[unit - 1]);
	return n < 0 ? NULL : text;
}

char *format_clock(uint64_t usec, uint64_t now_usec)
{
	time_t then = (time_t)(usec / USEC_PER_SEC), now = (time_t)(now_usec / USEC_PER_SEC);
	char text[sizeof("-2147483648-01-31 09:00:00Z")];
	struct tm when, today;
	const char *format;

	if (!localtime_r(&then, &when) || !localtime_r(&now, &today))
		return strdup("?");
	format = when.tm_year == today.tm_year && when.tm_yday == today.tm_yday ? "%H:%M:%SZ"
										: "%Y-%m-%d %H:%M:%SZ";
	if (strftime(text, sizeof(text), format, &when) == 0)
		return strdup("?");
	if (when.tm_gmtoff != 0)
		text[strlen(text) - 1] = '\0';
	return strdup(text);
}
