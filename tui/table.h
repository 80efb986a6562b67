/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Rows as a view hands them over, and the table that a person looks at: sorted, filtered, searched, with one
 * row selected. Pure: no curses. Cells are bytes; they are escaped when they are drawn.
 */

#include "dbus/base.h"
#include "tui/format.h"
#include "tui/style.h"

typedef struct Column {
	const char *title; /* heading; NULL: not on the screen */
	const char *key;   /* in JSON; NULL: not there */
	bool number;       /* to the right, and a number in JSON; sorted by the cell's order */
	bool flag;         /* "true" or "false": a boolean in JSON */
	bool path;         /* cut in the middle */
	unsigned least;    /* cells that it keeps when the screen is narrow; 0: never cut */
	unsigned weight; /* which goes first when even that is too much: 0 stays always, larger go earlier */
} Column;

/* How cells of the column become lines, for format_cell() and its like: a path is bytes, all else sentences.
 */
FormatFlags column_flags(const Column *column) _pure_;

typedef struct Cell {
	const char *text; /* never NULL */
	uint64_t order;   /* what a number column is sorted by */
	Style style;
} Cell;

/* What a view makes. All texts are copied. */
typedef struct Rows Rows;
Rows *rows_new(size_t n_columns);
Rows *rows_free(Rows *rows);
DEFINE_CLEANUP(Rows, rows_free)
/*
 * The next row. key: what it is, unique among them and the same when the rows are made again, so that the
 * selection stays on it. Its cells follow by as many calls of rows_cell(). Return: 0 or -ENOMEM; an error
 * sticks and is returned by every later call, so that only the last needs to be looked at.
 */
int rows_add(Rows *rows, const char *key);
int rows_cell(Rows *rows, const char *text /* NULL: nothing */, Style style);
int rows_cell_number(Rows *rows, const char *text, uint64_t order, Style style);
size_t rows_count(const Rows *rows);
const char *rows_key(const Rows *rows, size_t row);
const Cell *rows_cells(const Rows *rows, size_t row);

typedef struct Table Table;
Table *table_new(const Column *columns, size_t n_columns);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table, table_free)

/*
 * Take new rows, which belong to the table then. The selection stays on its key, else near its place; as long
 * as nobody has moved it, it stays on the first row. What is above the screen may grow or shrink: the rows on
 * it stay where they are.
 */
int table_take(Table *table, Rows *rows);

size_t table_total(const Table *table); /* all rows */
size_t table_count(const Table *table); /* those that the filter lets through */
/* index: among these, in the order that is shown. */
const Cell *table_cells(const Table *table, size_t index);
const char *table_key(const Table *table, size_t index);

/* The selected row. Return: its index, 0 in an empty table; its key, or NULL. */
size_t table_selected(const Table *table);
const char *table_selected_key(const Table *table);
void table_select(Table *table, size_t index);
bool table_select_key(Table *table, const char *key);
void table_move(Table *table, ssize_t by);

/* First row of height ones such that the selected row is seen; it moves as little as it must. */
size_t table_top(Table *table, size_t height);
void table_scroll(Table *table, ssize_t by, size_t height); /* the wheel: the selection goes along */

/* Column to sort by, SIZE_MAX: as the view hands them over. */
int table_sort(Table *table, size_t column, bool descending);
size_t table_sort_column(const Table *table);
bool table_descending(const Table *table);
/* The next column that is shown, and behind the last the order of the view. */
int table_sort_next(Table *table);

/* Only rows of which a cell holds text, in either case (ASCII); NULL or "": all. */
int table_filter(Table *table, const char *text);
const char *table_filter_text(const Table *table); /* NULL: none */

/* What is looked for and highlighted; NULL: nothing. */
int table_search(Table *table, const char *text);
/* As format_find() takes it. Return: NULL for none. */
const char *table_search_text(const Table *table);
/* While it is typed: go to the selected row or the first one behind it that holds it, round the end. */
bool table_search_here(Table *table);
/* Go to the next row, round the end. Return: false when no row holds it. */
bool table_search_next(Table *table, bool backward);
/*
 * Share width cells among the columns, two spaces between them: as wide as their widest cell where there is
 * room; else they are cut down to `least`, then left out (0) by `weight`. ret_widths has one for each column.
 */
int table_layout(const Table *table, size_t width, bool utf8, size_t *ret_widths);
