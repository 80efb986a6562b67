/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>

#include "service/session/git-places.h"
#include "service/session/view.h"

/* ROOT/here is the workspace, ROOT/there/.git/worktrees/here what its .git names. */
typedef struct Fixture {
	char root[64];
	char *workspace, *directory;
	View view;
	PlanView functions;
} Fixture;

static int setup(void **state)
{
	static const char *const directories[] = {
		"here", "other", "there", "there/.git", "there/.git/worktrees", "there/.git/worktrees/here"
	};
	Fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/git-places-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
		_cleanup_free_ char *path = NULL;

		assert_true(asprintf(&path, "%s/%s", fixture->root, directories[i]) > 0);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	assert_true(asprintf(&fixture->workspace, "%s/here", fixture->root) > 0);
	assert_true(asprintf(&fixture->directory, "%s/there/.git/worktrees/here", fixture->root) > 0);
	assert_int_equal(view_init(&fixture->view, 1000, NULL), 0);
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

	(void)nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	view_done(&fixture->view);
	free(fixture->workspace);
	free(fixture->directory);
	free(fixture);
	return 0;
}

static void write_gitdir(const Fixture *fixture, const char *format)
{
	_cleanup_free_ char *path = NULL;
	FILE *f;

	assert_true(asprintf(&path, "%s/gitdir", fixture->directory) > 0);
	f = fopen(path, "we");
	assert_non_null(f);
	(void)fprintf(f, format, fixture->root);
	assert_int_equal(fclose(f), 0);
}

static bool knows(const Fixture *fixture, const char *directory, const char *common, const char *worktree)
{
	_cleanup_(plan_node_done) PlanNode workspace = PLAN_NODE_INIT;
	GitPlaces places = GIT_PLACES_INIT;
	const PlanView *view = &fixture->functions;
	bool known;

	assert_int_equal(view->resolve(view->userdata, fixture->workspace, &workspace), 0);
	assert_int_equal(view->resolve(view->userdata, directory, &places.directory), 0);
	assert_int_equal(view->resolve(view->userdata, common, &places.common), 0);
	places.worktree = (char *)worktree;
	known = git_places_point_back(view, &places, &workspace);
	plan_node_done(&places.directory);
	plan_node_done(&places.common);
	return known;
}

static bool linked_back(const Fixture *fixture, const char *directory, const char *common)
{
	return knows(fixture, directory, common, NULL);
}

/* Of a linked worktree, or, with core.worktree, of a submodule, which is its own common directory. */
static bool points_back(const Fixture *fixture, const char *worktree)
{
	_cleanup_free_ char *common = NULL;

	assert_true(asprintf(&common, "%s/there/.git", fixture->root) > 0);
	return knows(fixture, fixture->directory, worktree ? fixture->directory : common, worktree);
}

/* A directory that agents write knows the workspace, and its file commondir names somebody's repository. */
static void a_directory_outside_the_repository_does_not(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *common = NULL, *inner = NULL;

	assert_true(asprintf(&common, "%s/other", fixture->root) > 0);
	assert_true(asprintf(&inner, "%s/there/.git/worktrees", fixture->root) > 0);
	write_gitdir(fixture, "%s/here/.git\n");
	assert_false(linked_back(fixture, fixture->directory, common));
	assert_false(linked_back(fixture, fixture->directory, inner));
	assert_false(linked_back(fixture, fixture->directory, fixture->directory));

	/* core.worktree of the one directory says nothing about the other. */
	assert_false(knows(fixture, fixture->directory, common, fixture->workspace));
}

static void another_repository_does_not(void **state)
{
	assert_false(points_back(*state, NULL));
}

static void a_linked_worktree_does(void **state)
{
	const Fixture *fixture = *state;

	write_gitdir(fixture, "%s/here/.git\n");
	assert_true(points_back(fixture, NULL));
	write_gitdir(fixture, "../../../../here/.git%.0s\n");
	assert_true(points_back(fixture, NULL));
}

static void a_worktree_of_elsewhere_does_not(void **state)
{
	static const char *const wrong[] = { "%s/other/.git\n",    "%s/here/\n", "%s/here/.gitx\n",
					     "%s/here/sub/.git\n", "%s\n",       "%.0s\n" };
	const Fixture *fixture = *state;

	for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
		write_gitdir(fixture, wrong[i]);
		assert_false(points_back(fixture, NULL));
	}
}

static void a_submodule_does(void **state)
{
	const Fixture *fixture = *state;

	assert_true(points_back(fixture, "../../../../here"));
	assert_true(points_back(fixture, fixture->workspace));
	assert_false(points_back(fixture, "../../../../other"));
	assert_false(points_back(fixture, "../../../../nowhere"));
	assert_false(points_back(fixture, "../../../../here/.git"));
}

static void a_link_or_a_pipe_says_nothing(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *path = NULL, *real = NULL;
	FILE *f;

	assert_true(asprintf(&path, "%s/gitdir", fixture->directory) > 0);
	assert_true(asprintf(&real, "%s/other/gitdir", fixture->root) > 0);
	f = fopen(real, "we");
	assert_non_null(f);
	(void)fprintf(f, "%s/.git\n", fixture->workspace);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(symlink(real, path), 0);
	assert_false(points_back(fixture, NULL));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(points_back(fixture, NULL));
}

static void sharing_needs_bits_unless_the_umask_gives_them(void **state)
{
	static const struct {
		const char *value;
		mode_t mask;
		bool needs;
	} cases[] = {
		{ "group", 0022, true },     { "group", 0002, false }, { "group", 0007, false },
		{ "group", 0077, true },     { "true", 0022, true },   { "1", 0010, true },
		{ "all", 0002, false },      { "all", 0007, true },    { "World", 0022, true },
		{ "everybody", 0001, true }, { "2", 0000, false },     { "0660", 0022, true },
		{ "0640", 0022, false },     { "0640", 0040, true },   { "0600", 0077, false },
		{ "umask", 0077, false },    { "false", 0077, false }, { "0", 0077, false },
		{ "", 0077, false },         { "x", 0077, false },     { "0660x", 0077, false },
	};
	GitPlaces places = GIT_PLACES_INIT;
	GitIdentity git = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		git.shared = (char *)cases[i].value;
		places.directory.path = NULL;
		assert_false(git_needs_set_id(&places, &git, cases[i].mask));
		places.directory.path = (char *)"/x/.git";
		if (git_needs_set_id(&places, &git, cases[i].mask) != cases[i].needs)
			fail_msg("case %zu", i);
	}
}

#define PLACES_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACES_TEST(another_repository_does_not),
		PLACES_TEST(a_linked_worktree_does),
		PLACES_TEST(a_worktree_of_elsewhere_does_not),
		PLACES_TEST(a_submodule_does),
		cmocka_unit_test(sharing_needs_bits_unless_the_umask_gives_them),
		PLACES_TEST(a_link_or_a_pipe_says_nothing),
		PLACES_TEST(a_directory_outside_the_repository_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
