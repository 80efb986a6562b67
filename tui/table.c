/* SPDX-License-Identifier: MIT */
#include "tui/table.h"

#include <assert.h>

#define GAP 2u                /* columns between two of them */
#define CELL_COLUMNS_MAX 512u /* no wider than any screen */

struct Table {
	const Column *columns;
	size_t n_columns;
	Rows *rows;
	size_t *order, n_shown; /* indices of rows, as they are shown */
	size_t sort_column;
	bool descending;
	size_t selected, top;
	char *selected_key;
	bool moved; /* somebody chose the row that is selected */
	char *filter, *filter_needle, *search, *search_needle;
	size_t *widths; /* of the widest cell of each column; NULL: not looked at yet */
	bool widths_utf8;
};

FormatFlags column_flags(const Column *column)
{
	return column->path ? FORMAT_CUT_MIDDLE : FORMAT_SENTENCE;
}

Table *table_new(const Column *columns, size_t n_columns)
{
	Table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	*table = (Table){ .columns = columns, .n_columns = n_columns, .sort_column = SIZE_MAX };
	table->rows = rows_new(n_columns);
	return table->rows ? table : table_free(table);
}

Table *table_free(Table *table)
{
	if (!table)
		return NULL;
	(void)rows_free(table->rows);
	free(table->order);
	free(table->selected_key);
	free(table->filter);
	free(table->filter_needle);
	free(table->search);
	free(table->search_needle);
	free(table->widths);
	free(table);
	return NULL;
}

static bool row_holds(const Table *table, size_t row, const char *needle)
{
	const Cell *cells = rows_cells(table->rows, row);

	for (size_t c = 0; c < table->n_columns; c++)
		if (table->columns[c].title &&
		    format_holds(cells[c].text, needle, column_flags(&table->columns[c]) | FORMAT_UTF8))
			return true;
	return false;
}

/* A number is sorted by its order, and so is what a view gives one; text as people count: 9 before 10. */
static int compare(const void *a, const void *b, void *userdata)
{
	const Table *table = userdata;
	size_t row_a = *(const size_t *)a, row_b = *(const size_t *)b;
	const Cell *cell_a, *cell_b;
	int result;

	cell_a = rows_cells(table->rows, row_a) + table->sort_column;
	cell_b = rows_cells(table->rows, row_b) + table->sort_column;
	result = cell_a->order != cell_b->order ? (cell_a->order < cell_b->order ? -1 : 1)
						: strverscmp(cell_a->text, cell_b->text);
	if (table->descending)
		result = -result;
	return result != 0 ? result : row_a < row_b ? -1 : 1;
}

static void reverse(size_t *order, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		size_t other = order[i];

		order[i] = order[n - 1 - i];
		order[n - 1 - i] = other;
	}
}

/* The shown index of key, n_shown for none. */
static size_t index_of(const Table *table, const char *key)
{
	size_t i = 0;

	while (i < table->n_shown && !streq(rows_key(table->rows, table->order[i]), key))
		i++;
	return i;
}

/* Note which row is selected now. Without memory the selection is kept by its place. */
static void remember(Table *table)
{
	free(table->selected_key);
	table->selected_key =
		table->n_shown > 0 ? strdup(rows_key(table->rows, table->order[table->selected])) : NULL;
}

/* Filter and sort again, and find the selected row again. */
static int arrange(Table *table, Rows *rows)
{
	size_t *order = reallocarray(NULL, rows_count(rows) + 1, sizeof(*order));
	size_t before = table->selected, found;

	if (!order)
		return -ENOMEM;
	free(table->order);
	table->order = order;
	table->rows = rows;
	table->n_shown = 0;
	for (size_t i = 0; i < rows_count(rows); i++)
		if (!table->filter_needle || row_holds(table, i, table->filter_needle))
			order[table->n_shown++] = i;
	if (table->sort_column < table->n_columns)
		qsort_r(order, table->n_shown, sizeof(*order), compare, table);
	else if (table->descending)
		reverse(order, table->n_shown);

	found = table->selected_key && table->moved ? index_of(table, table->selected_key) : table->n_shown;
	if (found < table->n_shown)
		table->selected = found;
	else if (!table->moved)
		table->selected = 0;
	if (table->selected >= table->n_shown)
		table->selected = table->n_shown > 0 ? table->n_shown - 1 : 0;
	if (table->top > 0 && table->selected != before)
		table->top = table->selected > before || before - table->selected < table->top
				     ? table->top + table->selected - before
				     : 0;
	remember(table);
	return 0;
}

