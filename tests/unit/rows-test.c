/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/link/rows.h"

static char *repeat(char c, size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, c, n);
	text[n] = '\0';
	return text;
}

static void test_round(void **state)
{
	_cleanup_(row_done) Row row = { 0 }, back = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	assert_int_equal(row_make("chain.plan", ROW_WARN, "the plan", "f\xc3\xbcnf", "do it", &row), 0);
	assert_int_equal(row_encode(&row, &data, &size), 0);
	assert_int_equal(row_decode(data, size, &back), 0);
	assert_string_equal(back.id, "chain.plan");
	assert_int_equal(back.status, ROW_WARN);
	assert_string_equal(back.title, "the plan");
	assert_string_equal(back.detail, "f\xc3\xbcnf");
	assert_string_equal(back.fix, "do it");

	/* Every shorter packet, and a longer one, is refused. */
	for (size_t n = 0; n < size; n++) {
		Row none = { 0 };

		assert_int_equal(row_decode(data, n, &none), -EBADMSG);
		assert_null(none.id);
	}
	data = realloc(data, size + 1);
	assert_non_null(data);
	data[size] = 0;
	assert_int_equal(row_decode(data, size + 1, &back), -EBADMSG);
}

static void test_bounds(void **state)
{
	_cleanup_free_ char *long_text = repeat('x', ROW_BYTES_MAX);
	_cleanup_(row_done) Row row = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	assert_int_equal(row_encode(&(Row){ .id = (char *)"01", .detail = long_text }, &data, &size),
			 -EMSGSIZE);
	assert_int_equal(row_encode(&(Row){ .id = (char *)"A" }, &data, &size), -EINVAL);
	assert_int_equal(row_encode(&(Row){ .id = (char *)"" }, &data, &size), -EINVAL);
	assert_int_equal(row_encode(&(Row){ .id = (char *)"1", .status = ROW_STATUS_MAX }, &data, &size),
			 -EINVAL);

	assert_int_equal(row_make("22", ROW_FAIL, long_text, long_text, long_text, &row), 0);
	assert_int_equal(strlen(row.title), ROW_TITLE_MAX);
	assert_int_equal(strlen(row.detail), ROW_DETAIL_MAX);
	assert_int_equal(row_encode(&row, &data, &size), 0);
	assert_true(size <= ROW_BYTES_MAX);
}

static void test_cut_whole_characters(void **state)
{
	_cleanup_free_ char *text = repeat('x', ROW_TITLE_MAX + 8);
	_cleanup_(row_done) Row row = { 0 };

	memcpy(text + ROW_TITLE_MAX - 1, "\xc3\xbc", 2);
	assert_int_equal(row_make("1", ROW_PASS, text, NULL, NULL, &row), 0);
	assert_int_equal(strlen(row.title), ROW_TITLE_MAX - 1);
	assert_string_equal(row.detail, "");
	assert_string_equal(row.fix, "");
}

static void test_words(void **state)
{
	for (unsigned i = 0; i < ROW_STATUS_MAX; i++) {
		assert_int_equal(row_status_from_string(row_status_to_string((RowStatus)i, false)), i);
		assert_int_equal(row_status_from_string(row_status_to_string((RowStatus)i, true)), i);
	}
	assert_string_equal(row_status_to_string(ROW_PASS, true), "ok");
	assert_string_equal(row_status_to_string(ROW_PASS, false), "pass");
	assert_string_equal(row_status_to_string(ROW_STATUS_MAX, false), "fail");
	assert_int_equal(row_status_from_string("passed"), ROW_STATUS_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_cut_whole_characters),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
