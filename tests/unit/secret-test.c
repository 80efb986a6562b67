/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "shim/forge-store.h"
#include "shim/secret.h"

static void one_line_end_is_taken_off(void **state)
{
	static const struct {
		const char *bytes, *expected; /* NULL: refused */
	} cases[] = {
		{ "a", "a" },      { "a\n", "a" },   { "a\r\n", "a" },     { "!~", "!~" },
		{ "", NULL },      { "\n", NULL },   { "\r\n", NULL },     { "a\n\n", NULL },
		{ "\na", NULL },   { "a b", NULL },  { " a", NULL },       { "a\t", NULL },
		{ "a\x7f", NULL }, { "\x1b", NULL }, { "\xc3\xa9", NULL }, { "a\r\nb", NULL },
		{ "a\r\r", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *problem = NULL;
		_cleanup_secret_ char *secret = NULL;
		int r = secret_check(cases[i].bytes, strlen(cases[i].bytes), &secret, &problem);

		if ((r == 0) != (cases[i].expected != NULL))
			fail_msg("%zu: %d %s", i, r, problem ?: "");
		if (r == 0)
			assert_string_equal(secret, cases[i].expected);
		else
			assert_non_null(problem);
	}
}

static void its_size_is_bounded(void **state)
{
	char bytes[SECRET_MOST + 3];

	memset(bytes, 'a', sizeof(bytes));
	for (size_t n = SECRET_MOST; n <= SECRET_MOST + 1; n++) {
		_cleanup_free_ char *problem = NULL;
		_cleanup_secret_ char *secret = NULL;

		assert_int_equal(secret_check(bytes, n, &secret, &problem), n > SECRET_MOST ? -EINVAL : 0);
	}
	assert_int_equal(secret_check("a\0b", 3, &(char *){ NULL }, NULL), -EINVAL);
}

/* What is longer is not read to its end. */
static void a_pipe_is_read_to_its_end(void **state)
{
	static const char *const parts[] = { "to", "ken", "\n" };
	_cleanup_free_ char *problem = NULL;
	_cleanup_secret_ char *secret = NULL;
	char flood[SECRET_MOST * 4];
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		assert_int_equal(write(ends[1], parts[i], strlen(parts[i])), strlen(parts[i]));
	close(ends[1]);
	assert_int_equal(secret_read(ends[0], "", &secret, &problem), 0);
	assert_string_equal(secret, "token");
	close(ends[0]);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	memset(flood, 'a', sizeof(flood));
	assert_int_equal(write(ends[1], flood, sizeof(flood)), sizeof(flood));
	assert_int_equal(secret_read(ends[0], "", &(char *){ NULL }, &problem), -EINVAL);
	assert_true(read(ends[0], flood, sizeof(flood)) > 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(secret_read(ends[0], "", &(char *){ NULL }, &problem), -EBADF);
}

static void stores_are_plain(void **state)
{
	char home[] = "/tmp/store-test.XXXXXX";
	_cleanup_(forge_text_done) ForgeText text = { 0 };
	_cleanup_free_ char *problem = NULL;
	_cleanup_close_ int fd = FD_NONE, home_fd = FD_NONE;
	struct stat st;
	bool made = false;

	assert_non_null(mkdtemp(home));
	home_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(forge_store_open(home, "x", &fd, &made, &problem), 0);
	assert_true(made);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(forge_store_read(fd, "f", "f", &text, &problem), 0);
	assert_int_equal(text.n, 0);
	assert_int_equal(forge_store_write(fd, "f", "f", &(ForgeText){ (char *)"one", 3 }, &problem), 0);
	assert_int_equal(forge_store_write(fd, "f", "f", &(ForgeText){ (char *)"more", 4 }, &problem), 0);
	assert_int_equal(forge_store_read(fd, "f", "f", &text, &problem), 0);
	assert_int_equal(text.n, 4);
	assert_memory_equal(text.bytes, "more", 4);
	assert_int_equal(fstatat(fd, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(symlinkat("f", fd, "link"), 0);
	assert_int_equal(forge_store_read(fd, "link", "link", &(ForgeText){ 0 }, &problem), -ELOOP);
	assert_string_equal(problem, "link is a link, which may lead anywhere; put the real one there");
	assert_int_equal(symlinkat("x", home_fd, ".config/y"), 0);
	assert_int_equal(forge_store_open(home, "y", &(int){ FD_NONE }, &made, &problem), -ELOOP);
	assert_int_equal(unlinkat(home_fd, ".config/y", 0), 0);
	assert_int_equal(unlinkat(fd, "link", 0), 0);
	assert_int_equal(unlinkat(fd, "f", 0), 0);
	assert_int_equal(unlinkat(home_fd, ".config/x", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(home_fd, ".config", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(home), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_end_is_taken_off),
		cmocka_unit_test(its_size_is_bounded),
		cmocka_unit_test(a_pipe_is_read_to_its_end),
		cmocka_unit_test(stores_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
