/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "service/session/placeholders.h"
#include "service/session/view.h"

/* A home below a directory of the test's own, and the record beside it. */
typedef struct Fixture {
	char *root, *home, *share, *record;
	View view;
	PlanView functions;
} Fixture;

static const char *const NAMES[] = { "applications", "fish", NULL };

static char *path_of(const char *directory, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	return path;
}

static bool exists(const char *directory, const char *name)
{
	_cleanup_free_ char *path = path_of(directory, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static int fixture_make(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	_cleanup_free_ char *local = NULL;
	_cleanup_close_ int fd = FD_NONE;

	assert_non_null(f);
	f->root = strdup("/tmp/placeholders-test.XXXXXX");
	assert_non_null(f->root);
	assert_non_null(mkdtemp(f->root));
	f->home = path_of(f->root, "home");
	local = path_of(f->home, ".local");
	f->share = path_of(local, "share");
	f->record = path_of(f->root, "record");
	assert_return_code(mkdir(f->home, 0700), errno);
	assert_return_code(mkdir(local, 0700), errno);
	assert_return_code(mkdir(f->share, 0700), errno);
	fd = open(f->record, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_return_code(fd, errno);
	assert_return_code(view_init(&f->view, getuid(), f->home), 0);
	f->functions = view_functions(&f->view);
	*state = f;
	return 0;
}

static void remove_tree(const char *directory)
{
	const char *const names[] = { "home/.local/share/applications",
				      "home/.local/share/fish/kept",
				      "home/.local/share/fish",
				      "home/.local/share",
				      "home/.local",
				      "home",
				      "record",
				      "elsewhere/applications",
				      "elsewhere" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_free_ char *path = path_of(directory, names[i]);

		(void)remove(path);
	}
	(void)rmdir(directory);
}

static int fixture_remove(void **state)
{
	Fixture *f = *state;

	view_done(&f->view);
	remove_tree(f->root);
	free(f->root);
	free(f->home);
	free(f->share);
	free(f->record);
	free(f);
	return 0;
}

static void made_and_removed(void **state)
{
	Fixture *f = *state;
	Placeholders p = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&p, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&p, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	assert_true(exists(f->share, "applications"));
	assert_true(exists(f->share, "fish"));
	placeholders_close(&p);
	assert_false(exists(f->share, "applications"));
	assert_false(exists(f->share, "fish"));
}

static void what_was_there_stays(void **state)
{
	Fixture *f = *state;
	_cleanup_free_ char *own = path_of(f->share, "applications");
	Placeholders p = PLACEHOLDERS_INIT;

	assert_return_code(mkdir(own, 0755), errno);
	assert_int_equal(placeholders_open(&p, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&p, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	placeholders_close(&p);
	assert_true(exists(f->share, "applications"));
	assert_false(exists(f->share, "fish"));
}

static void what_was_filled_stays(void **state)
{
	Fixture *f = *state;
	_cleanup_free_ char *kept = path_of(f->share, "fish/kept");
	Placeholders p = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&p, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&p, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	assert_return_code(mkdir(kept, 0755), errno);
	placeholders_close(&p);
	assert_true(exists(f->share, "fish/kept"));
}

static void the_last_session_removes(void **state)
{
	Fixture *f = *state;
	Placeholders one = PLACEHOLDERS_INIT, two = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&one, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&one, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	assert_int_equal(placeholders_open(&two, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&two, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	placeholders_close(&one);
	assert_true(exists(f->share, "applications"));
	placeholders_close(&two);
	assert_false(exists(f->share, "applications"));
}

/* Closing the descriptor without more is what a kill does. */
static void a_killed_sessions_are_removed_by_the_next(void **state)
{
	Fixture *f = *state;
	Placeholders killed = PLACEHOLDERS_INIT, next = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&killed, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&killed, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	killed.record_fd = close_fd(killed.record_fd);
	assert_true(exists(f->share, "applications"));
	assert_int_equal(placeholders_open(&next, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&next, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	placeholders_close(&next);
	assert_false(exists(f->share, "applications"));
}

static void never_through_a_link(void **state)
{
	Fixture *f = *state;
	_cleanup_free_ char *elsewhere = path_of(f->root, "elsewhere");
	_cleanup_free_ char *victim = path_of(elsewhere, "applications");
	_cleanup_free_ char *fish = path_of(f->share, "fish"), *made = path_of(f->share, "applications");
	Placeholders p = PLACEHOLDERS_INIT;

	assert_return_code(mkdir(elsewhere, 0755), errno);
	assert_return_code(mkdir(victim, 0755), errno);
	assert_int_equal(placeholders_open(&p, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&p, &f->functions, f->share, getuid(), NAMES, NULL), 0);
	assert_return_code(rmdir(made), errno);
	assert_return_code(rmdir(fish), errno);
	assert_return_code(rmdir(f->share), errno);
	assert_return_code(symlink(elsewhere, f->share), errno);
	placeholders_close(&p);
	assert_true(exists(elsewhere, "applications"));
}

static void absent_directory_makes_nothing(void **state)
{
	Fixture *f = *state;
	_cleanup_free_ char *absent = path_of(f->home, ".claude");
	Placeholders p = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&p, f->record, getuid(), NULL), 0);
	assert_int_equal(placeholders_make(&p, &f->functions, absent, getuid(), NAMES, NULL), 0);
	assert_false(exists(f->home, ".claude"));
	assert_int_equal(placeholders_make(&p, &f->functions, f->share, getuid() + 1, NAMES, NULL), 0);
	assert_false(exists(f->share, "fish"));
	placeholders_close(&p);
}

static void record_of_another_kind_refuses(void **state)
{
	Fixture *f = *state;
	_cleanup_free_ char *problem = NULL;
	Placeholders p = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_open(&p, f->record, getuid() + 1, &problem), -EPERM);
	assert_non_null(strstr(problem, "record"));
	assert_return_code(chmod(f->record, 0644), errno);
	assert_int_equal(placeholders_open(&p, f->record, getuid(), &problem), -EPERM);
	assert_int_equal(placeholders_open(&p, f->share, getuid(), &problem), -EISDIR);
	assert_int_equal(p.record_fd, FD_NONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_make, fixture_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(made_and_removed),
		TEST(what_was_there_stays),
		TEST(what_was_filled_stays),
		TEST(the_last_session_removes),
		TEST(a_killed_sessions_are_removed_by_the_next),
		TEST(never_through_a_link),
		TEST(absent_directory_makes_nothing),
		TEST(record_of_another_kind_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
