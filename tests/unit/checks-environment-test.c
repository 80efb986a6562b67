/* SPDX-License-Identifier: MIT */

/* Rows 04 and 05 on environments of the test's own; and what is said where the process lacks descriptors. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "service/inside/battery.h"
#include "service/inside/checks.h"

extern char **environ;

static ExpectedVariable variables[] = {
	{ (char *)"HOME", (char *)"/home/user", (char *)"account" },
	{ (char *)"IS_SANDBOX", (char *)"1", (char *)"sandbox" },
	{ (char *)"MY_TOKEN", NULL, (char *)"pass-env, file:3" },
};
static char *passed[] = { (char *)"MY_TOKEN", (char *)"DISPLAY", NULL };

static Row judged(const Expectations *e, void (*run)(Battery *b), char **environment)
{
	const Check check = { "04", "test", run };
	_cleanup_(battery_freep) Battery *b = NULL;
	uint8_t data[ROW_BYTES_MAX];
	char **kept = environ;
	Row row = { 0 };
	int pair[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b = battery_new(e, pair[1]);
	assert_non_null(b);
	environ = environment;
	battery_run(b, &check, 1);
	environ = kept;
	n = recv(pair[0], data, sizeof(data), MSG_DONTWAIT);
	assert_true(n > 0);
	assert_int_equal(row_decode(data, (size_t)n, &row), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return row;
}

static void expect(void (*run)(Battery *b), RowStatus status, const char *part, char **environment)
{
	const Expectations e = { .variables = variables,
				 .n_variables = ELEMENTSOF(variables),
				 .passed = passed };
	_cleanup_(row_done) Row row = judged(&e, run, environment);

	if (row.status != status || !strstr(row.detail, part))
		fail_msg("%s: %s", row_status_to_string(row.status, false), row.detail);
}

#define ENVIRONMENT(...) ((char *[]){ __VA_ARGS__, NULL })
#define PLANNED (char *)"HOME=/home/user", (char *)"IS_SANDBOX=1", (char *)"MY_TOKEN=x"

static void test_variables(void **state)
{
	expect(check_secrets, ROW_NOTE, "MY_TOKEN passes", ENVIRONMENT(PLANNED));
	expect(check_secrets, ROW_FAIL, "GH_TOKEN is set", ENVIRONMENT(PLANNED, (char *)"GH_TOKEN=x"));
	expect(check_secrets, ROW_FAIL, "AWS_SESSION is set", ENVIRONMENT(PLANNED, (char *)"AWS_SESSION=x"));
	expect(check_secrets, ROW_FAIL, "OTHER is set, which the plan",
	       ENVIRONMENT(PLANNED, (char *)"OTHER=x"));
	expect(check_secrets, ROW_FAIL, "IS_SANDBOX (sandbox) is missing",
	       ENVIRONMENT((char *)"HOME=/home/user", (char *)"MY_TOKEN=x"));
	expect(check_secrets, ROW_FAIL, "HOME (account) has another value",
	       ENVIRONMENT((char *)"HOME=/home/use", (char *)"IS_SANDBOX=1", (char *)"MY_TOKEN=x"));
	expect(check_secrets, ROW_FAIL, "MY_TOKEN (pass-env, file:3) is missing",
	       ENVIRONMENT((char *)"HOME=/home/user", (char *)"IS_SANDBOX=1"));
	/* No finding says a value. */
	const Expectations e = { .variables = variables, .n_variables = 2 };
	_cleanup_(row_done) Row row =
		judged(&e, check_secrets, ENVIRONMENT((char *)"SSH_AUTH_SOCK=/secret/place"));
	assert_null(strstr(row.detail, "/secret/place"));
}

static void test_display(void **state)
{
	expect(check_display, ROW_PASS, "no variable", ENVIRONMENT(PLANNED));
	expect(check_display, ROW_NOTE, "DISPLAY passes", ENVIRONMENT(PLANNED, (char *)"DISPLAY=:0"));
	expect(check_display, ROW_FAIL, "WAYLAND_DISPLAY is set", ENVIRONMENT((char *)"WAYLAND_DISPLAY=x"));
}

/* What an agent beside it can do to a check by prlimit(2): nothing that was not tried has passed. */
static void test_starved(void **state)
{
	static void (*const checks[])(Battery *) = { check_system_secrets, check_own_files, check_scope };
	struct rlimit kept, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
	for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
		const Check check = { "18", "test", checks[i] };
		_cleanup_(battery_freep) Battery *b = NULL;
		_cleanup_(row_done) Row row = { 0 };
		uint8_t data[ROW_BYTES_MAX];
		int pair[2];
		ssize_t n;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		b = battery_new(NULL, pair[1]);
		none = (struct rlimit){ 1, kept.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		battery_run(b, &check, 1);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
		n = recv(pair[0], data, sizeof(data), MSG_DONTWAIT);
		assert_true(n > 0);
		assert_int_equal(row_decode(data, (size_t)n, &row), 0);
		if (row.status != ROW_FAIL || !strstr(row.detail, "could not be tried: Too many open files"))
			fail_msg("%zu: %s: %s", i, row_status_to_string(row.status, false), row.detail);
		(void)close(pair[0]);
		(void)close(pair[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_display),
		cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