int table_take(Table *table, Rows *rows)
{
	Rows *before = table->rows;
	int r = arrange(table, rows);

	if (r < 0) {
		(void)rows_free(rows);
		return r;
	}
	(void)rows_free(before);
	free(table->widths);
	table->widths = NULL;
	return 0;
}

size_t table_total(const Table *table)
{
	return rows_count(table->rows);
}

size_t table_count(const Table *table)
{
	return table->n_shown;
}

const Cell *table_cells(const Table *table, size_t index)
{
	assert(index < table->n_shown);
	return rows_cells(table->rows, table->order[index]);
}

const char *table_key(const Table *table, size_t index)
{
	assert(index < table->n_shown);
	return rows_key(table->rows, table->order[index]);
}

size_t table_selected(const Table *table)
{
	return table->selected;
}

const char *table_selected_key(const Table *table)
{
	return table->n_shown > 0 ? table_key(table, table->selected) : NULL;
}

void table_select(Table *table, size_t index)
{
	if (table->n_shown == 0)
		return;
	table->selected = MIN_OF(index, table->n_shown - 1);
	table->moved = true;
	remember(table);
}

bool table_select_key(Table *table, const char *key)
{
	size_t i = index_of(table, key);

	if (i == table->n_shown)
		return false;
	table_select(table, i);
	return true;
}

static size_t moved_by(size_t from, ssize_t by, size_t last)
{
	size_t distance = by < 0 ? (size_t)0 - (size_t)by : (size_t)by;

	if (by < 0)
		return distance > from ? 0 : from - distance;
	return distance > last - from ? last : from + distance;
}

void table_move(Table *table, ssize_t by)
{
	if (table->n_shown > 0)
		table_select(table, moved_by(table->selected, by, table->n_shown - 1));
}

size_t table_top(Table *table, size_t height)
{
	if (height == 0)
		return table->top = table->selected;
	if (table->selected < table->top)
		table->top = table->selected;
	if (table->selected - table->top >= height)
		table->top = table->selected - height + 1;
	if (table->n_shown <= height)
		table->top = 0;
	else if (table->top > table->n_shown - height)
		table->top = table->n_shown - height;
	return table->top;
}

void table_scroll(Table *table, ssize_t by, size_t height)
{
	size_t top = table_top(table, height);

	if (height == 0 || table->n_shown <= height)
		return;
	table->top = moved_by(top, by, table->n_shown - height);
	if (table->selected < table->top)
		table_select(table, table->top);
	else if (table->selected - table->top >= height)
		table_select(table, table->top + height - 1);
}

int table_sort(Table *table, size_t column, bool descending)
{
	table->sort_column = column < table->n_columns ? column : SIZE_MAX;
	table->descending = descending;
	return arrange(table, table->rows);
}

size_t table_sort_column(const Table *table)
{
	return table->sort_column;
}

bool table_descending(const Table *table)
{
	return table->descending;
}

int table_sort_next(Table *table)
{
	size_t column = table->sort_column + 1; /* SIZE_MAX + 1 is the first */

	while (column < table->n_columns && !table->columns[column].title)
		column++;
	return table_sort(table, column, false);
}

/* Keep text and the needle that is made of it. "" is nothing. */
static int keep(const char *text, char **ret_text, char **ret_needle)
{
	char *copy = NULL, *needle = NULL;

	if (text && *text) {
		copy = strdup(text);
		needle = format_line(text, FORMAT_UTF8 | FORMAT_SENTENCE);
		if (!copy || !needle) {
			free(copy);
			free(needle);
			return -ENOMEM;
		}
	}
	free(*ret_text);
	free(*ret_needle);
	*ret_text = copy;
	*ret_needle = needle;
	return 0;
}

int table_filter(Table *table, const char *text)
{
	int r = keep(text, &table->filter, &table->filter_needle);

	return r < 0 ? r : arrange(table, table->rows);
}

const char *table_filter_text(const Table *table)
{
	return table->filter;
}

int table_search(Table *table, const char *text)
{
	return keep(text, &table->search, &table->search_needle);
}

