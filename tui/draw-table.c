/* SPDX-License-Identifier: MIT */

/* Rows and columns. */

#include "tui/draw-parts.h"

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

void draw_table(Draw *draw, size_t y, size_t height, bool heading)
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
