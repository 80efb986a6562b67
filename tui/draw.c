/* SPDX-License-Identifier: MIT */
#include "tui/draw.h"

#include <inttypes.h>

typedef struct Draw {
	const Screen *screen;
	Canvas *canvas;
	DrawPlaces *places;
	bool failed; /* no memory for something: it is missing, and the caller is told */
} Draw;

static FormatFlags draw_flags(const Draw *draw);
static size_t draw_bytes(Draw *draw, size_t y, size_t x, size_t width, const char *bytes, FormatFlags flags,
			 unsigned style);
static size_t draw_paragraphs(Draw *draw, size_t y, size_t x, size_t width, size_t height, size_t skip,
			      const char *text, unsigned style, bool names);
static size_t draw_hint(Draw *draw, size_t y, size_t x, const char *key, size_t n_key, const char *word);

/* ---- rows and columns ---- */

#define GAP 2

static void mark_matches(Draw *draw, size_t y, size_t x, const char *text)
{
	const char *needle = table_search_text(draw->screen->table);
	FormatPlace place;

	for (size_t from = 0; needle && format_find(text, needle, from, &place); from = place.at + place.size)
		canvas_mark(draw->canvas, y, x + place.column, place.columns, STYLE_MATCH);
}

static void draw_cell(Draw *draw, size_t y, size_t x, size_t width, const Column *column, const Cell *cell)
{
	FormatFlags flags = column_flags(column) | draw_flags(draw) | (column->number ? FORMAT_RIGHT : 0);
	_cleanup_free_ char *text = format_cell(cell->text, width, flags);

	draw->failed |= !text;
	if (!text)
		return;
	canvas_put(draw->canvas, y, x, text, cell->style);
	mark_matches(draw, y, x, text);
}

static void draw_headings(Draw *draw, size_t y, const size_t *widths)
{
	const View *view = draw->screen->view;
	const Table *table = draw->screen->table;
	const char *mark = table_descending(table) ? (draw->screen->utf8 ? "\u2193" : "v")
						   : (draw->screen->utf8 ? "\u2191" : "^");

	canvas_blank(draw->canvas, y, 0, draw->canvas->width, STYLE_HEADING);
	for (size_t i = 0, x = 0; i < view->n_columns; i++) {
		const Column *column = &view->columns[i];
		bool sorted = table_sort_column(table) == i;
		size_t end;

		if (widths[i] == 0)
			continue;
		end = draw_bytes(draw, y, x, widths[i], column->title,
				 FORMAT_ESCAPED | (column->number ? FORMAT_RIGHT : 0), STYLE_HEADING);
		if (sorted && end < draw->canvas->width)
			canvas_put(draw->canvas, y, end, mark, STYLE_HEADING);
		if (i < DRAW_COLUMNS_MOST)
			draw->places->columns[i] = (DrawSpan){ x, x + widths[i] };
		x += widths[i] + GAP;
	}
}

static void draw_empty(Draw *draw, size_t y, size_t height)
{
	const Screen *screen = draw->screen;
	const char *text = screen->empty ?: "nothing";

	if (table_total(screen->table) > 0)
		text = "no row holds the text of the filter; Esc shows all of them again";
	draw_paragraphs(draw, y, 1, draw->canvas->width > 2 ? draw->canvas->width - 2 : 0, height, 0, text,
			STYLE_PLAIN, false);
}

static void draw_row(Draw *draw, size_t y, size_t index, const size_t *widths)
{
	const View *view = draw->screen->view;
	const Cell *cells = table_cells(draw->screen->table, index);

	for (size_t i = 0, x = 0; i < view->n_columns; i++) {
		if (widths[i] == 0)
			continue;
		draw_cell(draw, y, x, widths[i], &view->columns[i], &cells[i]);
		x += widths[i] + GAP;
	}
	if (index == table_selected(draw->screen->table))
		canvas_mark(draw->canvas, y, 0, draw->canvas->width, STYLE_SELECTED);
}

