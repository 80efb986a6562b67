/* SPDX-License-Identifier: MIT */
#pragma once

/* The screen as a function of what is to be shown: tabs, table, details, windows, hints. Pure. */

#include "tui/canvas.h"
#include "tui/screen.h"

#define DRAW_TABS_MOST 16
#define DRAW_COLUMNS_MOST 16

typedef struct DrawSpan {
	size_t from, to; /* columns; empty: not there */
} DrawSpan;

/* Where things are, for the mouse, the cursor, and pages. */
typedef struct DrawPlaces {
	DrawSpan tabs[DRAW_TABS_MOST]; /* on line 0 */
	DrawSpan columns[DRAW_COLUMNS_MOST];
	size_t heading;      /* line of the headings; SIZE_MAX: none */
	size_t rows, n_rows; /* first line and number of lines of the table */
	size_t top;          /* the row on the first line */
	size_t page;         /* lines that a page is, of whatever scrolls now */
	size_t lines;        /* of a window that scrolls, all of them; 0: none does */
	bool has_cursor;
	size_t cursor_y, cursor_x;
} DrawPlaces;

/* The canvas has its size. Return: 0 or -ENOMEM. */
int draw_screen(const Screen *screen, Canvas *canvas, DrawPlaces *ret);
