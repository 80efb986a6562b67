/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <locale.h>
#include <time.h>

#include "tui/table.h"

static const Column columns[] = {
	{ .title = "NAME", .least = 6 },
	{ .title = "COUNT", .number = true, .weight = 1 },
	{ .title = "PATH", .path = true, .least = 8, .weight = 2 },
	{ .key = "hidden" },
};

/* "KEY NAME COUNT PATH", NULL-terminated */
static Rows *rows_of(const char *const *lines)
{
	Rows *rows = rows_new(ELEMENTSOF(columns));

	assert_non_null(rows);
	for (size_t i = 0; lines[i]; i++) {
		char key[32], name[64], count[32], path[64];

		assert_int_equal(sscanf(lines[i], "%31s %63s %31s %63s", key, name, count, path), 4);
		(void)rows_add(rows, key);
		(void)rows_cell(rows, name, STYLE_PLAIN);
		(void)rows_cell_number(rows, count, strtoull(count, NULL, 10), STYLE_GOOD);
		(void)rows_cell(rows, path, STYLE_PLAIN);
		assert_int_equal(rows_cell(rows, "needle", STYLE_PLAIN), 0);
	}
	return rows;
}

static const char *const four[] = { "a beta 10 /x", "b alpha 9 /y", "c gamma 100 /z", "d alpha 1 /w", NULL };

static Table *table_of(const char *const *lines)
{
	Table *table = table_new(columns, ELEMENTSOF(columns));

	assert_non_null(table);
	assert_int_equal(table_take(table, rows_of(lines)), 0);
	return table;
}

/* The keys as they are shown. */
static void order_expect(const Table *table, const char *expected)
{
	char keys[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < table_count(table); i++)
		keys[n++] = table_key(table, i)[0];
	assert_string_equal(keys, expected);
}

static void rows_are_sorted(void **state)
{
	_cleanup_(table_freep) Table *table = table_of(four);

	order_expect(table, "abcd");
	assert_int_equal(table_sort(table, 0, false), 0);
	order_expect(table, "bdac"); /* equal ones as they came */
	assert_int_equal(table_sort(table, 0, true), 0);
	order_expect(table, "cabd");
	assert_int_equal(table_sort(table, 1, false), 0);
	order_expect(table, "dbac"); /* as numbers */
	assert_int_equal(table_sort(table, SIZE_MAX, false), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(table_sort_next(table), 0);
		assert_int_equal(table_sort_column(table), i);
	}
	assert_int_equal(table_sort_next(table), 0);
	assert_int_equal(table_sort_column(table), SIZE_MAX); /* what is not on the screen is skipped */
	order_expect(table, "abcd");
}

static void numbers_in_text_count(void **state)
{
	static const char *const lines[] = { "a 10.0.0.10 0 /", "b 10.0.0.9 0 /", NULL };
	_cleanup_(table_freep) Table *table = table_of(lines);

	assert_int_equal(table_sort(table, 0, false), 0);
	order_expect(table, "ba");
}

static void the_filter_lets_through(void **state)
{
	_cleanup_(table_freep) Table *table = table_of(four);

	assert_int_equal(table_filter(table, "ALPHA"), 0);
	order_expect(table, "bd");
	assert_int_equal(table_total(table), 4);
	assert_string_equal(table_filter_text(table), "ALPHA");
	assert_int_equal(table_filter(table, "needle"), 0); /* not on the screen */
	order_expect(table, "");
	assert_null(table_selected_key(table));
	table_move(table, 1);
	assert_false(table_search_next(table, false));
	assert_int_equal(table_filter(table, ""), 0);
	order_expect(table, "abcd");
	assert_null(table_filter_text(table));
}

static void the_selection_stays_on_its_row(void **state)
{
	static const char *const more[] = { "n new 1 /", "a beta 10 /x", "c gamma 100 /z", "d alpha 1 /w",
					    NULL };
	static const char *const less[] = { "n new 1 /", "a beta 10 /x", NULL };
	_cleanup_(table_freep) Table *table = table_of(four);

	assert_int_equal(table_take(table, rows_of(more)), 0);
	assert_string_equal(table_selected_key(table), "n"); /* nobody has chosen one */
	assert_true(table_select_key(table, "c"));
	assert_int_equal(table_take(table, rows_of(four)), 0);
	assert_string_equal(table_selected_key(table), "c");
	assert_int_equal(table_selected(table), 2);
	assert_int_equal(table_sort(table, 1, true), 0);
	assert_string_equal(table_selected_key(table), "c");
	assert_int_equal(table_selected(table), 0);
	assert_int_equal(table_sort(table, SIZE_MAX, false), 0);
	assert_int_equal(table_take(table, rows_of(less)), 0);
	assert_string_equal(table_selected_key(table), "a"); /* the last one now */
	assert_false(table_select_key(table, "c"));
	table_move(table, -100);
	assert_string_equal(table_selected_key(table), "n");
	table_move(table, SSIZE_MAX);
	assert_string_equal(table_selected_key(table), "a");
}

