/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/config-edit.h"

#define FILE_NAME "/etc/claude-sandbox.conf"

typedef struct Edited {
	const char *before, *address, *comment; /* NULL: removed */
	const char *after;                      /* NULL: refused, with this in the sentence: */
	const char *problem;
	int result;
} Edited;

static const Edited edits[] = {
	/* added */
	{ "", "10.1.2.3", "", "allow-ip = 10.1.2.3\n" },
	{ "", "10.1.2.3/32", "a printer", "allow-ip = 10.1.2.3  # a printer\n" },
	{ "gpu\n", "10.1.2.3", "", "gpu\nallow-ip = 10.1.2.3\n" },
	{ "gpu", "10.1.2.3", "x", "gpu\nallow-ip = 10.1.2.3  # x" },
	{ "gpu\r\nno-forge\r\n", "10.1.2.3", "x", "gpu\r\nno-forge\r\nallow-ip = 10.1.2.3  # x\r\n" },
	{ "gpu\r\nno-forge", "10.1.2.3", "", "gpu\r\nno-forge\r\nallow-ip = 10.1.2.3" },
	{ "\n\n", "10.1.2.3", "", "\n\nallow-ip = 10.1.2.3\n" },
	{ "# allow-ip = 10.9.9.9\n", "10.1.2.3", "", "# allow-ip = 10.9.9.9\nallow-ip = 10.1.2.3\n" },
	{ "allow-ip = 10.0.0.1\n\ngpu\n", "10.1.0.0/16", "y",
	  "allow-ip = 10.0.0.1\nallow-ip = 10.1.0.0/16  # y\n\ngpu\n" },
	{ "allow-ip = 10.0.0.1\ngpu\nallow-ip=10.0.0.2", "10.0.0.3", "",
	  "allow-ip = 10.0.0.1\ngpu\nallow-ip=10.0.0.2\nallow-ip = 10.0.0.3" },
	/* in the column of the comments */
	{ "allow-ip = 192.168.100.200    # wide\n", "10.1.2.3", "narrow",
	  "allow-ip = 192.168.100.200    # wide\nallow-ip = 10.1.2.3           # narrow\n" },
	{ "allow-ip = 10.0.0.1 # a\n", "192.168.100.200", "b",
	  "allow-ip = 10.0.0.1 # a\nallow-ip = 192.168.100.200  # b\n" },
	{ "allow-ip = 10.0.0.1\t# a\n", "10.0.0.2", "b",
	  "allow-ip = 10.0.0.1\t# a\nallow-ip = 10.0.0.2  # b\n" },
	/* known: the comment */
	{ "gpu\nallow-ip=10.1.2.3\t #old\r\nno-forge", "10.1.2.3", "new",
	  "gpu\nallow-ip=10.1.2.3\t #new\r\nno-forge" },
	{ "  allow-ip = 10.1.2.3/32   #   old # twice", "10.1.2.3", "new",
	  "  allow-ip = 10.1.2.3/32   #   new" },
	{ "allow-ip = 10.1.2.3   # old\n", "10.1.2.3", "", "allow-ip = 10.1.2.3\n" },
	{ "allow-ip = 10.1.2.3\ngpu\n", "10.1.2.3", "new", "allow-ip = 10.1.2.3  # new\ngpu\n" },
	{ "allow-ip = 10.1.2.3   \n", "10.1.2.3", "new", "allow-ip = 10.1.2.3  # new\n" },
	{ "allow-ip = 10.1.2.3 #\n", "10.1.2.3", "new", "allow-ip = 10.1.2.3 #new\n" },
	{ "allow-ip = 10.1.2.3 # same\n", "10.1.2.3", "same", NULL, NULL, -EALREADY },
	{ "allow-ip = 10.1.2.3\n", "10.1.2.3", "", NULL, NULL, -EALREADY },
	/* removed */
	{ "allow-ip = 10.1.2.3\n", "10.1.2.3", NULL, "" },
	{ "allow-ip = 10.1.2.3", "10.1.2.3/32", NULL, "" },
	{ "gpu\nallow-ip = 10.1.2.3 # x\nno-forge\n", "10.1.2.3", NULL, "gpu\nno-forge\n" },
	{ "gpu\r\nallow-ip = 10.1.2.3", "10.1.2.3", NULL, "gpu" },
	{ "gpu\n\nallow-ip = 10.1.2.3", "10.1.2.3", NULL, "gpu\n" },
	{ "allow-ip = 10.1.2.3\ngpu\nallow-ip = 10.1.2.3/32 # again\n# 10.1.2.3\n", "10.1.2.3", NULL,
	  "gpu\n# 10.1.2.3\n" },
	{ "gpu\n", "10.1.2.3", NULL, NULL, "no allow-ip is 10.1.2.3", -ENOENT },
	{ "allow-ip = 10.1.0.0/16\n", "10.1.2.3", NULL, NULL, "no allow-ip is 10.1.2.3", -ENOENT },
	/* refused */
	{ "", "10.1.2.3/16", "", NULL, "write 10.1.0.0/16", -EINVAL },
	{ "", "10.0.0.0/8", "", NULL, "too wide", -EINVAL },
	{ "", "0.0.0.0/0", "", NULL, "default route", -EINVAL },
	{ "", "127.0.0.1", "", NULL, "loopback", -EINVAL },
	{ "", "224.0.0.1", "", NULL, "multicast", -EINVAL },
	{ "", "192.0.0.8", "", NULL, "192.0.0.0/24", -EINVAL },
	{ "", "192.0.0.0/16", "", NULL, "192.0.0.0/24", -EINVAL },
	{ "", "::1", "", NULL, "not IPv4", -EINVAL },
	{ "", "printer.example", "", NULL, "not an IPv4 address", -EINVAL },
	{ "", "10.1.2.3", "a\nallow-ip = 10.0.0.1", NULL, "one line", -EINVAL },
	{ "", "10.1.2.3", "a\x1b[2J", NULL, "one line", -EINVAL },
	{ "", "10.1.2.3", "\xff", NULL, "one line", -EINVAL },
	{ "", "10.1.2.3", " x", NULL, "space", -EINVAL },
	{ "gpu\nrubbish\n", "10.1.2.3", "", NULL, FILE_NAME ":2", -EINVAL },
	{ "rubbish\nallow-ip = 10.1.2.3\n", "10.1.2.3", NULL, NULL, FILE_NAME ":1", -EINVAL },
};

