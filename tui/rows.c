/* SPDX-License-Identifier: MIT */

/* Rows under way from a view to a table. Ten thousand of them are made again at a change: one allocation for
 * many texts. */
#include <assert.h>

#include "tui/table.h"

#define BLOCK_SIZE ((size_t)64 * 1024)

typedef struct Block {
	struct Block *next;
	size_t used, size;
	char bytes[];
} Block;

struct Rows {
	size_t n_columns, n, allocated;
	size_t n_cells; /* of the last row */
	const char **keys;
	Cell *cells;
	Block *blocks;
	int error;
};

Rows *rows_new(size_t n_columns)
{
	Rows *rows = calloc(1, sizeof(*rows));

	if (rows)
		rows->n_columns = n_columns;
	return rows;
}

Rows *rows_free(Rows *rows)
{
	if (!rows)
		return NULL;
	while (rows->blocks) {
		Block *next = rows->blocks->next;

		free(rows->blocks);
		rows->blocks = next;
	}
	free(rows->keys);
	free(rows->cells);
	free(rows);
	return NULL;
}

static const char *rows_copy(Rows *rows, const char *text)
{
	size_t size = strlen(text) + 1;
	Block *block = rows->blocks;
	char *copy;

	if (size == 1)
		return "";
	if (!block || size > block->size - block->used) {
		size_t room = MAX_OF(BLOCK_SIZE, size);

		block = malloc(sizeof(*block) + room);
		if (!block)
			return NULL;
		*block = (Block){ .next = rows->blocks, .size = room };
		rows->blocks = block;
	}
	copy = block->bytes + block->used;
	memcpy(copy, text, size);
	block->used += size;
	return copy;
}

static int rows_grow(Rows *rows)
{
	size_t allocated = rows->allocated > 0 ? rows->allocated * 2 : 32;
	const char **keys = reallocarray(rows->keys, allocated, sizeof(*keys));
	Cell *cells;

	if (!keys)
		return -ENOMEM;
	rows->keys = keys;
	cells = reallocarray(rows->cells, allocated * rows->n_columns, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	rows->cells = cells;
	rows->allocated = allocated;
	return 0;
}

int rows_add(Rows *rows, const char *key)
{
	const char *copy;

	assert(rows->n == 0 || rows->error < 0 || rows->n_cells == rows->n_columns);
	if (rows->error == 0 && rows->n == rows->allocated)
		rows->error = rows_grow(rows);
	if (rows->error < 0)
		return rows->error;
	copy = rows_copy(rows, key);
	if (!copy)
		return rows->error = -ENOMEM;
	rows->keys[rows->n] = copy;
	for (size_t c = 0; c < rows->n_columns; c++)
		rows->cells[rows->n * rows->n_columns + c] = (Cell){ .text = "" };
	rows->n++;
	rows->n_cells = 0;
	return 0;
}

int rows_cell_number(Rows *rows, const char *text, uint64_t order, Style style)
{
	const char *copy;

	if (rows->error < 0)
		return rows->error;
	assert(rows->n > 0 && rows->n_cells < rows->n_columns);
	copy = rows_copy(rows, text ? text : "");
	if (!copy)
		return rows->error = -ENOMEM;
	rows->cells[(rows->n - 1) * rows->n_columns + rows->n_cells++] =
		(Cell){ .text = copy, .order = order, .style = style };
	return 0;
}

int rows_cell(Rows *rows, const char *text, Style style)
{
	return rows_cell_number(rows, text, 0, style);
}

size_t rows_count(const Rows *rows)
{
	return rows->n;
}

const char *rows_key(const Rows *rows, size_t row)
{
	return rows->keys[row];
}

const Cell *rows_cells(const Rows *rows, size_t row)
{
	return rows->cells + row * rows->n_columns;
}
