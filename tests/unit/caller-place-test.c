/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/daemon/caller-place.h"
#include "service/daemon/proc.h"

#define PROC "149 148 0:44 / /proc rw,nosuid - proc proc rw\n"
#define TREE "148 118 0:46 /a / rw,nodev - overlay overlay rw\n"

static void mounts_at_the_root(void **state)
{
	static const struct {
		const char *text, *ids; /* NULL: there is none */
	} rows[] = {
		{ PROC TREE, " 148" },
		{ TREE PROC "160 148 0:9 / / ro shared:1 - tmpfs tmpfs rw\n", " 148 160" },
		/* a root in a file system, a mount point and an option are no mount point */
		{ PROC "150 148 0:48 / /dev rw / - tmpfs / rw\n", NULL },
		{ "151 148 0:1 / //deleted rw - tmpfs tmpfs rw\n", NULL },
		{ "151 148 0:1 / /\\040 rw - tmpfs tmpfs rw\n", NULL },
		{ "151 148 0:1 / /", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *ids = NULL;

		assert_int_equal(caller_place_roots(rows[i].text, &ids), rows[i].ids ? 0 : -EBADMSG);
		if (rows[i].ids)
			assert_string_equal(ids, rows[i].ids);
	}
}

static void depth_of_pid_namespaces(void **state)
{
	assert_int_equal(caller_place_pid_depth("Name:\ta\nNSpid:\t12\nNSpgid:\t12\n"), 1);
	assert_int_equal(caller_place_pid_depth("Name:\ta\nNSpid:\t12\t1\nNSpgid:\t12\t1\n"), 2);
	assert_int_equal(caller_place_pid_depth("Name:\ta NSpid:\t1\n"), 0);
	assert_int_equal(caller_place_pid_depth(""), 0);
}

static void we_live_where_we_live(void **state)
{
	_cleanup_free_ char *mountinfo = NULL, *ids = NULL;
	const char *cause = NULL;

	assert_int_equal(caller_place_check(getpid(), &cause), 1);
	assert_int_equal(proc_read(getpid(), "mountinfo", &mountinfo), 0);
	assert_int_equal(caller_place_roots(mountinfo, &ids), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_at_the_root),
		cmocka_unit_test(depth_of_pid_namespaces),
		cmocka_unit_test(we_live_where_we_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
