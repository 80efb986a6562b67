/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files that draw share. */

#include "tui/draw.h"

typedef struct Draw {
	const Screen *screen;
	Canvas *canvas;
	DrawPlaces *places;
	bool failed; /* no memory for something: it is missing, and the caller is told */
} Draw;

FormatFlags draw_flags(const Draw *draw);
/* Bytes, cut to width. Return: the column behind. */
size_t draw_bytes(Draw *draw, size_t y, size_t x, size_t width, const char *bytes, FormatFlags flags,
		  unsigned style);
/* Text of ours or escaped, wrapped, from line y on, at most height lines after leaving out `skip`. Return:
 * all lines that there are. "Name: " at the start of a line is a heading where names is set. */
size_t draw_paragraphs(Draw *draw, size_t y, size_t x, size_t width, size_t height, size_t skip,
		       const char *text, unsigned style, bool names);

void draw_table(Draw *draw, size_t y, size_t height, bool heading);
/* A window above everything, or the whole screen. */
void draw_dialog(Draw *draw);
/* The line that is typed. */
void draw_line_editor(Draw *draw, size_t y, size_t x, size_t width, const LineEditor *editor, unsigned style);
/* "KEY word" pairs, NULL-terminated, as long as they fit into width. Return: the column behind. */
size_t draw_hint(Draw *draw, size_t y, size_t x, const char *key, size_t n_key, const char *word);
