/* SPDX-License-Identifier: MIT */

/* Windows above the screen. */

#include "tui/draw-parts.h"

#define WINDOW_MOST 76 /* columns: longer lines are hard to read */

void draw_line_editor(Draw *draw, size_t y, size_t x, size_t width, const LineEditor *editor, unsigned style)
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

void draw_dialog(Draw *draw)
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
