/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "service/session/placeholders.h"
#include "service/session/view.h"

/* A home below a directory of the test's own, and the record beside it. */
typedef struct Fixture {
	char *root, *home, *share, *guard;
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
	f->guard = path_of(f->root, "guard");
	assert_return_code(mkdir(f->home, 0700), errno);
	assert_return_code(mkdir(local, 0700), errno);
	assert_return_code(mkdir(f->share, 0700), errno);
	fd = open(f->guard, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_return_code(fd, errno);
	assert_return_code(view_init(&f->view, getuid(), f->home), 0);
	f->functions = view_functions(&f->view);
	*state = f;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int fixture_remove(void **state)
{
	Fixture *f = *state;

	view_done(&f->view);
	(void)nftw(f->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(f->root);
	free(f->home);
	free(f->share);
	free(f->guard);
	free(f);
	return 0;
}

/* As a session begins: a description of its own on the guard, as the service opens it. */
static Placeholders begin(const Fixture *f)
{
	Placeholders p = PLACEHOLDERS_INIT;

	p.guard_fd = open(f->guard, O_RDONLY | O_CLOEXEC);
	assert_return_code(p.guard_fd, errno);
	assert_int_equal(placeholders_begin(&p, &f->functions, f->home, getuid(), NULL), 0);
	return p;
}

static void end(Placeholders *p, bool properly)
{
	int guard_fd = p->guard_fd;

	p->counted = p->counted && properly;
	placeholders_close(p);
	(void)close_fd(guard_fd);
}

static Placeholders begin_and_make(const Fixture *f)
{
	Placeholders p = begin(f);

	assert_int_equal(placeholders_make(&p, f->share, NAMES, NULL), 0);
	return p;
}

static void made_and_removed(void **state)
{
	const Fixture *f = *state;
	Placeholders p = begin_and_make(f);

	assert_true(exists(f->share, "applications"));
	assert_true(exists(f->share, "fish"));
	assert_true(exists(f->home, PLACEHOLDERS_STATE "/placeholders"));
	end(&p, true);
	assert_false(exists(f->share, "applications"));
	assert_false(exists(f->share, "fish"));
	assert_false(exists(f->home, PLACEHOLDERS_STATE "/placeholders"));
}

static void what_was_there_stays(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *own = path_of(f->share, "applications");
	Placeholders p;

	assert_return_code(mkdir(own, 0755), errno);
	p = begin_and_make(f);
	end(&p, true);
	assert_true(exists(f->share, "applications"));
	assert_false(exists(f->share, "fish"));
}

static void nothing_missing_leaves_no_trace(void **state)
{
	const Fixture *f = *state;
	Placeholders p;

	for (size_t i = 0; NAMES[i]; i++) {
		_cleanup_free_ char *own = path_of(f->share, NAMES[i]);

		assert_return_code(mkdir(own, 0755), errno);
	}
	p = begin_and_make(f);
	end(&p, true);
	assert_false(exists(f->home, ".local/state"));
}

static void what_was_filled_stays(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *kept = path_of(f->share, "fish/kept");
	Placeholders p = begin_and_make(f);

	assert_return_code(mkdir(kept, 0755), errno);
	end(&p, true);
	assert_true(exists(f->share, "fish/kept"));
}

static void the_last_session_removes(void **state)
{
	const Fixture *f = *state;
	Placeholders one = begin_and_make(f), two = begin_and_make(f);

	end(&one, true);
	assert_true(exists(f->share, "applications"));
	end(&two, true);
	assert_false(exists(f->share, "applications"));
}

/* Closing the descriptor without more is what a kill does. */
static void a_killed_sessions_are_removed_by_the_next(void **state)
{
	const Fixture *f = *state;
	Placeholders killed = begin_and_make(f), next;

	end(&killed, false);
	assert_true(exists(f->share, "applications"));
	next = begin_and_make(f);
	end(&next, true);
	assert_false(exists(f->share, "applications"));
}

static void never_through_a_link(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *elsewhere = path_of(f->root, "elsewhere");
	_cleanup_free_ char *victim = path_of(elsewhere, "applications");
	_cleanup_free_ char *fish = path_of(f->share, "fish"), *made = path_of(f->share, "applications");
	Placeholders p;

	assert_return_code(mkdir(elsewhere, 0755), errno);
	assert_return_code(mkdir(victim, 0755), errno);
	p = begin_and_make(f);
	assert_return_code(rmdir(made), errno);
	assert_return_code(rmdir(fish), errno);
	assert_return_code(rmdir(f->share), errno);
	assert_return_code(symlink(elsewhere, f->share), errno);
	end(&p, true);
	assert_true(exists(elsewhere, "applications"));
}

static void absent_directory_makes_nothing(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *absent = path_of(f->home, ".claude");
	Placeholders p = begin(f);

	assert_int_equal(placeholders_make(&p, absent, NAMES, NULL), 0);
	assert_false(exists(f->home, ".claude"));
	p.uid++;
	assert_int_equal(placeholders_make(&p, f->share, NAMES, NULL), 0);
	assert_false(exists(f->share, "fish"));
	end(&p, true);
}

/* A trace is less than a hole: without the record they are made, and stay. */
static void a_record_that_cannot_be_written(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *state_directory = path_of(f->home, ".local/state");
	_cleanup_close_ int fd = open(state_directory, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	Placeholders p;

	assert_return_code(fd, errno);
	p = begin_and_make(f);
	assert_true(exists(f->share, "fish"));
	end(&p, true);
	assert_true(exists(f->share, "fish"));
}

static void without_a_guard_it_refuses(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *problem = NULL;
	Placeholders p = PLACEHOLDERS_INIT;

	assert_int_equal(placeholders_begin(&p, &f->functions, f->home, getuid(), &problem), -EBADF);
	assert_non_null(strstr(problem, "lock file"));
	end(&p, true);
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
		TEST(nothing_missing_leaves_no_trace),
		TEST(a_record_that_cannot_be_written),
		TEST(without_a_guard_it_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