static void draw_table(Draw *draw, size_t y, size_t height, bool heading)
{
	Table *table = draw->screen->table;
	const View *view = draw->screen->view;
	_cleanup_free_ size_t *widths = calloc(view->n_columns + 1, sizeof(*widths));

	if (!widths || table_layout(table, draw->canvas->width, draw->screen->utf8, widths) < 0) {
		draw->failed = true;
		return;
	}
	if (height == 0)
		return;
	if (heading && height > 1) {
		draw_headings(draw, y, widths);
		draw->places->heading = y++;
		height--;
	}
	draw->places->rows = y;
	draw->places->n_rows = draw->places->page = height;
	if (table_count(table) == 0) {
		draw_empty(draw, y, height);
		return;
	}
	draw->places->top = table_top(table, height);
	for (size_t i = 0; i < height && draw->places->top + i < table_count(table); i++)
		draw_row(draw, y + i, draw->places->top + i, widths);
}

/* ---- windows above the screen ---- */

#define WINDOW_MOST 76 /* columns: longer lines are hard to read */

/* The line that is typed. */
static void draw_line_editor(Draw *draw, size_t y, size_t x, size_t width, const LineEditor *editor,
			     unsigned style)
{
	_cleanup_free_ char *before = strndup(line_editor_text(editor), editor->cursor), *shown = NULL,
			    *all = NULL;
	FormatFlags flags = draw_flags(draw) | FORMAT_ESCAPED;
	size_t cursor, skip;

	if (width == 0)
		return;
	cursor = before ? format_width(before, SIZE_MAX, flags) : 0;
	skip = cursor >= width ? cursor - width + 1 : 0;
	all = format_line(line_editor_text(editor), flags);
	shown = all ? format_skip(all, skip) : NULL;
	draw->failed |= !before || !shown;
	canvas_blank(draw->canvas, y, x, width, style);
	if (shown) {
		_cleanup_free_ char *cut = format_cell(shown, width, flags);

		canvas_put(draw->canvas, y, x, cut ?: "", style);
	}
	draw->places->has_cursor = true;
	draw->places->cursor_y = y;
	draw->places->cursor_x = x + cursor - skip;
}

typedef struct Window {
	size_t y, x, height, width; /* what is inside the frame */
} Window;

static void draw_frame(Draw *draw, const Window *w, const char *title)
{
	bool utf8 = draw->screen->utf8;
	const char *line = utf8 ? "\u2500" : "-", *side = utf8 ? "\u2502" : "|";
	size_t left = w->x - 2, right = w->x + w->width + 1;

	for (size_t y = w->y - 1; y <= w->y + w->height; y++)
		canvas_blank(draw->canvas, y, left, right - left + 1, STYLE_DIALOG);
	for (size_t x = left + 1; x < right; x++) {
		canvas_put(draw->canvas, w->y - 1, x, line, STYLE_DIALOG);
		canvas_put(draw->canvas, w->y + w->height, x, line, STYLE_DIALOG);
	}
	for (size_t y = w->y; y < w->y + w->height; y++) {
		canvas_put(draw->canvas, y, left, side, STYLE_DIALOG);
		canvas_put(draw->canvas, y, right, side, STYLE_DIALOG);
	}
	canvas_put(draw->canvas, w->y - 1, left, utf8 ? "\u250c" : "+", STYLE_DIALOG);
	canvas_put(draw->canvas, w->y - 1, right, utf8 ? "\u2510" : "+", STYLE_DIALOG);
	canvas_put(draw->canvas, w->y + w->height, left, utf8 ? "\u2514" : "+", STYLE_DIALOG);
	canvas_put(draw->canvas, w->y + w->height, right, utf8 ? "\u2518" : "+", STYLE_DIALOG);
	if (title && w->width > 4)
		draw_bytes(draw, w->y - 1, w->x, w->width - 2, title, FORMAT_SENTENCE, STYLE_TITLE);
}

