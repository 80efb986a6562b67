/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/link/pack.h"
#include "service/session/mount-table.h"

static const char table_text[] = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
				 "21 20 0:5 / /proc rw - proc proc rw\n"
				 "22 20 8:1 /home/user/project /mnt/again rw - ext4 /dev/sda1 rw\n"
				 "23 20 8:1 /home/user /srv/with\\040blank rw - ext4 /dev/sda1 rw\n"
				 "24 20 8:2 / /home/user/disk rw - ext4 /dev/sda2 rw\n"
				 "25 22 8:2 /inner /mnt/again/over rw - ext4 /dev/sda2 rw\n";

static int collect(void *userdata, const char *alias)
{
	return strings_append(userdata, alias);
}

static void expect(const char *path, const char *wanted)
{
	_cleanup_(mount_table_freep) MountTable *table = NULL;
	_cleanup_(strings_freep) char **found = calloc(1, sizeof(char *));
	_cleanup_free_ char *joined = strdup("");

	assert_int_equal(mount_table_parse(strdup(table_text), &table), 0);
	assert_int_equal(mount_table_aliases(table, path, collect, &found), 0);
	for (size_t i = 0; found[i]; i++) {
		_cleanup_free_ char *before = TAKE_PTR(joined);

		assert_true(asprintf(&joined, "%s%s%s", before, i > 0 ? ":" : "", found[i]) >= 0);
	}
	assert_string_equal(joined, wanted);
}

static void test_aliases(void **state)
{
	expect("/home/user/project/bin", "/mnt/again/bin:/srv/with blank/project/bin");
	expect("/mnt/again/bin", "/home/user/project/bin:/srv/with blank/project/bin");
	expect("/home/user/project", "/mnt/again:/srv/with blank/project");
	expect("/home/user", "/srv/with blank");
	expect("/srv/with blank", "/home/user");
	expect("/home/user/projects", "/srv/with blank/projects");
	expect("/home", "");
	expect("/", "");
	expect("/proc/self", "");
	/* The innermost mount is what counts. */
	expect("/mnt/again/over/x", "/home/user/disk/inner/x");
	expect("/home/user/disk/inner", "/mnt/again/over");
	expect("/home/user/disk", "");
}

static int stop(void *userdata, const char *alias)
{
	++*(int *)userdata;
	return 7;
}

static void test_stops(void **state)
{
	_cleanup_(mount_table_freep) MountTable *table = NULL;
	int calls = 0;

	assert_int_equal(mount_table_parse(strdup(table_text), &table), 0);
	assert_int_equal(mount_table_aliases(table, "/home/user/project", stop, &calls), 7);
	assert_int_equal(calls, 1);
}

static void test_bad_tables(void **state)
{
	static const char *const bad[] = { "20 1 8:1 /\n", "20 1 8:1 / relative rw\n", "\n", "x\n" };
	MountTable *table = NULL;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(mount_table_parse(strdup(bad[i]), &table), -EBADMSG);
	for (unsigned i = 0; i < 100001; i++)
		fputs("20 1 8:1 / / rw - x y z\n", stream);
	fclose(stream);
	assert_int_equal(mount_table_parse(text, &table), -E2BIG);
	assert_null(table);
	assert_int_equal(mount_table_parse(strdup(""), &table), 0);
	table = mount_table_free(table);
	assert_int_equal(mount_table_read(&table), 0);
	table = mount_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_bad_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
