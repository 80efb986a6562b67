/* SPDX-License-Identifier: MIT */
#include "tui/draw-parts.h"

#include <inttypes.h>

#define HINT_GAP 2
#define DETAILS_LEAST 16 /* lines of a screen that has room for details */
#define BANNER_LINES 3

FormatFlags draw_flags(const Draw *draw)
{
	return draw->screen->utf8 ? FORMAT_UTF8 : 0;
}

size_t draw_bytes(Draw *draw, size_t y, size_t x, size_t width, const char *bytes, FormatFlags flags,
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

size_t draw_paragraphs(Draw *draw, size_t y, size_t x, size_t width, size_t height, size_t skip,
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

size_t draw_hint(Draw *draw, size_t y, size_t x, const char *key, size_t n_key, const char *word)
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
