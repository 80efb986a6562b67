/* SPDX-License-Identifier: MIT */
#include "tui/canvas.h"

#include "dbus/text.h"

int canvas_resize(Canvas *canvas, size_t width, size_t height)
{
	CanvasCell *cells = calloc(width * height + 1, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	free(canvas->cells);
	*canvas = (Canvas){ .width = width, .height = height, .cells = cells };
	canvas_clear(canvas);
	return 0;
}

void canvas_done(Canvas *canvas)
{
	free(canvas->cells);
	*canvas = (Canvas){ 0 };
}

static CanvasCell *cell_at(Canvas *canvas, size_t y, size_t x)
{
	return &canvas->cells[y * canvas->width + x];
}

static void set_cell(Canvas *canvas, size_t y, size_t x, uint32_t character, unsigned style)
{
	*cell_at(canvas, y, x) = (CanvasCell){ .characters = { character }, .style = (uint8_t)style };
}

/* What stood half below the new cell is no character any more. */
static void break_wide(Canvas *canvas, size_t y, size_t x)
{
	CanvasCell *cell = cell_at(canvas, y, x);

	if (cell->follows && x > 0)
		set_cell(canvas, y, x - 1, ' ', cell[-1].style);
	if (x + 1 < canvas->width && cell[1].follows)
		set_cell(canvas, y, x + 1, ' ', cell[1].style);
}

void canvas_clear(Canvas *canvas)
{
	for (size_t i = 0; i < canvas->width * canvas->height; i++)
		canvas->cells[i] = (CanvasCell){ .characters = { ' ' }, .style = STYLE_PLAIN };
}

static void combine(CanvasCell *cell, uint32_t mark)
{
	for (size_t i = 1; i < CANVAS_CHARACTERS; i++) {
		if (cell->characters[i] != 0)
			continue;
		cell->characters[i] = mark;
		return;
	}
}

size_t canvas_put(Canvas *canvas, size_t y, size_t x, const char *text, unsigned style)
{
	size_t size = strlen(text);
	CanvasCell *last = NULL;

	if (y >= canvas->height)
		return x;
	while (size > 0 && x < canvas->width) {
		uint32_t character = '?';
		size_t n = text_decode(text, size, &character);
		unsigned cells = n > 0 && text_shows(character) ? text_cells(character) : 1;

		if (n == 0 || !text_shows(character))
			character = '?';
		text += n > 0 ? n : 1;
		size -= n > 0 ? n : 1;
		if (cells == 0) {
			if (last)
				combine(last, character);
			continue;
		}
		if (cells == 2 && x + 1 == canvas->width) {
			character = ' ';
			cells = 1;
		}
		break_wide(canvas, y, x);
		if (cells == 2)
			break_wide(canvas, y, x + 1);
		set_cell(canvas, y, x, character, style);
		last = cell_at(canvas, y, x);
		if (cells == 2)
			last[1] = (CanvasCell){ .style = (uint8_t)style, .follows = true };
		x += cells;
	}
	return x;
}

size_t canvas_blank(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style)
{
	for (; n > 0 && y < canvas->height && x < canvas->width; n--, x++) {
		break_wide(canvas, y, x);
		set_cell(canvas, y, x, ' ', style);
	}
	return x;
}

void canvas_mark(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style)
{
	for (; n > 0 && y < canvas->height && x < canvas->width; n--, x++)
		cell_at(canvas, y, x)->style |= (uint8_t)style;
}

void canvas_paint(Canvas *canvas, size_t y, size_t x, size_t n, unsigned style)
{
	for (; n > 0 && y < canvas->height && x < canvas->width; n--, x++)
		cell_at(canvas, y, x)->style = (uint8_t)style;
}

static char *encode(char *to, uint32_t character)
{
	if (character < 0x80) {
		*to++ = (char)character;
	} else if (character < 0x800) {
		*to++ = (char)(0xc0 | character >> 6);
		*to++ = (char)(0x80 | (character & 0x3f));
	} else if (character < 0x10000) {
		*to++ = (char)(0xe0 | character >> 12);
		*to++ = (char)(0x80 | (character >> 6 & 0x3f));
		*to++ = (char)(0x80 | (character & 0x3f));
	} else {
		*to++ = (char)(0xf0 | character >> 18);
		*to++ = (char)(0x80 | (character >> 12 & 0x3f));
		*to++ = (char)(0x80 | (character >> 6 & 0x3f));
		*to++ = (char)(0x80 | (character & 0x3f));
	}
	return to;
}

char *canvas_text(const Canvas *canvas)
{
	char *text = malloc(canvas->height * (canvas->width * CANVAS_CHARACTERS * 4 + 1) + 1), *to = text;

	for (size_t y = 0; text && y < canvas->height; y++) {
		char *line = to;

		for (size_t x = 0; x < canvas->width; x++) {
			const CanvasCell *cell = &canvas->cells[y * canvas->width + x];

			for (size_t i = 0;
			     !cell->follows && i < CANVAS_CHARACTERS && cell->characters[i] != 0; i++)
				to = encode(to, cell->characters[i]);
		}
		while (to > line && to[-1] == ' ')
			to--;
		*to++ = '\n';
	}
	if (text)
		*to = '\0';
	return text;
}
