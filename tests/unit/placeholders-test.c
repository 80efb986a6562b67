/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/session/placeholders.h"
#include "service/session/state-directory.h"
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
	assert_true(exists(f->home, STATE_DIRECTORY "/placeholders"));
	end(&p, true);
	assert_false(exists(f->share, "applications"));
	assert_false(exists(f->share, "fish"));
	assert_false(exists(f->home, STATE_DIRECTORY "/placeholders"));
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

/* ---- files ---- */

typedef struct Bin {
	char *path;
	int fd;
} Bin;

static Bin bin_make(const Fixture *f)
{
	Bin bin = { .path = path_of(f->root, "bin") };

	assert_true(mkdir(bin.path, 0755) == 0 || errno == EEXIST);
	bin.fd = open(bin.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_return_code(bin.fd, errno);
	return bin;
}

static void bin_done(Bin *bin)
{
	free(bin->path);
	close_fdp(&bin->fd);
}

static void write_file(const Bin *bin, const char *name, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = openat(bin->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_return_code(fchmod(fd, mode), errno);
}

static void read_text(const Bin *bin, const char *name, char text[static 256])
{
	_cleanup_close_ int fd = openat(bin->fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_return_code(fd, errno);
	n = read(fd, text, 255);
	assert_return_code(n, errno);
	text[n] = 0;
}

static void a_file_is_made_and_removed(void **state)
{
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders one = begin_and_make(f), two = begin(f);
	mode_t mask = umask(0777);
	char text[256];
	struct stat st;

	assert_int_equal(placeholders_make_file(&one, bin.fd, bin.path, "claude"), 1);
	(void)umask(mask);
	assert_int_equal(placeholders_make_file(&two, bin.fd, bin.path, "claude"), 0);
	assert_return_code(fstatat(bin.fd, "claude", &st, AT_SYMLINK_NOFOLLOW), errno);
	assert_int_equal(st.st_mode, S_IFREG | 0444);
	read_text(&bin, "claude", text);
	assert_int_equal(text[0], '#');
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	end(&one, true);
	assert_true(exists(bin.path, "claude"));
	end(&two, true);
	assert_false(exists(bin.path, "claude"));
	assert_false(exists(f->home, STATE_DIRECTORY "/placeholders"));
}

static void a_killed_sessions_files_go_at_the_next_start(void **state)
{
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders killed = begin_and_make(f), next;

	assert_int_equal(placeholders_make_file(&killed, bin.fd, bin.path, "claude"), 1);
	assert_int_equal(placeholders_make_file(&killed, bin.fd, bin.path, "pi"), 1);
	/* Killed between making and filling it. */
	assert_int_equal(unlinkat(bin.fd, "pi", 0), 0);
	write_file(&bin, "pi", "", 0400);
	end(&killed, false);
	next = begin(f);
	assert_false(exists(bin.path, "claude"));
	assert_false(exists(bin.path, "pi"));
	assert_false(exists(f->share, "applications"));
	end(&next, true);

	/* But not while another one lives. */
	killed = begin_and_make(f);
	assert_int_equal(placeholders_make_file(&killed, bin.fd, bin.path, "claude"), 1);
	next = begin(f);
	assert_true(exists(bin.path, "claude"));
	assert_true(exists(f->share, "applications"));
	end(&killed, true);
	end(&next, true);
	assert_false(exists(bin.path, "claude"));
}

/* While another session lives: only what the record lists is made anew. */
static void what_a_killed_session_half_made(void **state)
{
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders killed = begin_and_make(f), next;
	char whole[256], text[256];

	assert_int_equal(placeholders_make_file(&killed, bin.fd, bin.path, "claude"), 1);
	read_text(&bin, "claude", whole);
	for (int filled = 0; filled < 2; filled++) {
		assert_int_equal(unlinkat(bin.fd, "claude", 0), 0);
		write_file(&bin, "claude", filled ? whole : "", 0400);
		next = begin(f);
		assert_int_equal(placeholders_make_file(&next, bin.fd, bin.path, "claude"), 1);
		read_text(&bin, "claude", text);
		assert_string_equal(text, whole);
		write_file(&bin, "pi", "", 0400);
		assert_int_equal(placeholders_make_file(&next, bin.fd, bin.path, "pi"), -EEXIST);
		assert_int_equal(unlinkat(bin.fd, "pi", 0), 0);
		end(&next, true);
	}
	end(&killed, true);
	assert_false(exists(bin.path, "claude"));
}

/* Sessions that begin and end at the same time: none takes a file that another is making for somebody's. */
static void many_at_once(void **state)
{
	enum { PROCESSES = 8, TIMES = 200 };
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	pid_t pids[PROCESSES];
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_return_code(pids[i], errno);
		if (pids[i] > 0)
			continue;
		for (int n = 0; n < TIMES; n++) {
			Placeholders p = begin(f);
			int r = placeholders_make_file(&p, bin.fd, bin.path, "claude");

			end(&p, true);
			if (r < 0)
				_exit(-r);
		}
		_exit(0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_false(exists(bin.path, "claude"));
}

/* Neither taken for a placeholder nor removed as one, though the record has its name. */
static void what_is_not_ours(void **state)
{
	enum {
		PROGRAM,
		OTHER_TEXT,
		LONGER,
		OTHER_MODE,
		SECOND_NAME,
		LINK,
		DANGLING,
		DIRECTORY,
		FIFO,
		EMPTY,
		KINDS
	};
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);

	for (int kind = 0; kind < KINDS; kind++) {
		char text[256], longer[260];
		struct stat before, after;
		Placeholders p = begin(f);

		assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), 1);
		read_text(&bin, "claude", text);
		(void)snprintf(longer, sizeof(longer), "%s\n", text);
		assert_return_code(unlinkat(bin.fd, "claude", 0), errno);
		switch (kind) {
		case PROGRAM:
			write_file(&bin, "claude", "#!/bin/sh\n", 0755);
			break;
		case OTHER_TEXT:
			text[3] ^= 1;
			write_file(&bin, "claude", text, 0444);
			break;
		case LONGER:
			write_file(&bin, "claude", longer, 0444);
			break;
		case OTHER_MODE:
			write_file(&bin, "claude", text, 0555);
			break;
		case SECOND_NAME:
			write_file(&bin, "claude", text, 0444);
			assert_return_code(linkat(bin.fd, "claude", bin.fd, "second", 0), errno);
			break;
		case LINK:
			write_file(&bin, "second", text, 0444);
			assert_return_code(symlinkat("second", bin.fd, "claude"), errno);
			break;
		case DANGLING:
			assert_return_code(symlinkat("nowhere", bin.fd, "claude"), errno);
			break;
		case DIRECTORY:
			assert_return_code(mkdirat(bin.fd, "claude", 0755), errno);
			write_file(&bin, "claude/inside", "", 0644);
			break;
		case FIFO:
			assert_return_code(mkfifoat(bin.fd, "claude", 0444), errno);
			break;
		case EMPTY:
			write_file(&bin, "claude", "", 0644);
			break;
		}
		assert_return_code(fstatat(bin.fd, "claude", &before, AT_SYMLINK_NOFOLLOW), errno);
		assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), -EEXIST);
		end(&p, true);
		assert_return_code(fstatat(bin.fd, "claude", &after, AT_SYMLINK_NOFOLLOW), errno);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(before.st_mode, after.st_mode);
		if (kind == DIRECTORY)
			assert_return_code(unlinkat(bin.fd, "claude/inside", 0), errno);
		assert_return_code(unlinkat(bin.fd, "claude", kind == DIRECTORY ? AT_REMOVEDIR : 0), errno);
		(void)unlinkat(bin.fd, "second", 0);
	}
}

