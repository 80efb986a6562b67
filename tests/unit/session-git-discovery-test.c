/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/wait.h>

#include "service/session/git-places.h"
#include "service/session/view.h"

#define FINDS 4000u

/* ROOT/here is the workspace, with ROOT/own for its repository; ROOT/secret/.git is somebody's. */
typedef struct Fixture {
	char root[64];
	View view;
	PlanView functions;
	PlanNode workspace;
	GitPlaces places;
} Fixture;

static void at_root(const Fixture *fixture, const char *name, char path[static 256])
{
	(void)snprintf(path, 256, "%s/%s", fixture->root, name);
}

static void make_directory(const Fixture *fixture, const char *name)
{
	char path[256];

	at_root(fixture, name, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* format may name the root once. */
static void write_file(const Fixture *fixture, const char *name, const char *format)
{
	char path[256];
	FILE *f;

	at_root(fixture, name, path);
	f = fopen(path, "we");
	assert_non_null(f);
	(void)fprintf(f, format, fixture->root);
	assert_int_equal(fclose(f), 0);
}

static void make_repository(const Fixture *fixture, const char *directory, const char *config)
{
	static const char *const parts[] = { "", "/objects", "/refs" };
	char name[128];

	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", directory, parts[i]);
		make_directory(fixture, name);
	}
	(void)snprintf(name, sizeof(name), "%s/HEAD", directory);
	write_file(fixture, name, "ref: refs/heads/main\n");
	(void)snprintf(name, sizeof(name), "%s/config", directory);
	write_file(fixture, name, config);
}

static int setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));
	char path[256];

	assert_non_null(fixture);
	fixture->workspace = PLAN_NODE_INIT;
	fixture->places = GIT_PLACES_INIT;
	(void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/git-discovery-test.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	make_directory(fixture, "here");
	make_directory(fixture, "secret");
	make_repository(fixture, "own", "[core]\n\tworktree = %s/here\n");
	make_repository(fixture, "secret/.git", "[core]\n\tbare = false\n");
	/* Not root's: its sessions follow fewer links. */
	assert_int_equal(view_init(&fixture->view, 1000, NULL), 0);
	fixture->functions = view_functions(&fixture->view);
	at_root(fixture, "here", path);
	assert_int_equal(fixture->functions.resolve(&fixture->view, path, &fixture->workspace), 0);
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
	git_places_done(&fixture->places);
	plan_node_done(&fixture->workspace);
	view_done(&fixture->view);
	free(fixture);
	return 0;
}

static GitPlaces *find(Fixture *fixture)
{
	git_places_done(&fixture->places);
	assert_int_equal(
		git_places_find(&fixture->functions, &fixture->workspace, getuid(), &fixture->places), 0);
	return &fixture->places;
}

static bool points_back(Fixture *fixture)
{
	return git_places_point_back(&fixture->functions, &fixture->places, &fixture->workspace);
}

static bool is_at(const Fixture *fixture, const char *found, const char *name)
{
	char path[256];

	at_root(fixture, name, path);
	return found && streq(found, path);
}

static void a_directory_is_its_own(void **state)
{
	Fixture *fixture = *state;
	const GitPlaces *places;

	assert_null(find(fixture)->directory.path);
	make_repository(fixture, "here/.git", "[core]\n\tbare = false\n[user]\n\tname = \"A # B\"\n");
	places = find(fixture);
	assert_true(is_at(fixture, places->directory.path, "here/.git"));
	assert_true(is_at(fixture, places->top_level, "here"));
	assert_string_equal(places->head, "ref: refs/heads/main");
	assert_string_equal(places->settings, "[user]\n\tname = \"A # B\"\n");
	assert_false(places->foreign);
	git_places_done(&fixture->places);
	assert_int_equal(
		git_places_find(&fixture->functions, &fixture->workspace, getuid() + 1, &fixture->places), 0);
	assert_true(fixture->places.foreign);
}

static void a_file_names_one(void **state)
{
	static const char *const none[] = { "gitdir: %s/nowhere\n", "gitdir: %s\n", "%s/own\n",
					    "gitdir:%s/own\n",      "\n%.0s",       "%.0s" };
	Fixture *fixture = *state;

	write_file(fixture, "here/.git", "gitdir: %s/own\n");
	assert_true(is_at(fixture, find(fixture)->directory.path, "own"));
	assert_true(points_back(fixture));
	write_file(fixture, "here/.git", "gitdir: ../own\r\n%.0s");
	assert_true(is_at(fixture, find(fixture)->directory.path, "own"));
	write_file(fixture, "here/.git", "gitdir: %s/secret/.git\n");
	assert_true(is_at(fixture, find(fixture)->directory.path, "secret/.git"));
	assert_false(points_back(fixture));
	for (size_t i = 0; i < ELEMENTSOF(none); i++) {
		write_file(fixture, "here/.git", none[i]);
		assert_null(find(fixture)->directory.path);
	}
}

static void what_is_above_is_found(void **state)
{
	Fixture *fixture = *state;

	make_repository(fixture, ".git", "");
	assert_true(is_at(fixture, find(fixture)->directory.path, ".git"));
	assert_string_equal(fixture->places.top_level, fixture->root);
	/* A link to what is no repository is passed over, a file that names none is not. */
	char link[256];
	at_root(fixture, "here/.git", link);
	assert_int_equal(symlink("../secret", link), 0);
	assert_true(is_at(fixture, find(fixture)->directory.path, ".git"));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("../secret/.git", link), 0);
	assert_true(is_at(fixture, find(fixture)->directory.path, "secret/.git"));
	assert_int_equal(unlink(link), 0);
	write_file(fixture, "here/.git", "gitdir: %s/secret\n");
	assert_null(find(fixture)->directory.path);
}