const char *table_search_text(const Table *table)
{
	return table->search_needle;
}

/* The first row that holds it among all, beginning `first` rows from the selected one. */
static bool search_from(Table *table, size_t first, bool backward)
{
	for (size_t i = first; table->search_needle && i < table->n_shown + first; i++) {
		size_t away = i % table->n_shown;
		size_t at = (table->selected + (backward ? table->n_shown - away : away)) % table->n_shown;

		if (row_holds(table, table->order[at], table->search_needle)) {
			table_select(table, at);
			return true;
		}
	}
	return false;
}

bool table_search_here(Table *table)
{
	return search_from(table, 0, false);
}

bool table_search_next(Table *table, bool backward)
{
	return search_from(table, 1, backward);
}

static int measure(Table *table, bool utf8)
{
	size_t *widths = calloc(table->n_columns + 1, sizeof(*widths));

	if (!widths)
		return -ENOMEM;
	for (size_t c = 0; c < table->n_columns; c++) {
		FormatFlags flags = column_flags(&table->columns[c]) | (utf8 ? FORMAT_UTF8 : 0);

		if (!table->columns[c].title)
			continue;
		widths[c] = format_width(table->columns[c].title, CELL_COLUMNS_MAX, FORMAT_UTF8);
		for (size_t i = 0; i < rows_count(table->rows); i++)
			widths[c] = MAX_OF(widths[c], format_width(rows_cells(table->rows, i)[c].text,
								   CELL_COLUMNS_MAX, flags));
	}
	free(table->widths);
	table->widths = widths;
	table->widths_utf8 = utf8;
	return 0;
}

/* With the gaps between those that are there. */
static size_t total_of(const size_t *widths, size_t n)
{
	size_t total = 0;

	for (size_t c = 0; c < n; c++)
		if (widths[c] > 0)
			total += widths[c] + (total > 0 ? GAP : 0);
	return total;
}

/* Take one cell at a time from the widest column that may give one, until the line fits or none may. */
static void squeeze(const Table *table, size_t width, size_t *widths)
{
	for (size_t total = total_of(widths, table->n_columns); total > width; total--) {
		size_t widest = SIZE_MAX;

		for (size_t c = 0; c < table->n_columns; c++)
			if (table->columns[c].least > 0 && widths[c] > table->columns[c].least &&
			    (widest == SIZE_MAX || widths[c] >= widths[widest]))
				widest = c;
		if (widest == SIZE_MAX)
			return;
		widths[widest]--;
	}
}

/* The column that goes next: the heaviest, of equal ones the last. Return: SIZE_MAX when all have to stay. */
static size_t heaviest(const Table *table, const size_t *widths)
{
	size_t found = SIZE_MAX;

	for (size_t c = 0; c < table->n_columns; c++)
		if (widths[c] > 0 && table->columns[c].weight > 0 &&
		    (found == SIZE_MAX || table->columns[c].weight >= table->columns[found].weight))
			found = c;
	return found;
}

/* What has to stay is cut all the same when the screen is narrower than that: from the last column on. */
static void cut(const Table *table, size_t width, size_t *widths)
{
	for (size_t c = table->n_columns; c-- > 0;) {
		size_t total = total_of(widths, table->n_columns);

		if (total <= width)
			return;
		widths[c] = widths[c] > total - width ? widths[c] - (total - width) : 0;
	}
}

int table_layout(const Table *table, size_t width, bool utf8, size_t *ret_widths)
{
	Table *cache = (Table *)table; /* what is measured is no change */
	_cleanup_free_ bool *gone = calloc(table->n_columns + 1, sizeof(*gone));
	int r = 0;

	if (!gone)
		return -ENOMEM;
	if (!table->widths || table->widths_utf8 != utf8)
		r = measure(cache, utf8);
	if (r < 0)
		return r;
	for (;;) {
		size_t going;

		for (size_t c = 0; c < table->n_columns; c++)
			ret_widths[c] = gone[c] ? 0 : table->widths[c];
		squeeze(table, width, ret_widths);
		if (total_of(ret_widths, table->n_columns) <= width)
			return 0;
		going = heaviest(table, ret_widths);
		if (going == SIZE_MAX)
			break;
		gone[going] = true;
	}
	cut(table, width, ret_widths);
	return 0;
}