/* A window for so many lines in the middle, as far as the screen has room for it. */
static Window place_window(const Draw *draw, size_t lines)
{
	size_t width = draw->canvas->width, height = draw->canvas->height;
	Window w = { .width = MIN_OF(width - 4, (size_t)WINDOW_MOST), .height = MIN_OF(lines, height - 2) };

	w.x = (width - w.width) / 2;
	w.y = (height - w.height) / 2;
	return w;
}

static size_t count_lines(Draw *draw, size_t width, const char *text)
{
	return text && *text ? draw_paragraphs(draw, 0, 0, width, 0, 0, text, 0, false) : 0;
}

static void draw_hint_at(Draw *draw, const Window *w, const char *key, const char *word, size_t *x)
{
	if (*x + strlen(key) + 1 + strlen(word) <= w->x + w->width)
		*x = draw_hint(draw, w->y + w->height - 1, *x, key, strlen(key), word);
}

/*
 * So many lines are to be scrolled through `room` of them. Return: the first that is seen; the window may
 * have become larger since somebody scrolled.
 */
static size_t place_lines(Draw *draw, const Dialog *dialog, size_t lines, size_t room)
{
	draw->places->page = room;
	draw->places->lines = lines;
	return MIN_OF(dialog->top, lines > room ? lines - room : 0);
}

static void draw_question(Draw *draw, const Dialog *dialog)
{
	size_t inside = MIN_OF(draw->canvas->width - 4, (size_t)WINDOW_MOST);
	size_t lines = count_lines(draw, inside, dialog->text);
	Window w = place_window(draw, lines + 2);
	size_t room = w.height - 1, top = place_lines(draw, dialog, lines, room), x = w.x;

	draw_frame(draw, &w, dialog->title);
	draw_paragraphs(draw, w.y, w.x, w.width, room, top, dialog->text ?: "", STYLE_DIALOG, false);
	if (dialog->kind != DIALOG_CONFIRM)
		draw_hint_at(draw, &w, "Esc", "back", &x);
	else if (dialog->seen || top + room >= lines)
		draw_hint_at(draw, &w, "y", "yes", &x);
	if (dialog->kind == DIALOG_CONFIRM)
		draw_hint_at(draw, &w, "n", "no", &x);
	if (top + room < lines)
		draw_hint_at(draw, &w, "PgDn", "more", &x);
	else if (top > 0)
		draw_hint_at(draw, &w, "PgUp", "its beginning", &x);
}

/* The text and, below it, the choices. */
static void draw_choose(Draw *draw, const Dialog *dialog)
{
	size_t inside = MIN_OF(draw->canvas->width - 4, (size_t)WINDOW_MOST);
	size_t text = count_lines(draw, inside, dialog->text), lines = text + dialog->n_choices;
	Window w = place_window(draw, lines + 2);
	size_t room = w.height - 1, top = place_lines(draw, dialog, lines, room), x = w.x;

	draw_frame(draw, &w, dialog->title);
	if (text > 0)
		draw_paragraphs(draw, w.y, w.x, w.width, room, top, dialog->text, STYLE_DIALOG, false);
	for (size_t i = 0; i < dialog->n_choices; i++) {
		size_t line = text + i, y, at;

		if (line < top || line - top >= room)
			continue;
		y = w.y + line - top;
		at = canvas_put(draw->canvas, y, w.x, dialog->choices[i].text, STYLE_HINT_KEY) + 2;
		draw_bytes(draw, y, at, w.x + w.width - at, dialog->choices[i].title, FORMAT_SENTENCE,
			   STYLE_DIALOG);
	}
	draw_hint_at(draw, &w, "Esc", "nothing of this", &x);
	if (top + room < lines)
		draw_hint_at(draw, &w, "PgDn", "more", &x);
	else if (top > 0)
		draw_hint_at(draw, &w, "PgUp", "the first", &x);
}

