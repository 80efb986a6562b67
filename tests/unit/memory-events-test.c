/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "service/session/memory-events.h"

static void the_number_is_found(void **state)
{
	assert_int_equal(memory_events_killed(""), 0);
	assert_int_equal(memory_events_killed("low 0\nhigh 0\nmax 3\noom 1\noom_kill 0\noom_group_kill 0\n"),
			 0);
	assert_int_equal(memory_events_killed("low 0\nhigh 0\nmax 3\noom 1\noom_kill 17\noom_group_kill 0\n"),
			 17);
	assert_int_equal(memory_events_killed("oom_killer 5\n"), 0);
	assert_int_equal(memory_events_killed("oom_kill -1"), 0);
	assert_int_equal(memory_events_killed("oom_kill"), 0);
	assert_int_equal(memory_events_killed("oom_kill 2"), 2);
}

static int file_with(const char *text)
{
	int fd = memfd_create("events", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void the_person_is_told(void **state)
{
	_cleanup_close_ int some = file_with("oom 2\noom_kill 2\n"), none = file_with("oom 0\noom_kill 0\n");
	_cleanup_free_ char *limit = memory_events_sentence(some, 512u << 20),
			    *machine = memory_events_sentence(some, 0);

	assert_non_null(strstr(limit, "killed 2 of"));
	assert_non_null(strstr(limit, "512 MiB (memory-max in /etc/claude-sandbox.conf)"));
	assert_non_null(strstr(machine, "killed 2 of"));
	assert_null(strstr(machine, "memory-max"));
	assert_null(memory_events_sentence(none, 512));
	assert_null(memory_events_sentence(FD_NONE, 512));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_is_found),
		cmocka_unit_test(the_person_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
