/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/plan/mount-list.h"
#include "service/session/anchors.h"
#include "service/session/user-namespace.h"

#define FIRST_PLACE 3

/* A directory that is shown read-write, with three things in it that the plan mounts something on. */
typedef struct Fixture {
	char root[64];
	Plan plan;
	BwrapArguments arguments;
	char *text;
	size_t size;
	int fds[16];
} Fixture;

static char *below(const Fixture *fixture, const char *path)
{
	char *joined;

	assert_true(asprintf(&joined, "%s/%s", fixture->root, path) > 0);
	return joined;
}

static void make(const Fixture *fixture, const char *path, mode_t type)
{
	_cleanup_free_ char *full = below(fixture, path);

	assert_int_equal(type == S_IFDIR ? mkdir(full, 0755) : mknod(full, type | 0644, 0), 0);
}

static void bind_at(Fixture *fixture, const char *path, const char *destination, EntryMode mode)
{
	PlanNode node = { .path = below(fixture, path) };

	node.fd = open(node.path, O_PATH | O_CLOEXEC);
	assert_true(node.fd >= 0);
	assert_int_equal(plan_add_bind(&fixture->plan, &node, destination, mode, "test", "a test"), 0);
	plan_node_done(&node);
}

static void list(Fixture *fixture)
{
	assert_int_equal(bwrap_arguments_make(&fixture->plan, FIRST_PLACE, &fixture->arguments), 0);
	assert_int_equal(anchors_list(&fixture->plan, &fixture->arguments, FIRST_PLACE, &fixture->text,
				      &fixture->size),
			 0);
	for (size_t i = 0; i < ELEMENTSOF(fixture->fds); i++)
		fixture->fds[i] = i >= FIRST_PLACE && i - FIRST_PLACE < fixture->arguments.n_fds
					  ? fixture->arguments.fds[i - FIRST_PLACE]
					  : FD_NONE;
}

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/anchors-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	make(fixture, "shown", S_IFDIR);
	make(fixture, "shown/fish", S_IFDIR);
	make(fixture, "shown/deep", S_IFDIR);
	make(fixture, "shown/deep/file", S_IFREG);
	make(fixture, "shown/socket", S_IFSOCK);
	make(fixture, "read", S_IFDIR);
	make(fixture, "read/fish", S_IFDIR);
	bind_at(fixture, "shown", "/out/shown", ENTRY_RW);
	bind_at(fixture, "read", "/out/read", ENTRY_RO);
	assert_int_equal(
		plan_add_tmpfs(&fixture->plan, "/out/shown/fish", 0755, ENTRY_MASKED, "test", "a test"), 0);
	assert_int_equal(plan_add_mask(&fixture->plan, "/out/shown/deep/file", "test", "a test"), 0);
	assert_int_equal(plan_add_mask(&fixture->plan, "/out/shown/socket", "test", "a test"), 0);
	fixture->plan.entries[fixture->plan.n_entries - 1].covers_listener = true;
	assert_int_equal(
		plan_add_tmpfs(&fixture->plan, "/out/read/fish", 0755, ENTRY_MASKED, "test", "a test"), 0);
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

	bwrap_arguments_done(&fixture->arguments);
	plan_done(&fixture->plan);
	(void)nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture->text);
	free(fixture);
	return 0;
}

static void the_list_is_what_lies_in_what_may_be_written(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *wanted = NULL;
	int n;

	list(fixture);
	n = asprintf(&wanted, "3%c%s/shown%c/out/shown%c=fish%c=deep/file%c?socket%c", 0, fixture->root, 0, 0,
		     0, 0, 0);
	assert_int_equal(fixture->size, n + 1);
	assert_memory_equal(fixture->text, wanted, fixture->size);
}

static void without_such_places_there_is_no_list(void **state)
{
	Fixture *fixture = *state;

	for (size_t i = 0; i < fixture->plan.n_entries; i++)
		fixture->plan.entries[i].mode = ENTRY_RO;
	list(fixture);
	assert_null(fixture->text);
	assert_int_equal(fixture->size, 0);
}

/* ---- in a child, whose namespaces end with it ---- */

typedef int (*Inside)(const Fixture *fixture, int directory_fd);