static void search_goes_round(void **state)
{
	_cleanup_(table_freep) Table *table = table_of(four);

	assert_false(table_search_next(table, false));
	assert_int_equal(table_search(table, "alp"), 0);
	assert_true(table_search_here(table));
	assert_string_equal(table_selected_key(table), "b");
	assert_true(table_search_here(table)); /* it is there already */
	assert_string_equal(table_selected_key(table), "b");
	assert_true(table_search_next(table, false));
	assert_string_equal(table_selected_key(table), "d");
	assert_true(table_search_next(table, false));
	assert_string_equal(table_selected_key(table), "b");
	assert_true(table_search_next(table, true));
	assert_string_equal(table_selected_key(table), "d");
	assert_int_equal(table_search(table, "nowhere"), 0);
	assert_false(table_search_next(table, false));
	assert_string_equal(table_selected_key(table), "d");
}

static Rows *numbered(size_t from, size_t to)
{
	Rows *rows = rows_new(ELEMENTSOF(columns));

	for (size_t i = from; i < to; i++) {
		char text[32], address[64];

		(void)snprintf(text, sizeof(text), "%zu", i);
		(void)snprintf(address, sizeof(address), "10.%zu.%zu.%zu", i % 251, i % 241, i % 239);
		(void)rows_add(rows, text);
		(void)rows_cell(rows, address, STYLE_PLAIN);
		(void)rows_cell_number(rows, text, i, STYLE_PLAIN);
		(void)rows_cell(rows, "/home/alice/some/program", STYLE_PLAIN);
		assert_int_equal(rows_cell(rows, NULL, STYLE_PLAIN), 0);
	}
	return rows;
}

static void the_screen_moves_as_little_as_it_must(void **state)
{
	_cleanup_(table_freep) Table *table = table_new(columns, ELEMENTSOF(columns));

	assert_int_equal(table_take(table, numbered(10, 60)), 0);
	assert_int_equal(table_top(table, 10), 0);
	table_move(table, 9);
	assert_int_equal(table_top(table, 10), 0);
	table_move(table, 1);
	assert_int_equal(table_top(table, 10), 1);
	table_move(table, -5);
	assert_int_equal(table_top(table, 10), 1);
	table_scroll(table, 10, 10);
	assert_int_equal(table_top(table, 10), 11);
	assert_int_equal(table_selected(table), 11);
	table_scroll(table, SSIZE_MAX, 10);
	assert_int_equal(table_top(table, 10), 40);
	table_scroll(table, -100, 10);
	assert_int_equal(table_top(table, 10), 0);
	assert_int_equal(table_selected(table), 9);
	/* rows come above the screen: what is on it stays */
	table_select(table, 30);
	assert_int_equal(table_top(table, 10), 21);
	assert_int_equal(table_take(table, numbered(5, 60)), 0);
	assert_int_equal(table_selected(table), 35);
	assert_int_equal(table_top(table, 10), 26);
	/* the window shrinks to nothing and comes back */
	assert_int_equal(table_top(table, 0), 35);
	assert_int_equal(table_top(table, 1), 35);
	assert_int_equal(table_top(table, 100), 0);
}

static void layout_expect(const Table *table, size_t width, size_t a, size_t b, size_t c)
{
	size_t widths[ELEMENTSOF(columns)];

	assert_int_equal(table_layout(table, width, true, widths), 0);
	assert_int_equal(widths[0], a);
	assert_int_equal(widths[1], b);
	assert_int_equal(widths[2], c);
	assert_int_equal(widths[3], 0);
}

static void columns_give_way(void **state)
{
	static const char *const lines[] = { "a 0123456789 1 /a/b/c/d/e/f/g/h", NULL };
	_cleanup_(table_freep) Table *table = table_of(lines);

	layout_expect(table, 80, 10, 5, 16);
	layout_expect(table, 34, 10, 5, 15); /* the widest first */
	layout_expect(table, 23, 6, 5, 8);
	layout_expect(table, 22, 10, 5, 0); /* then the heaviest goes, and the others have room again */
	layout_expect(table, 12, 10, 0, 0);
	layout_expect(table, 6, 6, 0, 0);
	layout_expect(table, 3, 3, 0, 0);
	layout_expect(table, 0, 0, 0, 0);
}

static uint64_t now_usec(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* A bound that only a wrong order of growth breaks, also under sanitizers on a busy machine. */
static void ten_thousand_rows(void **state)
{
	_cleanup_(table_freep) Table *table = table_new(columns, ELEMENTSOF(columns));
	size_t widths[ELEMENTSOF(columns)];
	uint64_t begin = now_usec();

	for (unsigned round = 0; round < 5; round++) {
		assert_int_equal(table_take(table, numbered(round, 10000 + round)), 0);
		assert_int_equal(table_sort(table, 0, round % 2), 0);
		assert_int_equal(table_filter(table, "10.1"), 0);
		assert_int_equal(table_search(table, "nowhere"), 0);
		assert_false(table_search_next(table, false));
		assert_int_equal(table_filter(table, NULL), 0);
		assert_int_equal(table_layout(table, 60, true, widths), 0);
	}
	assert_true(now_usec() - begin < 5 * USEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted),
		cmocka_unit_test(numbers_in_text_count),
		cmocka_unit_test(the_filter_lets_through),
		cmocka_unit_test(the_selection_stays_on_its_row),
		cmocka_unit_test(search_goes_round),
		cmocka_unit_test(the_screen_moves_as_little_as_it_must),
		cmocka_unit_test(columns_give_way),
		cmocka_unit_test(ten_thousand_rows),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