static void draw_prompt(Draw *draw, const Dialog *dialog)
{
	size_t inside = MIN_OF(draw->canvas->width - 4, (size_t)WINDOW_MOST);
	size_t said = count_lines(draw, inside, dialog->text),
	       wrong = count_lines(draw, inside, dialog->problem);
	Window w = place_window(draw, said + 1 + MAX_OF(wrong, (size_t)2) + 1);
	size_t y, x = w.x;

	if (w.height < 3)
		said = 0;
	said = MIN_OF(said, w.height - MIN_OF(w.height, (size_t)3));
	y = w.y + said;
	draw_frame(draw, &w, dialog->title);
	draw_paragraphs(draw, w.y, w.x, w.width, said, 0, dialog->text ?: "", STYLE_DIALOG, false);
	draw_line_editor(draw, y++, w.x, w.width, &dialog->line, STYLE_PLAIN);
	if (dialog->problem && *dialog->problem && w.y + w.height > y + 1)
		draw_paragraphs(draw, y, w.x, w.width, w.y + w.height - 1 - y, 0, dialog->problem, STYLE_BAD,
				false);
	else if (dialog->problem && w.y + w.height > y + 1)
		canvas_put(draw->canvas, y, w.x, "this can be done", STYLE_GOOD);
	else if (dialog->entered && w.y + w.height > y + 1)
		canvas_put(draw->canvas, y, w.x, "the service is being asked", STYLE_FAINT);
	draw_hint_at(draw, &w, "Enter", "take it", &x);
	draw_hint_at(draw, &w, "Esc", "leave it", &x);
}

/* The whole screen without a frame, so that it can be selected as it is. */
static void draw_show(Draw *draw, const Dialog *dialog)
{
	size_t width = draw->canvas->width, height = draw->canvas->height, x = 0;
	size_t room = height > 2 ? height - 2 : height, lines;

	canvas_clear(draw->canvas);
	if (height > 2)
		draw_bytes(draw, 0, 0, width, dialog->title ?: "", FORMAT_SENTENCE, STYLE_TITLE);
	lines = draw_paragraphs(draw, 0, 0, width, 0, 0, dialog->text ?: "", STYLE_PLAIN, true);
	draw_paragraphs(draw, height > 2 ? 1 : 0, 0, width, room, place_lines(draw, dialog, lines, room),
			dialog->text ?: "", STYLE_PLAIN, true);
	if (height <= 2)
		return;
	canvas_blank(draw->canvas, height - 1, 0, width, STYLE_HINT);
	x = draw_hint(draw, height - 1, x, "Esc", 3, "back");
	if (lines > room)
		x = draw_hint(draw, height - 1, x, "Up Down PgDn", 12, "scroll");
	(void)draw_hint(draw, height - 1, x, "mouse", 5, "selects text");
}

/* A window above everything, or the whole screen. */
static void draw_dialog(Draw *draw)
{
	const Dialog *dialog = &draw->screen->dialog;

	if (dialog->kind == DIALOG_SHOW) {
		draw_show(draw, dialog);
		return;
	}
	if (dialog->kind == DIALOG_NONE || dialog->kind == DIALOG_LINE || draw->canvas->width < 8 ||
	    draw->canvas->height < 4)
		return;
	switch (dialog->kind) {
	case DIALOG_TELL:
	case DIALOG_CONFIRM:
		draw_question(draw, dialog);
		break;
	case DIALOG_CHOOSE:
		draw_choose(draw, dialog);
		break;
	case DIALOG_PROMPT:
		draw_prompt(draw, dialog);
		break;
	default:
		break;
	}
}

/* ---- the screen ---- */

#define HINT_GAP 2
#define DETAILS_LEAST 16 /* lines of a screen that has room for details */
#define BANNER_LINES 3

static FormatFlags draw_flags(const Draw *draw)
{
	return draw->screen->utf8 ? FORMAT_UTF8 : 0;
}

