/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbus/check-fixes.h"
#include "service/daemon/row-list.h"
#include "service/daemon/verify-call.h"

static int say(RowList *list, const char *id, const char *status)
{
	const LinkRow row = { { (char *)id, (char *)status, (char *)"title", (char *)"detail", (char *)"" } };

	return row_list_add_said(list, &row);
}

static void say_all(RowList *list, const char *status)
{
	char id[4];

	for (unsigned i = 1; i <= ROW_CHECKS; i++) {
		(void)snprintf(id, sizeof(id), "%02u", i % 100);
		assert_int_equal(say(list, id, status), 0);
	}
}

/* Return: the verdict; the last row that was added is in *ret_last. */
static int conclude(RowList *list, const VerifyEnd *end, const Row **ret_last)
{
	return verify_conclude(list, end, ret_last);
}

static void all_that_is_there_and_good_passes(void **state)
{
	_cleanup_(row_list_done) RowList list = { 0 };
	const Row *last;

	say_all(&list, "pass");
	assert_int_equal(say(&list, "p01", "note"), 0);
	assert_int_equal(conclude(&list, &(VerifyEnd){ 0 }, &last), 1);
	assert_null(last);
}

static void a_failed_row_fails(void **state)
{
	_cleanup_(row_list_done) RowList list = { 0 };
	const Row *last;

	say_all(&list, "pass");
	assert_int_equal(say(&list, "p01", "fail"), 0);
	assert_int_equal(conclude(&list, &(VerifyEnd){ .failed = true }, &last), 0);
	assert_null(last);
}

/* What is missing is named; what comes twice is as good as missing. */
static void each_check_once(void **state)
{
	_cleanup_(row_list_done) RowList short_list = { 0 }, long_list = { 0 };
	const Row *last;

	assert_int_equal(say(&short_list, "01", "pass"), 0);
	assert_int_equal(conclude(&short_list, &(VerifyEnd){ 0 }, &last), 0);
	assert_string_equal(last->id, "end");
	assert_int_equal(last->status, ROW_FAIL);
	assert_non_null(strstr(last->detail, "02, 03, 04"));
	assert_null(strstr(last->detail, "01,"));

	say_all(&long_list, "pass");
	assert_int_equal(say(&long_list, "07", "pass"), 0);
	assert_int_equal(conclude(&long_list, &(VerifyEnd){ 0 }, &last), 0);
	assert_non_null(strstr(last->detail, "07"));
}

/* The program's own word counts too, and so does whoever ended it. */
static void the_status_counts(void **state)
{
	_cleanup_(row_list_done) RowList said = { 0 }, ended = { 0 };
	const Row *last;

	say_all(&said, "pass");
	assert_int_equal(conclude(&said, &(VerifyEnd){ .failed = true }, &last), 0);
	assert_non_null(strstr(last->detail, "no row says what"));

	say_all(&ended, "pass");
	assert_int_equal(conclude(&ended, &(VerifyEnd){ .why = "it was killed" }, &last), 0);
	assert_non_null(strstr(last->detail, "it was killed"));
}

static void what_is_no_row_spoils_the_list(void **state)
{
	static const struct {
		const char *id, *status;
	} bad[] = { { "", "pass" },
		    { "UP", "pass" },
		    { "a b", "pass" },
		    { "../x", "pass" },
		    { "01", "" },
		    { "01", "passed" },
		    { "0123456789012345678901234567890123", "pass" } };
	const Row *last;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(row_list_done) RowList list = { 0 };

		say_all(&list, "pass");
		assert_int_equal(say(&list, bad[i].id, bad[i].status), -EBADMSG);
		assert_int_equal(conclude(&list, &(VerifyEnd){ 0 }, &last), 0);
		assert_non_null(strstr(last->detail, "no row"));
	}
}

static void there_is_an_end_to_rows(void **state)
{
	_cleanup_(row_list_done) RowList list = { 0 };
	const Row *last;

	say_all(&list, "pass");
	for (unsigned i = ROW_CHECKS; i < ROW_LIST_MAX; i++)
		assert_int_equal(say(&list, "p01", "pass"), 0);
	assert_int_equal(say(&list, "p01", "pass"), -E2BIG);
	assert_int_equal(list.n, ROW_LIST_MAX);
	assert_int_equal(conclude(&list, &(VerifyEnd){ 0 }, &last), 0);
	assert_string_equal(last->id, "end");
}

/* Every check has something that a person can do; what a session says of that is not believed. */
static void each_check_has_a_fix(void **state)
{
	char id[4];

	for (unsigned i = 1; i <= ROW_CHECKS; i++) {
		(void)snprintf(id, sizeof(id), "%02u", i % 100);
		assert_true(strlen(check_fix(id)) > 20 && strlen(check_fix(id)) <= ROW_FIX_MAX);
	}
	assert_true(*check_fix("p01"));
	assert_string_equal(check_fix("23"), "");
	assert_string_equal(check_fix("verify"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_check_has_a_fix),
		cmocka_unit_test(all_that_is_there_and_good_passes),
		cmocka_unit_test(a_failed_row_fails),
		cmocka_unit_test(each_check_once),
		cmocka_unit_test(the_status_counts),
		cmocka_unit_test(what_is_no_row_spoils_the_list),
		cmocka_unit_test(there_is_an_end_to_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
