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
#include "service/session/view.h"

#define USER 1000u

/* An own tree below /tmp; its links belong to USER (as root) or to whoever runs this, never to root. */
typedef struct Fixture {
	char path[64];
	View view;
	PlanView functions;
} Fixture;

static char *below(const Fixture *fixture, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s%s", fixture->path, name) > 0);
	return path;
}

static void make_directory(const Fixture *fixture, const char *name)
{
	_cleanup_free_ char *path = below(fixture, name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_file(const Fixture *fixture, const char *name, mode_t mode)
{
	_cleanup_free_ char *path = below(fixture, name);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void make_link(const Fixture *fixture, const char *name, const char *text, bool of_root)
{
	_cleanup_free_ char *path = below(fixture, name);

	assert_int_equal(symlink(text, path), 0);
	if (geteuid() == 0 && !of_root)
		assert_int_equal(lchown(path, USER, USER), 0);
}

static int setup(void **state)
{
	_cleanup_free_ char *home = NULL;
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->path, sizeof(fixture->path), "/tmp/view-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	make_directory(fixture, "/home");
	make_directory(fixture, "/home/deep");
	make_directory(fixture, "/data");
	make_directory(fixture, "/data/inner");
	make_file(fixture, "/data/file", 0644);
	make_file(fixture, "/data/secret", 0000);
	home = below(fixture, "/home");
	assert_int_equal(view_init(&fixture->view, USER, home), 0);
	assert_string_equal(fixture->view.home, home);
	fixture->functions = view_functions(&fixture->view);
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

	view_done(&fixture->view);
	(void)nftw(fixture->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture);
	return 0;
}

static void check_path(const Fixture *fixture, const char *path, int error, const char *expected)
{
	_cleanup_free_ char *canonical = NULL;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = fixture->functions.resolve(fixture->functions.userdata, path, &node);

	assert_int_equal(r, error);
	if (error < 0) {
		assert_int_equal(node.fd, FD_NONE);
		return;
	}
	canonical = below(fixture, expected);
	assert_string_equal(node.path, canonical);
	assert_true(fcntl(node.fd, F_GETFL) & O_PATH);
	assert_true(fcntl(node.fd, F_GETFD) & FD_CLOEXEC);
}

/*
 * Resolve name below the fixture, by its straight path and by one that needs the walk: both come to the same.
 * expected: the canonical path below it, or NULL when error is expected.
 */
static void check(const Fixture *fixture, const char *name, int error, const char *expected)
{
	_cleanup_free_ char *straight = below(fixture, name), *path = NULL;

	check_path(fixture, straight, error, expected);
	assert_true(asprintf(&path, "/.%s", straight) > 0);
	check_path(fixture, path, error, expected);
}

static void plain_paths_are_canonical(void **state)
{
	const Fixture *fixture = *state;

	check(fixture, "/data/inner", 0, "/data/inner");
	check(fixture, "//data/./inner/", 0, "/data/inner");
	check(fixture, "/data/inner/../file", 0, "/data/file");
}

static void the_root_is_itself(void **state)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const Fixture *fixture = *state;

	assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, "/../..", &node), 0);
	assert_string_equal(node.path, "/");
	assert_true(S_ISDIR(node.mode));
}

static void what_is_not_there_says_so(void **state)
{
	const Fixture *fixture = *state;
	PlanNode node;

	check(fixture, "/nowhere", -ENOENT, NULL);
	check(fixture, "/data/file/below", -ENOTDIR, NULL);
	check(fixture, "/data/file/", -ENOTDIR, NULL);
	check(fixture, "/data/file/..", -ENOTDIR, NULL);
	assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, "data", &node), -EINVAL);
}

static void a_foreign_link_is_not_followed(void **state)
{
	const Fixture *fixture = *state;

	make_link(fixture, "/data/link", "inner", false);
	make_link(fixture, "/home/deep/link", "../../data", false);
	check(fixture, "/data/link", -ELOOP, NULL);
	check(fixture, "/data/link/anything", -ELOOP, NULL);
	check(fixture, "/home/deep/link", -ELOOP, NULL);
}

static void a_link_at_the_top_of_the_home_is_followed(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *target = below(fixture, "/data/inner");

	make_link(fixture, "/home/.state", "../data", false);
	make_link(fixture, "/home/.absolute", target, false);
	make_link(fixture, "/home/.both", ".state/inner", false);
	check(fixture, "/home/.state", 0, "/data");
	check(fixture, "/home/.state/file", 0, "/data/file");
	check(fixture, "/home/.state/../home", 0, "/home");
	check(fixture, "/home/.absolute", 0, "/data/inner");
	check(fixture, "/home/.both", 0, "/data/inner");
}

static void a_circle_of_links_ends(void **state)
{
	const Fixture *fixture = *state;

	make_link(fixture, "/home/a", "b", false);
	make_link(fixture, "/home/b", "a", false);
	check(fixture, "/home/a", -ELOOP, NULL);
}

