/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "service/link/pack.h"
#include "service/session/system-private.h"

typedef struct Fixture {
	char root[64];
	char kept[80], whole[80], unseen[80];
	const char *kept_list[2], *whole_list[2], *unseen_list[2];
	SystemPrivate what;
	char **places, **warnings;
	char *problem;
} Fixture;

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/system-private-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	(void)snprintf(fixture->kept, sizeof(fixture->kept), "%s/kept", fixture->root);
	(void)snprintf(fixture->whole, sizeof(fixture->whole), "%s/log", fixture->root);
	(void)snprintf(fixture->unseen, sizeof(fixture->unseen), "%s/tmp", fixture->root);
	fixture->kept_list[0] = fixture->kept;
	fixture->whole_list[0] = fixture->whole;
	fixture->unseen_list[0] = fixture->unseen;
	fixture->what = (SystemPrivate){ .root = fixture->root,
					 .kept = fixture->kept_list,
					 .wholes = fixture->whole_list,
					 .unseen = fixture->unseen_list,
					 .entries_max = 1000 };
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

	(void)nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	strings_free(fixture->places);
	strings_free(fixture->warnings);
	free(fixture->problem);
	free(fixture);
	return 0;
}

static void make_directory(Fixture *fixture, const char *name, mode_t mode)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->root, name);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void make_file(Fixture *fixture, const char *name, mode_t mode)
{
	_cleanup_close_ int fd = FD_NONE;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->root, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int find(Fixture *fixture)
{
	fixture->places = strings_free(fixture->places);
	return system_private_find(&fixture->what, &fixture->places, &fixture->warnings, &fixture->problem);
}

static bool has(const Fixture *fixture, const char *name)
{
	for (size_t i = 0; fixture->places && fixture->places[i]; i++)
		if (streq(fixture->places[i] + strlen(fixture->root) + 1, name))
			return true;
	return false;
}

static void modes_decide(void **state)
{
	Fixture *fixture = *state;

	make_file(fixture, "shadow.bak", 0600);
	make_file(fixture, "group", 0644);
	make_file(fixture, "run-only", 0711);
	make_directory(fixture, "mysql", 0755);
	make_file(fixture, "mysql/debian.cnf", 0640);
	make_directory(fixture, "shut", 0700);
	make_file(fixture, "shut/key", 0600);
	make_directory(fixture, "searched", 0711);
	make_directory(fixture, "listed", 0754);
	make_directory(fixture, "tmp", 01777);
	make_file(fixture, "tmp/of-somebody", 0600);
	assert_int_equal(find(fixture), 0);
	assert_true(has(fixture, "shadow.bak") && has(fixture, "mysql/debian.cnf") && has(fixture, "shut") &&
		    has(fixture, "searched") && has(fixture, "listed") && has(fixture, "run-only") &&
		    has(fixture, "tmp"));
	assert_int_equal(strings_count(fixture->places), 7);
	assert_null(fixture->warnings);
}

static void many_are_one_place(void **state)
{
	Fixture *fixture = *state;
	char name[64];

	make_directory(fixture, "some", 0755);
	make_directory(fixture, "some/many", 0755);
	make_directory(fixture, "kept", 0755);
	make_directory(fixture, "log", 0755);
	make_directory(fixture, "log/apt", 0755);
	for (unsigned i = 0; i < 6; i++) {
		(void)snprintf(name, sizeof(name), "some/many/%u", i);
		make_file(fixture, name, 0600);
		(void)snprintf(name, sizeof(name), "kept/%u", i);
		make_file(fixture, name, 0600);
	}
	assert_int_equal(find(fixture), 0);
	assert_true(has(fixture, "some/many") && has(fixture, "kept/0") && !has(fixture, "log"));
	assert_int_equal(strings_count(fixture->places), 7);
	make_file(fixture, "log/apt/term.log", 0640);
	assert_int_equal(find(fixture), 0);
	assert_true(has(fixture, "log") && !has(fixture, "log/apt/term.log"));
}

/* More than there may be mounts: directories are hidden, the fullest first; where none can be, nothing starts. */
static void too_many_are_folded_or_refused(void **state)
{
	Fixture *fixture = *state;
	char name[64];

	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		make_directory(fixture, name, 0755);
		for (unsigned j = 0; j < 3; j++) {
			(void)snprintf(name, sizeof(name), "d%u/%u", i, j);
			make_file(fixture, name, 0600);
		}
	}
	assert_int_equal(find(fixture), 0);
	assert_true(strings_count(fixture->places) <= SYSTEM_PRIVATE_MAX);
	for (unsigned i = 0; i < 20; i++) {
		char whole[16];

		(void)snprintf(whole, sizeof(whole), "d%u", i);
		(void)snprintf(name, sizeof(name), "d%u/2", i);
		assert_true(has(fixture, whole) || has(fixture, name));
	}
	make_directory(fixture, "kept", 0755);
	for (unsigned i = 0; i < SYSTEM_PRIVATE_MAX; i++) {
		(void)snprintf(name, sizeof(name), "kept/%u", i);
		make_file(fixture, name, 0600);
	}
	assert_int_equal(find(fixture), -E2BIG);
	assert_non_null(strstr(fixture->problem, "too many to be hidden"));
}

/* What is not looked through is not shown. */
static void too_much_to_look_at_is_hidden(void **state)
{
	Fixture *fixture = *state;
	char name[64];

	fixture->what.entries_max = 8;
	make_directory(fixture, "big", 0755);
	make_directory(fixture, "big/deep", 0755);
	make_directory(fixture, "big/deep/down", 0755);
	for (unsigned i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof(name), "big/deep/down/%u", i);
		make_file(fixture, name, 0644);
	}
	assert_int_equal(find(fixture), 0);
	assert_true(has(fixture, "big/deep"));
	assert_int_equal(strings_count(fixture->warnings), 1);
}

#define PRIVATE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PRIVATE_TEST(modes_decide),
		PRIVATE_TEST(many_are_one_place),
		PRIVATE_TEST(too_many_are_folded_or_refused),
		PRIVATE_TEST(too_much_to_look_at_is_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
