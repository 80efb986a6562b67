/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "service/daemon/selinux.h"

static const char context[] = "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023";

/* A directory in the place of /proc/PID/attr. */
static char attributes[] = "/tmp/selinux-test.XXXXXX";

static void put(const char *name, const char *text, size_t size)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", attributes, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	(void)close(fd);
}

static int setup(void **state)
{
	return mkdtemp(attributes) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "current", "exec" };
	char path[64];

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", attributes, names[i]);
		(void)unlink(path);
	}
	return rmdir(attributes);
}

static void it_is_read_as_the_kernel_writes_it(void **state)
{
	char *text = NULL;

	put("current", context, sizeof(context));
	assert_int_equal(selinux_read(attributes, &text), 0);
	assert_string_equal(text, context);
	free(text);
	put("current", "kernel\n", 7);
	assert_int_equal(selinux_read(attributes, &text), 0);
	assert_string_equal(text, "kernel");
	free(text);
}

static void what_is_none_is_not_kept(void **state)
{
	static char large[8192];
	char *text = NULL;

	memset(large, 'x', sizeof(large));
	put("current", large, sizeof(large));
	assert_int_equal(selinux_read(attributes, &text), -EBADMSG);
	put("current", "", 0);
	assert_int_equal(selinux_read(attributes, &text), -EBADMSG);
	put("current", "a\0b", 3);
	assert_int_equal(selinux_read(attributes, &text), -EBADMSG);
	assert_int_equal(selinux_read("/none", &text), -ENOENT);
	assert_null(text);
}

static void it_is_set_with_its_zero_byte(void **state)
{
	char text[256], path[64];
	int fd;

	put("exec", "", 0);
	assert_int_equal(selinux_set_exec(attributes, context), 0);
	(void)snprintf(path, sizeof(path), "%s/exec", attributes);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), (ssize_t)sizeof(context));
	assert_string_equal(text, context);
	(void)close(fd);
	assert_int_equal(selinux_set_exec("/none", context), -ENOENT);
}

/* Where it is off, other modules have their names in the same files. */
static void nothing_is_kept_where_it_is_off(void **state)
{
	char *text = (char *)"";

	if (selinux_is_on())
		skip();
	assert_int_equal(selinux_of_caller(getpid(), &text), 0);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_read_as_the_kernel_writes_it),
		cmocka_unit_test(what_is_none_is_not_kept),
		cmocka_unit_test(it_is_set_with_its_zero_byte),
		cmocka_unit_test(nothing_is_kept_where_it_is_off),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
