/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/daemon/caller.h"
#include "service/daemon/proc.h"

static void the_kernel_and_its_text_agree(void **state)
{
	struct rlimit limits[RLIM_NLIMITS];

	assert_int_equal(proc_limits(getpid(), limits), 0);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit real;

		assert_return_code(getrlimit((__rlimit_resource_t)i, &real), errno);
		assert_true(limits[i].rlim_cur == real.rlim_cur);
		assert_true(limits[i].rlim_max == real.rlim_max);
	}
}

static void text_that_is_short_or_odd_is_refused(void **state)
{
	static const char *const oddities[] = { "", "unlimited", "-1", "18446744073709551616", "12x" };
	_cleanup_free_ char *text = NULL;
	struct rlimit limits[RLIM_NLIMITS];

	assert_int_equal(proc_read(getpid(), "limits", &text), 0);
	for (size_t i = 0; i < ELEMENTSOF(oddities); i++) {
		_cleanup_free_ char *odd = NULL;
		char *line = strstr(text, "Max pending signals");

		assert_non_null(line);
		assert_true(asprintf(&odd, "%.*sMax pending signals %s\n%s", (int)(line - text), text,
				     oddities[i], strchr(line, '\n') + 1) > 0);
		assert_int_equal(proc_parse_limits(odd, limits), -EBADMSG);
	}
	*strstr(text, "Max realtime timeout") = 0;
	assert_int_equal(proc_parse_limits(text, limits), -EBADMSG);
}

/* The hard limit, where the session raises its own; of file sizes the one that holds. */
static void limits_that_are_too_low_are_named(void **state)
{
	struct rlimit limits[RLIM_NLIMITS];
	char *problem = NULL;

	for (int i = 0; i < RLIM_NLIMITS; i++)
		limits[i] = (struct rlimit){ 0, RLIM_INFINITY };
	limits[RLIMIT_FSIZE].rlim_cur = 4 << 20;
	assert_int_equal(caller_check_limits(limits, &problem), 0);
	assert_null(problem);
	limits[RLIMIT_FSIZE].rlim_cur--;
	assert_int_equal(caller_check_limits(limits, &problem), -ENOBUFS);
	assert_string_equal(problem, "the caller's limit of file sizes is 4095 KiB, and a jail needs 4096 "
				     "KiB; raise it where it was lowered (ulimit -f, or limits.conf and a "
				     "new login)");
	free(TAKE_PTR(problem));
	limits[RLIMIT_NOFILE].rlim_max = 511;
	assert_int_equal(caller_check_limits(limits, &problem), -ENOBUFS);
	assert_non_null(strstr(problem, "open files is 511, and a jail needs 512; "));
	free(problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_and_its_text_agree),
		cmocka_unit_test(text_that_is_short_or_odd_is_refused),
		cmocka_unit_test(limits_that_are_too_low_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
