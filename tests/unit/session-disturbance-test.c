/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "service/plan/mount-list.h"
#include "service/session/disturbance.h"

/* A root with one directory, shown at the place in the jail that it has in that root. */
typedef struct Fixture {
	char root[64];
	char *directory, *aside;
	int root_fd;
	Plan plan;
} Fixture;

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/disturbance-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	assert_true(asprintf(&fixture->directory, "%s/out", fixture->root) > 0);
	assert_true(asprintf(&fixture->aside, "%s/aside", fixture->root) > 0);
	assert_int_equal(mkdir(fixture->directory, 0755), 0);
	fixture->root_fd = open(fixture->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fixture->root_fd >= 0);

	PlanNode node = { .path = strdup(fixture->directory),
			  .fd = open(fixture->directory, O_PATH | O_CLOEXEC) };
	assert_int_equal(plan_add_bind(&fixture->plan, &node, "/out", ENTRY_RW, "test", "allow-write"), 0);
	plan_node_done(&node);
	*state = fixture;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	plan_done(&fixture->plan);
	close_fd(fixture->root_fd);
	(void)nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture->directory);
	free(fixture->aside);
	free(fixture);
	return 0;
}

static void what_lies_in_its_place_is_in_its_place(void **state)
{
	const Fixture *fixture = *state;

	assert_null(start_misplaced(&fixture->plan, fixture->root_fd));
	assert_int_equal(start_disturbance(&fixture->plan, "bwrap: out of luck"), DISTURBANCE_NONE);
}

static void another_thing_at_the_destination_is_noticed(void **state)
{
	const Fixture *fixture = *state;
	const Entry *entry = &fixture->plan.entries[0];

	assert_int_equal(rename(fixture->directory, fixture->aside), 0);
	assert_ptr_equal(start_misplaced(&fixture->plan, fixture->root_fd), entry);
	/* A link to the very thing is not the thing at its place. */
	assert_int_equal(symlink("aside", fixture->directory), 0);
	assert_ptr_equal(start_misplaced(&fixture->plan, fixture->root_fd), entry);
	assert_int_equal(unlink(fixture->directory), 0);
	assert_int_equal(mkdir(fixture->directory, 0755), 0);
	assert_ptr_equal(start_misplaced(&fixture->plan, fixture->root_fd), entry);
	assert_int_equal(rmdir(fixture->directory), 0);
	assert_int_equal(rename(fixture->aside, fixture->directory), 0);
	assert_null(start_misplaced(&fixture->plan, fixture->root_fd));
}

static void what_is_covered_later_is_not_looked_at(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(rename(fixture->directory, fixture->aside), 0);
	assert_int_equal(plan_add_tmpfs(&fixture->plan, "/out", 0700, ENTRY_MASKED, "test", "hidden"), 0);
	assert_null(start_misplaced(&fixture->plan, fixture->root_fd));
}

static void bwrap_is_believed_about_what_moved(void **state)
{
	static const struct {
		const char *line;
		Disturbance expected;
	} rows[] = {
		{ "bwrap: Can't find source path /proc/self/fd/19: No such file or directory",
		  DISTURBANCE_CERTAIN },
		{ "bwrap: Race condition binding dirfd: Invalid argument", DISTURBANCE_CERTAIN },
		{ "bwrap: Can't mkdir /out: Read-only file system", DISTURBANCE_CERTAIN },
		{ "bwrap: Can't bind mount /oldroot/out on /newroot/out: Unable to mount source on "
		  "destination: No such file or directory",
		  DISTURBANCE_CERTAIN },
		{ "bwrap: Can't bind mount /oldroot/out on /newroot/out: Permission denied",
		  DISTURBANCE_POSSIBLE },
		{ "bwrap: Can't mkdir /elsewhere: Read-only file system", DISTURBANCE_NONE },
		{ "bwrap: Creating new namespace failed: No such file or directory", DISTURBANCE_NONE },
	};
	const Fixture *fixture = *state;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (start_disturbance(&fixture->plan, rows[i].line) != rows[i].expected)
			fail_msg("%s", rows[i].line);
	assert_int_equal(rename(fixture->directory, fixture->aside), 0);
	assert_int_equal(start_disturbance(&fixture->plan, ""), DISTURBANCE_CERTAIN);
	assert_int_equal(symlink("aside", fixture->directory), 0);
	assert_int_equal(start_disturbance(&fixture->plan, ""), DISTURBANCE_CERTAIN);
}

#define DISTURBANCE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DISTURBANCE_TEST(what_lies_in_its_place_is_in_its_place),
		DISTURBANCE_TEST(another_thing_at_the_destination_is_noticed),
		DISTURBANCE_TEST(what_is_covered_later_is_not_looked_at),
		DISTURBANCE_TEST(bwrap_is_believed_about_what_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
