/* SPDX-License-Identifier: MIT */
#include "dbus/print.h"

#include <assert.h>
#include <inttypes.h>
#include <time.h>
#include <sys/ioctl.h>

#include "dbus/text.h"

#define CUT_MARK "..."
#define COLUMN_GAP 2
#define CUT_MINIMUM 8 /* cells that a column keeps when it is cut */

/* SGR sequences (ECMA-48, 8.3.117): every terminal that is not "dumb" knows them; no terminfo is read. */
#define SGR_RESET "\033[0m"
#define SGR_HEADING "\033[1m"
#define SGR_GOOD "\033[32m"
#define SGR_NOTE "\033[33m"
#define SGR_BAD "\033[31m"
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

int print_result(FILE *stream)
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

/* What an agent can change or reach stands out, what it cannot steps back. */
static const char *reach_colour(const char *reach)
{
	if (streq(reach, "rw") || streq(reach, "allow"))
		return SGR_NOTE;
	if (streq(reach, "masked") || streq(reach, "private") || streq(reach, "deny"))
		return SGR_FAINT;
	return NULL;
}

static const char *result_colour(const char *result)
{
	if (streq(result, "pass") || streq(result, "ok"))
		return SGR_GOOD;
	return streq(result, "fail") ? SGR_BAD : SGR_NOTE;
}

static const char *cell_colour(PrintKind kind, const char *text, const PrintStyle *style)
{
	if (!style->colour)
		return NULL;
	if (kind == PRINT_STATE)
		return state_colour(text);
	if (kind == PRINT_RESULT)
		return result_colour(text);
	return kind == PRINT_REACH ? reach_colour(text) : NULL;
}

static char *cell_text(const PrintColumn *column, const char *cell, const PrintStyle *style)
{
	return column->kind == PRINT_ESCAPED ? text_sentence(cell ?: "", style->utf8)
					     : text_escape(cell ?: "", style->utf8);
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
			layout->texts[i] = cell_text(&table->columns[c], table->cells[i], style);
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

static int print_lines(FILE *stream, const PrintTable *table, const PrintStyle *style, bool headings)
{
	_cleanup_(layout_done) Layout layout = { 0 };
	Line line = { .stream = stream };
	int r;

	r = layout_make(table, style, &layout);
	if (r < 0)
		return r;
	if (style->width > 0)
		layout_squeeze(table, style->width, &layout);

	for (size_t c = 0; headings && c < table->n_columns; c++) {
		const PrintColumn *column = &table->columns[c];

		if (column->title)
			line_put(&line, column->title, layout.widths[c], column->kind == PRINT_NUMBER,
				 style->colour ? SGR_HEADING : NULL);
	}
	if (headings)
		line_end(&line);
	for (size_t i = 0; i < layout.n_texts; i++) {
		size_t c = i % table->n_columns;
		const PrintColumn *column = &table->columns[c];

		if (column->title)
			line_put(&line, layout.texts[i], layout.widths[c], column->kind == PRINT_NUMBER,
				 cell_colour(column->kind, layout.texts[i], style));
		if (c == table->n_columns - 1)
			line_end(&line);
	}
	return print_result(stream);
}

int print_table(FILE *stream, const PrintTable *table, const PrintStyle *style, const char *empty)
{
	if (table->n_rows == 0) {
		fprintf(stream, "%s\n", empty);
		return print_result(stream);
	}
	return print_lines(stream, table, style, true);
}

int print_rows(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	return print_lines(stream, table, style, false);
}

int print_fields(FILE *stream, const PrintTable *table, const PrintStyle *style)
{
	size_t width = 0;

	assert(table->n_rows > 0);
	for (size_t c = 0; c < table->n_columns; c++)
		if (table->columns[c].title && table->cells[c])
			width = MAX_OF(width, strlen(table->columns[c].title));
	for (size_t c = 0; c < table->n_columns; c++) {
		const PrintColumn *column = &table->columns[c];
		_cleanup_free_ char *text = NULL;
		const char *colour;

		if (!column->title || !table->cells[c])
			continue;
		text = cell_text(column, table->cells[c], style);
		if (!text)
			return -ENOMEM;
		colour = cell_colour(column->kind, text, style);
		fprintf(stream, "%s%-*s%s%*s%s%s%s\n", style->colour ? SGR_HEADING : "", (int)width,
			column->title, style->colour ? SGR_RESET : "", COLUMN_GAP, "", colour ? colour : "",
			text, colour ? SGR_RESET : "");
	}
	return print_result(stream);
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

char *print_time(uint64_t usec)
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	char text[sizeof("-2147483648-01-01T00:00:00")], *all = NULL;
	struct tm local;
	long minutes;

	if (!localtime_r(&seconds, &local) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &local) == 0)
		return strdup("?");
	minutes = labs(local.tm_gmtoff) / 60;
	return (minutes == 0 ? asprintf(&all, "%sZ", text)
			     : asprintf(&all, "%s%c%02ld:%02ld", text, local.tm_gmtoff < 0 ? '-' : '+',
					minutes / 60, minutes % 60)) < 0
		       ? NULL
		       : all;
}

void print_utc(void)
{
	(void)setenv("TZ", "UTC0", 1);
	tzset();
}

void print_complaint_of(FILE *stream, const char *program, const char *sentence)
{
	_cleanup_free_ char *text = sentence ? text_sentence(sentence, print_style(stream).utf8) : NULL;

	fprintf(stream, "%s: %s\n", program, text ? text : "no memory; close something and try again");
	(void)fflush(stream);
}

void print_complaint(FILE *stream, const char *sentence)
{
	print_complaint_of(stream, "claude-sandbox", sentence);
}