static void a_link_of_root_is_followed(void **state)
{
	const Fixture *fixture = *state;

	if (geteuid() != 0)
		skip();
	make_link(fixture, "/data/link", "inner", true);
	check(fixture, "/data/link", 0, "/data/inner");
}

/* Wherever a session of root's may have worked once. */
static void in_a_session_of_root_its_own_links_are_not_trusted(void **state)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT, again = PLAN_NODE_INIT;
	Fixture *fixture = *state;

	if (geteuid() != 0)
		skip();
	fixture->view.uid = 0;
	make_link(fixture, "/data/link", "inner", true);
	make_link(fixture, "/home/deep/link", "../../data", true);
	make_link(fixture, "/home/top", "../data", true);
	check(fixture, "/data/link", -ELOOP, NULL);
	check(fixture, "/home/deep/link", -ELOOP, NULL);
	check(fixture, "/home/top", 0, "/data");
	/* The system's are followed, unless that place is given to agents. */
	assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, "/proc/self", &node), 0);
	assert_int_equal(view_add_writable(&fixture->view, "/proc"), 0);
	assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, "/proc/self", &again),
			 -ELOOP);
}

static void magic_links_are_never_followed(void **state)
{
	const Fixture *fixture = *state;
	static const char *const magic[] = { "/proc/self/fd/0", "/proc/self/cwd", "/proc/self/root/etc",
					     "/proc/self/exe", "/proc/self/ns/net" };

	for (size_t i = 0; i < ELEMENTSOF(magic); i++) {
		PlanNode node = PLAN_NODE_INIT;

		assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, magic[i], &node),
				 -ELOOP);
	}
}

static void the_descriptor_outlives_a_swap(void **state)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const Fixture *fixture = *state;
	_cleanup_free_ char *path = below(fixture, "/data/inner"), *moved = below(fixture, "/data/moved");
	struct stat before, after;

	assert_int_equal(fixture->functions.resolve(fixture->functions.userdata, path, &node), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(rename(path, moved), 0);
	make_link(fixture, "/data/inner", "/etc", false);
	assert_int_equal(fstat(node.fd, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void links_are_read_not_followed(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *link = below(fixture, "/data/link"), *file = below(fixture, "/data/file"),
			    *text = NULL, *none = below(fixture, "/data/none");

	make_link(fixture, "/data/link", "../anything at all", false);
	assert_int_equal(fixture->functions.read_link(fixture->functions.userdata, link, &text), 0);
	assert_string_equal(text, "../anything at all");
	assert_int_equal(fixture->functions.read_link(fixture->functions.userdata, file, &text), -EINVAL);
	assert_int_equal(fixture->functions.read_link(fixture->functions.userdata, none, &text), -ENOENT);
}

static void reading_is_asked_of_the_kernel(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *file = below(fixture, "/data/file"), *secret = below(fixture, "/data/secret");

	assert_true(fixture->functions.readable(fixture->functions.userdata, file));
	assert_int_equal(fixture->functions.readable(fixture->functions.userdata, secret), geteuid() == 0);
}

static int collect(void *userdata, const char *name)
{
	return strings_append(userdata, name);
}

static int refuse_each(void *userdata, const char *name)
{
	return -ECANCELED;
}

static void directories_are_listed_in_order_and_bounded(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *data = below(fixture, "/data"), *none = below(fixture, "/none"),
			    *empty = below(fixture, "/data/inner");
	_cleanup_(strings_freep) char **names = NULL;
	void *userdata = fixture->functions.userdata;

	assert_int_equal(fixture->functions.list(userdata, data, 3, collect, &names), 0);
	assert_int_equal(strings_count(names), 3);
	assert_string_equal(names[0], "file");
	assert_string_equal(names[1], "inner");
	assert_string_equal(names[2], "secret");
	assert_int_equal(fixture->functions.list(userdata, data, 2, collect, &names), -E2BIG);
	assert_int_equal(fixture->functions.list(userdata, none, 2, collect, &names), -ENOENT);
	assert_int_equal(fixture->functions.list(userdata, data, 9, refuse_each, NULL), -ECANCELED);
	assert_int_equal(fixture->functions.list(userdata, empty, 9, refuse_each, NULL), 0);
}

#define VIEW_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIEW_TEST(plain_paths_are_canonical),
		VIEW_TEST(the_root_is_itself),
		VIEW_TEST(what_is_not_there_says_so),
		VIEW_TEST(a_foreign_link_is_not_followed),
		VIEW_TEST(a_link_at_the_top_of_the_home_is_followed),
		VIEW_TEST(a_circle_of_links_ends),
		VIEW_TEST(a_link_of_root_is_followed),
		VIEW_TEST(in_a_session_of_root_its_own_links_are_not_trusted),
		VIEW_TEST(magic_links_are_never_followed),
		VIEW_TEST(the_descriptor_outlives_a_swap),
		VIEW_TEST(links_are_read_not_followed),
		VIEW_TEST(reading_is_asked_of_the_kernel),
		VIEW_TEST(directories_are_listed_in_order_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