static void a_bare_one_has_no_top_level(void **state)
{
	static const char *const parts[] = { "/objects", "/refs" };
	Fixture *fixture = *state;

	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "here%s", parts[i]);
		make_directory(fixture, name);
	}
	write_file(fixture, "here/HEAD", "ref: refs/heads/main\n");
	assert_true(is_at(fixture, find(fixture)->directory.path, "here"));
	assert_null(fixture->places.top_level);
}

/* Nobody opens what is named; nobody writes to the pipe; nobody reads the link's target. */
static void nothing_is_followed_or_waited_for(void **state)
{
	Fixture *fixture = *state;
	char path[256];

	make_repository(fixture, "here/.git", "[include]\n\tpath = pipe\n");
	at_root(fixture, "here/.git/pipe", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(10);
	assert_false(find(fixture)->unreadable);
	assert_string_equal(fixture->places.settings, "");

	at_root(fixture, "here/.git/config", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(find(fixture)->unreadable);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("../../own/config", path), 0);
	assert_true(find(fixture)->unreadable);
	assert_null(fixture->places.worktree);

	at_root(fixture, "here/.git/HEAD", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(find(fixture)->directory.path);
	(void)alarm(0);
}

static void a_worktree_says_only_in_its_own_file_where_it_is(void **state)
{
	Fixture *fixture = *state;

	make_directory(fixture, "own/worktrees");
	make_directory(fixture, "own/worktrees/here");
	write_file(fixture, "own/worktrees/here/HEAD", "ref: refs/heads/x\n");
	write_file(fixture, "own/worktrees/here/commondir", "../..\n");
	write_file(fixture, "own/worktrees/here/gitdir", "%s/here/.git\n");
	write_file(fixture, "own/config", "[core]\n\tworktree = /elsewhere\n[core]\nbare = true\n");
	write_file(fixture, "here/.git", "gitdir: %s/own/worktrees/here\n");
	assert_true(is_at(fixture, find(fixture)->common.path, "own"));
	assert_true(is_at(fixture, fixture->places.top_level, "here"));
	assert_true(points_back(fixture));
	write_file(fixture, "own/config", "[extensions]\n\tworktreeConfig = true\n");
	write_file(fixture, "own/worktrees/here/config.worktree", "[core]\n\tworktree = /elsewhere\n");
	assert_string_equal(find(fixture)->top_level, "/elsewhere");
}

/* Exchange two names without end. Return: the pid. */
static pid_t start_swapper(const Fixture *fixture, const char *one, const char *other)
{
	char a[256], b[256];
	pid_t pid;

	at_root(fixture, one, a);
	at_root(fixture, other, b);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(60);
		for (;;)
			if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0)
				_exit(1);
	}
	return pid;
}

static void end_swapper(pid_t pid)
{
	int status;

	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* What points back is the workspace's, in every moment, and what is held is what was examined. */
static void a_swapped_git_never_gets_anothers(void **state)
{
	static const char *const pairs[][2] = {
		{ "here/.git", "here/other" }, /* files that name one and the other */
		{ "p/a", "p/b" },              /* the directory on the way */
	};
	Fixture *fixture = *state;
	struct stat own, held;
	char path[256];

	at_root(fixture, "own", path);
	assert_int_equal(stat(path, &own), 0);
	for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
		unsigned right = 0, wrong = 0;
		pid_t pid;

		if (i == 0) {
			write_file(fixture, "here/.git", "gitdir: %s/own\n");
			write_file(fixture, "here/other", "gitdir: %s/secret/.git\n");
		} else {
			make_directory(fixture, "p");
			make_directory(fixture, "p/a");
			make_directory(fixture, "p/b");
			make_repository(fixture, "p/a/r", "[core]\n\tworktree = %s/here\n");
			make_repository(fixture, "p/b/r", "");
			at_root(fixture, "p/a/r", path);
			assert_int_equal(stat(path, &own), 0);
			write_file(fixture, "here/.git", "gitdir: %s/p/a/r\n");
		}
		pid = start_swapper(fixture, pairs[i][0], pairs[i][1]);
		for (unsigned n = 0; n < FINDS; n++) {
			if (!find(fixture)->directory.path)
				continue;
			if (!points_back(fixture)) {
				wrong++;
				continue;
			}
			right++;
			assert_int_equal(fstat(fixture->places.directory.fd, &held), 0);
			assert_int_equal(held.st_ino, own.st_ino);
			assert_int_equal(held.st_dev, own.st_dev);
		}
		end_swapper(pid);
		/* Otherwise nothing raced. */
		assert_true(right > 0 && wrong > 0);
	}
}

#define FOUND_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOUND_TEST(a_directory_is_its_own),
		FOUND_TEST(a_file_names_one),
		FOUND_TEST(what_is_above_is_found),
		FOUND_TEST(a_bare_one_has_no_top_level),
		FOUND_TEST(nothing_is_followed_or_waited_for),
		FOUND_TEST(a_worktree_says_only_in_its_own_file_where_it_is),
		FOUND_TEST(a_swapped_git_never_gets_anothers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