static int with_anchors(const Fixture *fixture, Inside inside)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		_cleanup_free_ char *problem = NULL, *shown = below(fixture, "shown");
		int fd = open(shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

		r = user_namespace_enter(geteuid(), getegid(), false, &problem);
		if (r == 0)
			r = anchors_make(fixture->text, fixture->size, fixture->fds, ELEMENTSOF(fixture->fds),
					 &problem);
		if (r < 0 && inside)
			(void)fprintf(stderr, "%s\n", problem ?: strerror(-r));
		_exit(r < 0 ? -r : inside ? inside(fixture, fd) : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Return: a line's number, or 0. */
#define CHECK(condition)                 \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int attempts(int fd)
{
	CHECK(renameat(fd, "fish", fd, "away") < 0 && errno == EBUSY);
	CHECK(unlinkat(fd, "fish", AT_REMOVEDIR) < 0 && errno == EBUSY);
	CHECK(unlinkat(fd, "deep/file", 0) < 0 && errno == EBUSY);
	CHECK(unlinkat(fd, "socket", 0) < 0 && errno == EBUSY);
	CHECK(mkdirat(fd, "other", 0755) == 0 && unlinkat(fd, "other", AT_REMOVEDIR) == 0);
	return 0;
}

static int root_is_the_same(const Fixture *fixture, int fd)
{
	_cleanup_free_ char *shown = below(fixture, "shown");
	struct stat held, named;

	CHECK(fstat(fd, &held) == 0 && stat(shown, &named) == 0);
	CHECK(held.st_dev == named.st_dev && held.st_ino == named.st_ino);
	return attempts(fd);
}

/* What bwrap can write, wherever links lead it. */
static int only_binds_are_writable(const Fixture *fixture, int fd)
{
	_cleanup_free_ char *shown = below(fixture, "shown/new"), *deep = below(fixture, "shown/deep/new"),
			    *read = below(fixture, "read/new"), *beside = below(fixture, "new");

	CHECK(mkdir(shown, 0700) == 0 && rmdir(shown) == 0);
	CHECK(mkdir(deep, 0700) == 0 && rmdir(deep) == 0);
	CHECK(mkdir(read, 0700) < 0 && errno == EROFS);
	CHECK(mkdir(beside, 0700) < 0 && errno == EROFS);
	CHECK(access("/proc/self/comm", W_OK) == 0);
	return 0;
}

static int other_root(const Fixture *fixture, int fd)
{
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && chdir("/tmp") == 0);
	CHECK(syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0);
	CHECK(umount2("/", MNT_DETACH) < 0 && umount2("/..", MNT_DETACH) < 0);
	return attempts(fd);
}

static void the_places_stay(void **state)
{
	Fixture *fixture = *state;

	list(fixture);
	assert_int_equal(with_anchors(fixture, root_is_the_same), 0);
	assert_int_equal(with_anchors(fixture, other_root), 0);
	assert_int_equal(with_anchors(fixture, only_binds_are_writable), 0);
}

static void what_has_gone_is_an_error_unless_it_may_go(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *socket = below(fixture, "shown/socket"), *fish = below(fixture, "shown/fish"),
			    *shown = below(fixture, "shown"), *aside = below(fixture, "aside");

	list(fixture);
	assert_int_equal(unlink(socket), 0);
	assert_int_equal(with_anchors(fixture, NULL), 0);
	assert_int_equal(rmdir(fish), 0);
	assert_int_equal(with_anchors(fixture, NULL), ENOENT);
	assert_int_equal(symlink("deep", fish), 0);
	assert_int_equal(with_anchors(fixture, NULL), ELOOP);
	assert_int_equal(rename(shown, aside), 0);
	assert_int_equal(with_anchors(fixture, NULL), ENOENT);
	assert_int_equal(mkdir(shown, 0755), 0);
	assert_int_equal(with_anchors(fixture, NULL), ESTALE);
	assert_int_equal(rmdir(shown), 0);
	assert_int_equal(symlink("aside", shown), 0);
	assert_int_equal(with_anchors(fixture, NULL), ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_list_is_what_lies_in_what_may_be_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_such_places_there_is_no_list, setup, teardown),
		cmocka_unit_test_setup_teardown(the_places_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(what_has_gone_is_an_error_unless_it_may_go, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
