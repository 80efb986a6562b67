/* SPDX-License-Identifier: MIT */

/* The denial as it is shipped: applied, tested by itself, read back; for root and for an ordinary user. */

#include "service/net/monitor.h"
#include "tests/net/jail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

static double now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void happy(size_t extra)
{
	Jail jail;
	Denial denial = { 0 };
	char *problem = NULL;
	double start, applied, tested, read;

	jail_routes_make(extra);
	if (jail_start(&jail, &problem) < 0)
		fail_msg("%s", problem);
	start = now_msec();
	if (denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0)
		fail_msg("%s", problem);
	applied = now_msec();
	if (jail_run(&jail, jail_self_test, NULL, &problem) < 0)
		fail_msg("%s", problem);
	tested = now_msec();
	if (denial_read_back(&denial, &problem) < 0)
		fail_msg("%s", problem);
	read = now_msec();
	assert_null(problem);
	assert_null(denial.warnings);
	print_message("%zu rows: applied in %.2f ms, tested in %.2f ms, read back in %.2f ms\n",
		      jail_routes.n_rows, applied - start, tested - applied, read - tested);
	denial_done(&denial);
	jail_stop(&jail);
}

static void test_happy(void **state)
{
	happy(0);
}

static void test_many_rows(void **state)
{
	happy(1000);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_happy),
		cmocka_unit_test(test_many_rows),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
