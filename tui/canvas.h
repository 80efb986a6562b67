/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The screen before it is sent: cells with characters and styles. Pure, so that tests look at what a person
 * would see. Whatever does not fit is not there: nothing is written beside the canvas.
 */

#include "dbus/base.h"
#include "tui/style.h"

#define CANVAS_CHARACTERS 4 /* one, and the marks that combine with it */

typedef struct CanvasCell {
	uint32_t characters[CANVAS_CHARACTERS]; /* 0 behind the last */
	uint8_t style;                          /* Style, STYLE_SELECTED, STYLE_MATCH */
	bool follows;                           /* the second half of the wide character before it */
} CanvasCell;

typedef struct Canvas {
	size_t width, height;
	CanvasCell *cells; /* row by row */
} Canvas;

/* Return: 0 or -ENOMEM. What was there before is gone. */
int canvas_resize(Canvas *canvas, size_t width, size_t height);
void canvas_done(Canvas *canvas);
/* Spaces of plain style. */
void canvas_clear(Canvas *canvas);

/*
 * Write text, made by tui/format, from column x of line y on, up to the end of the line. Return: the column
 * behind it.
 */
size_t canvas_put(Canvas *canvas, size_t y, size_t x, const char *text, unsigned style);
/* n cells of spaces. */
size_t canvas_blank(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style);
/* Or style into n cells that are written. */
void canvas_mark(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style);
/* The style of n cells becomes this one. */
void canvas_paint(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style);

/* The lines as UTF-8, without blanks at their ends. Return: to be freed, or NULL without memory. */
char *canvas_text(const Canvas *canvas);
