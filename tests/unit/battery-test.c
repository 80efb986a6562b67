/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "service/inside/battery.h"
#include "service/inside/measure.h"

/* ---- attempts ---- */

static int says_so(void *userdata, char *text, size_t size)
{
	(void)snprintf(text, size, "seen %s", (const char *)userdata);
	return 42;
}

static int talks_too_long(void *userdata, char *text, size_t size)
{
	memset(text, 'x', size);
	return 0;
}

static int stops(void *userdata, char *text, size_t size)
{
	return raise(SIGSTOP);
}

_noreturn_ static int blocks(void *userdata, char *text, size_t size)
{
	for (;;)
		pause();
}

static int dies(void *userdata, char *text, size_t size)
{
	(void)snprintf(text, size, "before");
	(void)raise(SIGKILL);
	return 0;
}

_noreturn_ static int ends(void *userdata, char *text, size_t size)
{
	_exit(3);
}

static int loses_everything(void *userdata, char *text, size_t size)
{
	(void)close_range(0, ~0U, 0);
	(void)snprintf(text, size, "still here");
	return -EPERM;
}

static void what_an_attempt_says_comes_back(void **state)
{
	char text[64];

	assert_int_equal(attempt_run(says_so, (void *)"it", 1000, text, sizeof(text)), 42);
	assert_string_equal(text, "seen it");
	assert_int_equal(attempt_run(loses_everything, NULL, 1000, text, sizeof(text)), -EPERM);
	assert_string_equal(text, "still here");
	assert_int_equal(attempt_run(talks_too_long, NULL, 1000, text, sizeof(text)), 0);
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void an_attempt_never_hangs(void **state)
{
	int64_t start = clock_msec(CLOCK_MONOTONIC);
	char text[64];

	assert_int_equal(attempt_run(stops, NULL, 60000, text, sizeof(text)), -ECANCELED);
	assert_int_equal(attempt_run(blocks, NULL, 50, text, sizeof(text)), -ETIME);
	assert_true(clock_msec(CLOCK_MONOTONIC) - start < 5000);
	assert_non_null(strstr(text, "no answer"));
}

static void an_attempt_may_die(void **state)
{
	char text[64];

	assert_int_equal(attempt_run(dies, NULL, 1000, text, sizeof(text)), -ECHILD);
	assert_string_equal(text, "died of signal 9");
	assert_int_equal(attempt_run(ends, NULL, 1000, text, sizeof(text)), -ECHILD);
	assert_string_equal(text, "ended with status 3");
}

/* ---- rows ---- */

static void run_pass(Battery *b)
{
	battery_pass(b, "%d seen", 3);
}

static void run_fail(Battery *b)
{
	battery_pass(b, "seen");
	battery_note(b, "told");
	for (int i = 0; i < 9; i++)
		battery_fail(b, "wrong %d", i);
}

static void run_note(Battery *b)
{
	battery_note(b, "told");
	battery_pass(b, "seen");
}

static void run_nothing(Battery *b)
{
}

static void expect_row(int fd, const char *id, RowStatus status, const char *detail)
{
	_cleanup_(row_done) Row row = { 0 };
	uint8_t data[ROW_BYTES_MAX];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	assert_true(n > 0);
	assert_int_equal(row_decode(data, (size_t)n, &row), 0);
	assert_string_equal(row.id, id);
	assert_int_equal(row.status, status);
	assert_string_equal(row.detail, detail);
}

static void each_check_has_one_row(void **state)
{
	static const Check checks[] = { { "01", "one", run_pass },
					{ "02", "two", run_fail },
					{ "03", "three", run_note },
					{ "04", "four", run_nothing } };
	_cleanup_(battery_freep) Battery *b = NULL;
	int pair[2];
	uint8_t byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b = battery_new(NULL, pair[1]);
	assert_non_null(b);
	battery_run(b, checks, ELEMENTSOF(checks));
	expect_row(pair[0], "01", ROW_PASS, "3 seen");
	expect_row(pair[0], "02", ROW_FAIL,
		   "wrong 0; wrong 1; wrong 2; wrong 3; wrong 4; wrong 5; and 3 more");
	expect_row(pair[0], "03", ROW_NOTE, "told; seen");
	expect_row(pair[0], "04", ROW_FAIL, "the check came to no verdict");
	assert_true(recv(pair[0], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	assert_int_equal(battery_failed(b), 2);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void rows_that_nobody_takes_end_it(void **state)
{
	static const Check checks[] = { { "01", "one", run_pass }, { "02", "two", run_pass } };
	_cleanup_(battery_freep) Battery *b = NULL;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	(void)close(pair[0]);
	b = battery_new(NULL, pair[1]);
	assert_non_null(b);
	battery_run(b, checks, ELEMENTSOF(checks));
	assert_int_equal(battery_failed(b), -EPIPE);
	(void)close(pair[1]);
}

static void the_table_has_every_number(void **state)
{
	assert_int_equal(checks_count, 22);
	for (size_t i = 0; i < checks_count; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "%02zu", i + 1);
		assert_string_equal(checks_table[i].id, id);
		assert_true(strlen(checks_table[i].title) > 5 && strlen(checks_table[i].title) < 80);
		assert_non_null(checks_table[i].run);
	}
}

/* The documents name each row with its title. */
static void the_documents_name_every_row(void **state)
{
	static const char *const documents[] = { CS_DOCS "/security.md",
						 CS_DOCS "/man/claude-sandbox-verify.8.scd" };
	static const char *const forms[] = { "\n| %s | %s |", "\n*%s* %s" };

	for (size_t d = 0; d < ELEMENTSOF(documents); d++) {
		_cleanup_free_ char *text = measure_text(documents[d], 1 << 20, NULL);

		assert_non_null(text);
		for (size_t i = 0; i < checks_count; i++) {
			_cleanup_free_ char *wanted = NULL;

			assert_true(asprintf(&wanted, forms[d], checks_table[i].id, checks_table[i].title) >
				    0);
			if (!strstr(text, wanted))
				fail_msg("%s lacks: %s", documents[d], wanted + 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_attempt_says_comes_back),
		cmocka_unit_test(an_attempt_never_hangs),
		cmocka_unit_test(an_attempt_may_die),
		cmocka_unit_test(each_check_has_one_row),
		cmocka_unit_test(rows_that_nobody_takes_end_it),
		cmocka_unit_test(the_table_has_every_number),
		cmocka_unit_test(the_documents_name_every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
