/* SPDX-License-Identifier: MIT */

/* Row 02 against the filter itself, and against none. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/inside/battery.h"
#include "service/inside/checks.h"
#include "service/inside/filter-listener.h"
#include "service/inside/filter-rules.h"
#include "service/inside/filter.h"

static const Check filter_check[] = { { "02", "the filter", check_filter } };

/* Run the check in a child, behind the filter. Return: its row. */
static Row judged(bool install, bool forbidden, bool expected)
{
	const Expectations e = { .forbid_namespaces = expected };
	uint8_t data[ROW_BYTES_MAX];
	Row row = { 0 };
	int pair[2], status;
	pid_t pid;
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		Battery *b = battery_new(&e, pair[1]);

		if (!b || (install &&
			   (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(forbidden) < 0)))
			_exit(2);
		battery_run(b, filter_check, ELEMENTSOF(filter_check));
		_exit(battery_failed(b) < 0);
	}
	(void)close(pair[1]);
	n = recv(pair[0], data, sizeof(data), 0);
	assert_true(n > 0);
	assert_int_equal(row_decode(data, (size_t)n, &row), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)close(pair[0]);
	return row;
}

static void it_holds(void **state)
{
	for (int forbidden = 0; forbidden < 2; forbidden++) {
		Row row = judged(true, forbidden, forbidden);

		if (row.status != ROW_PASS)
			print_error("%s\n", row.detail);
		assert_int_equal(row.status, ROW_PASS);
		row_done(&row);
	}
}

static void without_it_the_row_fails(void **state)
{
	Row row = judged(false, false, false);

	assert_int_equal(row.status, ROW_FAIL);
	assert_non_null(strstr(row.detail, "CHMOD"));
	row_done(&row);
}

static void what_root_lacks_is_found(void **state)
{
	Row row = judged(true, false, true);

	assert_int_equal(row.status, ROW_FAIL);
	assert_non_null(strstr(row.detail, "CLONE_USER"));
	assert_non_null(strstr(row.detail, "UNSHARE_USER"));
	assert_non_null(strstr(row.detail, "SETNS_USER"));
	row_done(&row);
}

/* With a filter that refuses one call as the kernel itself would: who refused it is seen. */
static int listen_and_try(void *userdata, char *text, size_t size)
{
	int r = filter_listener_start();

	if (r < 0)
		return r;
	errno = 0;
	if (chmod("", S_ISUID) == 0 || errno != EPERM)
		return 1;
	/* The filter has nothing against these: a mode without the bits, and a descriptor that is none. */
	if (chmod("", 0644) == 0 || errno != FILTER_LET_THROUGH)
		return 2;
	if (close(-1) == 0 || errno != FILTER_LET_THROUGH)
		return 3;
	return 0;
}

static void what_is_let_through_is_told_apart(void **state)
{
	char text[128];
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(false) < 0)
			_exit(100);
		_exit(-attempt_run(listen_and_try, NULL, 2000, text, sizeof(text)) & 0xff);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds),
		cmocka_unit_test(without_it_the_row_fails),
		cmocka_unit_test(what_root_lacks_is_found),
		cmocka_unit_test(what_is_let_through_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
