/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "service/link/siphash.h"
#include "service/session/temp-root.h"

typedef struct Fixture {
	char root[64];
	char *user; /* ROOT/UID */
} Fixture;

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/temp-root-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	assert_true(asprintf(&fixture->user, "%s/%u", fixture->root, (unsigned)getuid()) > 0);
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
	free(fixture->user);
	free(fixture);
	return 0;
}

static char *make(const Fixture *fixture, const char *workspace, int expected)
{
	_cleanup_free_ char *problem = NULL;
	char *path = NULL;

	assert_int_equal(temp_root_make(fixture->root, getuid(), workspace, &path, &problem), expected);
	if (expected == -EPERM)
		assert_non_null(problem);
	return path;
}

/* The first of the vectors that came with the paper: key 00 01 .. 0f, input 00 01 .. 0e. */
static void the_hash_is_siphash(void **state)
{
	uint8_t key[16], input[15];

	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	for (uint8_t i = 0; i < 15; i++)
		input[i] = i;
	assert_true(siphash(key, input, sizeof(input)) == 0xa129ca6149be45e5u);
	assert_true(siphash(key, input, 0) == 0x726fdb47dd0e0e31u);
	assert_true(siphash(key, input, 8) == 0x93f5f5799a932462u);
}

static void each_workspace_has_its_own(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *a = NULL, *again = NULL, *b = NULL;
	struct stat st;

	assert_int_equal(mkdir(fixture->user, 0700), 0);
	a = make(fixture, "/srv/a", 0);
	again = make(fixture, "/srv/a", 0);
	b = make(fixture, "/srv/b", 0);
	assert_string_equal(a, again);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(strrchr(a, '/') + 1), 13);
	assert_int_equal(stat(a, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
}

static void another_key_names_other_directories(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *a = NULL, *b = NULL, *key = NULL;

	assert_int_equal(mkdir(fixture->user, 0700), 0);
	a = make(fixture, "/srv/a", 0);
	assert_true(asprintf(&key, "%s/.key", fixture->user) > 0);
	assert_int_equal(unlink(key), 0);
	b = make(fixture, "/srv/a", 0);
	assert_string_not_equal(a, b);
}

static void nothing_of_the_service_is_no_failure(void **state)
{
	assert_null(make(*state, "/srv/a", -ENOENT));
}

static void links_modes_and_owners_are_refused(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *path = NULL;

	assert_int_equal(mkdir(fixture->user, 0755), 0);
	assert_null(make(fixture, "/srv/a", -EPERM));
	assert_int_equal(rmdir(fixture->user), 0);
	assert_int_equal(symlink("/tmp", fixture->user), 0);
	assert_null(make(fixture, "/srv/a", -EPERM));
	assert_int_equal(unlink(fixture->user), 0);
	assert_int_equal(mkdir(fixture->user, 0700), 0);

	path = make(fixture, "/srv/a", 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_null(make(fixture, "/srv/a", -EPERM));
	assert_int_equal(unlink(path), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_null(make(fixture, "/srv/a", -EPERM));
}

static void a_strange_key_is_refused(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *key = NULL, *problem = NULL, *path = NULL;

	assert_int_equal(mkdir(fixture->user, 0700), 0);
	assert_true(asprintf(&key, "%s/.key", fixture->user) > 0);
	assert_int_equal(mkfifo(key, 0600), 0);
	assert_int_equal(temp_root_make(fixture->root, getuid(), "/srv/a", &path, &problem), -EPERM);
	assert_non_null(strstr(problem, ".key"));
}

#define ROOT_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_siphash),
		ROOT_TEST(each_workspace_has_its_own),
		ROOT_TEST(another_key_names_other_directories),
		ROOT_TEST(nothing_of_the_service_is_no_failure),
		ROOT_TEST(links_modes_and_owners_are_refused),
		ROOT_TEST(a_strange_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