/* Bytes, cut to width. Return: the column behind. */
static size_t draw_bytes(Draw *draw, size_t y, size_t x, size_t width, const char *bytes, FormatFlags flags,
			 unsigned style)
{
	_cleanup_free_ char *text = width > 0 ? format_cell(bytes, width, flags | draw_flags(draw)) : NULL;

	if (width == 0)
		return x;
	draw->failed |= !text;
	return text ? canvas_put(draw->canvas, y, x, text, style) : x;
}

/* How long is the name that a line begins with, its colon included? */
static size_t name_length(const char *line)
{
	size_t n = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz -");

	return n > 0 && n < 24 && *line != ' ' && line[n] == ':' && line[n + 1] == ' ' ? n + 1 : 0;
}

/* Text of ours or escaped, wrapped, from line y on, at most height lines after leaving out `skip`. Return:
 * all lines that there are. "Name: " at the start of a line is a heading where names is set. */
static size_t draw_paragraphs(Draw *draw, size_t y, size_t x, size_t width, size_t height, size_t skip,
			      const char *text, unsigned style, bool names)
{
	_cleanup_(format_lines_freep) char **lines = NULL;
	size_t n = 0;

	if (width == 0)
		return 0;
	lines = format_wrap(text, width, names ? 2 : 0, draw_flags(draw) | FORMAT_ESCAPED);
	draw->failed |= !lines;
	for (; lines && lines[n]; n++) {
		size_t name = names ? name_length(lines[n]) : 0;

		if (n < skip || n - skip >= height)
			continue;
		canvas_put(draw->canvas, y + n - skip, x, lines[n], style);
		if (name > 0)
			canvas_paint(draw->canvas, y + n - skip, x, name, STYLE_HEADING);
	}
	return n;
}

/* ---- tabs ---- */

typedef enum TabForm {
	TABS_WIDE,    /* "1 Sessions  2 Exposure" */
	TABS_NARROW,  /* one space between them */
	TABS_TIGHT,   /* "1Sessions 2Exposure": all fit into 80 columns */
	TABS_NUMBERS, /* only the current one has its title; without the last, which has a key of its own */
	TABS_CURRENT, /* nothing else is there */
} TabForm;

static size_t tab_text(const Draw *draw, size_t i, TabForm form, char **ret)
{
	const View *view = view_at(i);
	bool current = view == draw->screen->view;
	int n;

	*ret = NULL;
	if ((form == TABS_CURRENT && !current) || (form >= TABS_NUMBERS && !view_at(i + 1) && !current))
		return 0;
	if (form == TABS_NUMBERS && !current)
		n = asprintf(ret, "%zu", i + 1);
	else
		n = asprintf(ret, form == TABS_TIGHT ? "%zu%s" : "%zu %s", i + 1, view->title);
	if (n < 0)
		*ret = NULL;
	return n < 0 ? 0 : (size_t)n;
}

static size_t tabs_width(const Draw *draw, TabForm form)
{
	size_t width = 0;

	for (size_t i = 0; view_at(i); i++) {
		_cleanup_free_ char *text = NULL;
		size_t n = tab_text(draw, i, form, &text);

		width += n > 0 ? n + (form == TABS_WIDE ? 2 : 1) : 0;
	}
	return width;
}

static void draw_tabs(Draw *draw)
{
	TabForm form = TABS_WIDE;
	size_t x = 0;

	while (form < TABS_CURRENT && tabs_width(draw, form) > draw->canvas->width + 1)
		form++;
	canvas_blank(draw->canvas, 0, 0, draw->canvas->width, STYLE_TAB);
	for (size_t i = 0; view_at(i) && i < DRAW_TABS_MOST; i++) {
		_cleanup_free_ char *text = NULL;
		bool current = view_at(i) == draw->screen->view;
		size_t n = tab_text(draw, i, form, &text), from = x;

		if (n == 0)
			continue;
		x = draw_bytes(draw, 0, x, draw->canvas->width - MIN_OF(x, draw->canvas->width), text,
			       FORMAT_ESCAPED, current ? STYLE_TAB_CURRENT : STYLE_TAB);
		draw->places->tabs[i] = (DrawSpan){ from, x };
		x += form == TABS_WIDE ? 2 : 1;
	}
	if (draw->screen->model->host && x + 8 < draw->canvas->width)
		draw_bytes(draw, 0, x, draw->canvas->width - x, draw->screen->model->host, FORMAT_RIGHT,
			   STYLE_TAB);
}

