/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "service/session/sealed.h"

static int raw(const char *text, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void check(int fd, size_t max, int expected)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(sealed_read(fd, max, &data, &size), expected);
	(void)close_fd(fd);
}

static void what_is_sealed_is_read_whole(void **state)
{
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_close_ int fd = FD_NONE;
	size_t size = 0;

	assert_int_equal(sealed_make("test", "a\0b", 3, &fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 3);
	assert_int_equal(sealed_read(fd, 3, &data, &size), 0);
	assert_int_equal(size, 3);
	assert_memory_equal(data, "a\0b", 3);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, 0), -1);
}

static void what_may_still_change_is_refused(void **state)
{
	check(raw("text", 0), 100, -EPERM);
	check(raw("text", F_SEAL_WRITE | F_SEAL_SHRINK), 100, -EPERM);
	check(raw("text", F_SEAL_WRITE | F_SEAL_GROW), 100, -EPERM);
	check(raw("text", F_SEAL_SHRINK | F_SEAL_GROW), 100, -EPERM);
	check(raw("text", F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 100, 0);
	check(open("/etc/passwd", O_RDONLY | O_CLOEXEC), 1000000, -EPERM);
	check(open("/dev/null", O_RDONLY | O_CLOEXEC), 100, -EPERM);
	check(FD_NONE, 100, -EBADF);
}

static void size_is_bounded_before_memory_is_taken(void **state)
{
	check(raw("text", F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 3, -E2BIG);
	check(raw("", F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 3, -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sealed_is_read_whole),
		cmocka_unit_test(what_may_still_change_is_refused),
		cmocka_unit_test(size_is_bounded_before_memory_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