static void test_edits(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(edits); i++) {
		const Edited *edit = &edits[i];
		_cleanup_free_ char *text = NULL, *problem = NULL;
		size_t size = 0;
		int r;

		r = edit->comment ? config_edit_add(FILE_NAME, edit->before, strlen(edit->before),
						    edit->address, edit->comment, &text, &size, &problem)
				  : config_edit_remove(FILE_NAME, edit->before, strlen(edit->before),
						       edit->address, &text, &size, &problem);
		if (edit->after) {
			if (r < 0)
				fail_msg("%zu: %s", i, problem ?: strerror(-r));
			assert_string_equal(text, edit->after);
			assert_int_equal(size, strlen(edit->after));
			continue;
		}
		assert_int_equal(r, edit->result);
		assert_null(text);
		if (edit->problem && (!problem || !strstr(problem, edit->problem)))
			fail_msg("%zu: %s", i, problem ?: "no sentence");
	}
}

/* What was added is taken away again without a trace, whatever stood there. */
static void test_round_trip(void **state)
{
	static const char *const texts[] = { "",
					     "\n",
					     "gpu",
					     "gpu\n",
					     "gpu\r\n",
					     "gpu\r\n\r\n# x",
					     "\n\n\n",
					     "allow-ip = 10.0.0.1",
					     "allow-ip = 10.0.0.1 # a\n\n\n# end",
					     "# \xff\xfe\n\tgpu # \x01\n" };

	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		_cleanup_free_ char *more = NULL, *less = NULL, *problem = NULL;
		size_t n_more = 0, n_less = 0;

		assert_int_equal(config_edit_add(FILE_NAME, texts[i], strlen(texts[i]), "10.1.2.3", "c",
						 &more, &n_more, &problem),
				 0);
		assert_int_equal(
			config_edit_remove(FILE_NAME, more, n_more, "10.1.2.3", &less, &n_less, &problem), 0);
		assert_string_equal(less, texts[i]);
	}
}

static void test_bounds(void **state)
{
	char comment[CONFIG_EDIT_COMMENT_MAX + 2];
	_cleanup_free_ char *text = NULL, *problem = NULL;
	size_t size;

	memset(comment, 'c', sizeof(comment));
	comment[sizeof(comment) - 1] = '\0';
	assert_int_equal(config_edit_add(FILE_NAME, "", 0, "10.1.2.3", comment, &text, &size, &problem),
			 -EINVAL);
	assert_non_null(strstr(problem, "longer than"));
	comment[sizeof(comment) - 2] = '\0';
	assert_int_equal(config_edit_add(FILE_NAME, "", 0, "10.1.2.3", comment, &text, &size, &problem), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