/* ---- hints ---- */

/* "KEY word" pairs, NULL-terminated, as long as they fit into width. Return: the column behind. */
static size_t draw_hint(Draw *draw, size_t y, size_t x, const char *key, size_t n_key, const char *word)
{
	_cleanup_free_ char *name = strndup(key, n_key);
	size_t width = draw->canvas->width;

	draw->failed |= !name;
	if (!name || x + n_key + 1 + strlen(word) > width)
		return x;
	x = canvas_put(draw->canvas, y, x, name, STYLE_HINT_KEY);
	x = canvas_blank(draw->canvas, y, x, 1, STYLE_HINT);
	x = canvas_put(draw->canvas, y, x, word, STYLE_HINT);
	return canvas_blank(draw->canvas, y, x, HINT_GAP, STYLE_HINT);
}

static size_t hint_width(const KeyBinding *binding)
{
	return key_first_name(binding) + 1 + strlen(binding->hint) + HINT_GAP;
}

/* How to get help and how to get out are there whatever has to give way. */
static bool is_kept(const KeyBinding *binding)
{
	return binding->command == COMMAND_HELP || binding->command == COMMAND_QUIT;
}

static void draw_hints(Draw *draw, size_t y)
{
	const char *view = draw->screen->view->name;
	const KeyBinding *binding;
	size_t kept = 0, x = 0;

	canvas_blank(draw->canvas, y, 0, draw->canvas->width, STYLE_HINT);
	for (size_t i = 0; (binding = key_binding_at(i)); i++)
		if (binding->hint && is_kept(binding) && key_binding_is_for(binding, view))
			kept += hint_width(binding);
	for (size_t i = 0; (binding = key_binding_at(i)); i++) {
		if (!binding->hint || !key_binding_is_for(binding, view))
			continue;
		if (is_kept(binding))
			kept -= hint_width(binding);
		else if (x + hint_width(binding) + kept > draw->canvas->width + HINT_GAP)
			continue;
		x = draw_hint(draw, y, x, binding->names, key_first_name(binding), binding->hint);
	}
}

/* ---- the lines around the table ---- */

/* Why what is shown may be old, or is not there. Return: lines taken. */
static size_t draw_banner(Draw *draw, size_t y, size_t most)
{
	const Model *model = draw->screen->model;
	const char *text = model->problem;
	size_t n;

	if (model->link == LINK_UP || most == 0)
		return 0;
	if (!text)
		text = model->link == LINK_CONNECTING ? "asking the service ..."
						      : "the service does not answer";
	n = MIN_OF(draw_paragraphs(draw, y, 0, draw->canvas->width, 0, 0, text, STYLE_BANNER, false), most);
	for (size_t i = 0; i < n; i++)
		canvas_blank(draw->canvas, y + i, 0, draw->canvas->width, STYLE_BANNER);
	if (n == 1)
		draw_bytes(draw, y, 0, draw->canvas->width, text, FORMAT_SENTENCE, STYLE_BANNER);
	else
		draw_paragraphs(draw, y, 0, draw->canvas->width, n, 0, text, STYLE_BANNER, false);
	return n;
}

static char *place_text(const Screen *screen)
{
	size_t n = table_count(screen->table), all = table_total(screen->table);
	char *text = NULL;

	if (n == 0 && all == 0)
		return strdup("");
	if (asprintf(&text, "%zu/%zu%s", n > 0 ? table_selected(screen->table) + 1 : 0, n,
		     n < all ? " filtered" : "") < 0)
		return NULL;
	return text;
}