static void of_another_owner(void **state)
{
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders p = begin(f);

	assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), 1);
	p.uid++;
	assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), -EEXIST);
	p.uid--;
	end(&p, true);
	assert_false(exists(bin.path, "claude"));
}

/* The directory was moved, and a link stands in its place: nothing is removed by that name. */
static void no_file_through_a_link(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *elsewhere = path_of(f->root, "elsewhere");
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders killed = begin(f), next;

	assert_int_equal(placeholders_make_file(&killed, bin.fd, bin.path, "claude"), 1);
	end(&killed, false);
	assert_return_code(rename(bin.path, elsewhere), errno);
	assert_return_code(symlink(elsewhere, bin.path), errno);
	next = begin(f);
	end(&next, true);
	assert_true(exists(elsewhere, "claude"));
}

/* By what it holds, a session finds it wherever the directory is now. */
static void a_directory_that_was_moved(void **state)
{
	const Fixture *f = *state;
	_cleanup_free_ char *elsewhere = path_of(f->root, "elsewhere");
	_cleanup_(bin_done) Bin bin = bin_make(f);
	Placeholders p = begin(f);

	assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), 1);
	assert_return_code(rename(bin.path, elsewhere), errno);
	end(&p, true);
	assert_false(exists(elsewhere, "claude"));
}

/* One that is there without being in the record goes with the last session all the same. */
static void a_stray_one_is_taken_over(void **state)
{
	const Fixture *f = *state;
	_cleanup_(bin_done) Bin bin = bin_make(f);
	_cleanup_free_ char *record = path_of(f->home, STATE_DIRECTORY "/placeholders");
	Placeholders p = begin(f);

	assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), 1);
	assert_return_code(unlink(record), errno);
	assert_int_equal(placeholders_make_file(&p, bin.fd, bin.path, "claude"), 0);
	assert_return_code(access(record, F_OK), errno);
	end(&p, true);
	assert_false(exists(bin.path, "claude"));
}

static void a_file_that_cannot_be_made(void **state)
{
	const Fixture *f = *state;
	_cleanup_close_ int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	Placeholders p = begin(f);
	int r = placeholders_make_file(&p, fd, "/proc/self", "claude");

	assert_true(r < 0 && r != -EEXIST);
	end(&p, true);
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
		TEST(a_file_is_made_and_removed),
		TEST(a_killed_sessions_files_go_at_the_next_start),
		TEST(what_a_killed_session_half_made),
		TEST(many_at_once),
		TEST(what_is_not_ours),
		TEST(of_another_owner),
		TEST(no_file_through_a_link),
		TEST(a_directory_that_was_moved),
		TEST(a_stray_one_is_taken_over),
		TEST(a_file_that_cannot_be_made),
		TEST(without_a_guard_it_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