static void draw_status(Draw *draw, size_t y)
{
	const Screen *screen = draw->screen;
	_cleanup_free_ char *place = place_text(screen), *said = NULL;
	size_t width = draw->canvas->width, n = place ? strlen(place) : 0;
	const char *filter = table_filter_text(screen->table), *search = table_search_text(screen->table);

	draw->failed |= !place;
	if (screen->dialog.kind == DIALOG_LINE) {
		size_t x = draw_bytes(draw, y, 0, width, screen->dialog.title, FORMAT_ESCAPED, STYLE_MESSAGE);

		draw_line_editor(draw, y, x, width - MIN_OF(x, width), &screen->dialog.line, STYLE_PLAIN);
		return;
	}
	if (n > 0 && n < width)
		draw_bytes(draw, y, width - n, n, place, 0, STYLE_FAINT);
	else
		n = 0;
	if (width < n + 2)
		return;
	width -= n + (n > 0 ? 1 : 0);
	if (screen->message) {
		draw_bytes(draw, y, 0, width, screen->message, FORMAT_SENTENCE, screen->message_style);
		return;
	}
	if (!filter && !search)
		return;
	if (asprintf(&said, "%s%s%s%s%s", filter ? "only rows with: " : "", filter ?: "",
		     filter && search ? "   " : "", search ? "search: " : "", search ?: "") < 0)
		said = NULL;
	draw->failed |= !said;
	if (said)
		draw_bytes(draw, y, 0, width, said, FORMAT_SENTENCE, STYLE_MESSAGE);
}

static void draw_headline(Draw *draw, size_t y)
{
	const Screen *screen = draw->screen;

	draw_bytes(draw, y, 0, draw->canvas->width, screen->headline ?: screen->view->about, FORMAT_SENTENCE,
		   screen->headline ? STYLE_TITLE : STYLE_FAINT);
}

/* Return: lines that the pane takes, its rule included. */
static size_t draw_details(Draw *draw, size_t bottom)
{
	const Screen *screen = draw->screen;
	size_t width = draw->canvas->width, height, n, y;

	if (!screen->details_shown || !screen->details || draw->canvas->height < DETAILS_LEAST)
		return 0;
	n = draw_paragraphs(draw, 0, 0, width, 0, 0, screen->details, STYLE_PLAIN, true);
	height = MIN_OF(n, draw->canvas->height * 2 / 5);
	y = bottom - height;
	for (size_t x = 0; x < width; x++)
		canvas_put(draw->canvas, y - 1, x, screen->utf8 ? "\u2500" : "-", STYLE_FAINT);
	if (n > height)
		draw_bytes(draw, y - 1, width > 11 ? width - 10 : 0, MIN_OF(width, (size_t)10), " c: more ",
			   0, STYLE_FAINT);
	draw_paragraphs(draw, y, 0, width, height, 0, screen->details, STYLE_PLAIN, true);
	return height + 1;
}

int draw_screen(const Screen *screen, Canvas *canvas, DrawPlaces *ret)
{
	Draw draw = { .screen = screen, .canvas = canvas, .places = ret };
	size_t height = canvas->height, y = 0, bottom = height;

	*ret = (DrawPlaces){ .heading = SIZE_MAX };
	canvas_clear(canvas);
	if (height == 0 || canvas->width == 0)
		return 0;
	if (height >= 3)
		draw_hints(&draw, --bottom);
	if (height >= 5 || screen->dialog.kind == DIALOG_LINE || screen->message)
		draw_status(&draw, --bottom);
	if (height >= 4) {
		draw_tabs(&draw);
		y = 1;
	}
	y += draw_banner(&draw, y,
			 MIN_OF(bottom - MIN_OF(y + 1, bottom), height >= 12 ? (size_t)BANNER_LINES : 1));
	if (height >= 9)
		draw_headline(&draw, y++);
	bottom -= draw_details(&draw, bottom);
	draw_table(&draw, y, bottom > y ? bottom - y : 0, height >= 6);
	draw_dialog(&draw);
	return draw.failed ? -ENOMEM : 0;
}
