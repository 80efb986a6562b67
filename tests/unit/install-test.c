/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "service/plan/profile.h"
#include "shim/install-agent.h"
#include "shim/install-npm.h"
#include "shim/install-store.h"
#include "shim/install-tree.h"
#include "shim/install-use.h"

static void versions_are_strict(void **state)
{
	static const char *const good[] = { "1", "2.1.197", "0.171.0-alpha.2", "latest", "next-1", "10.x" };
	static const char *const bad[] = { "",    "-1",  "--global", ".1",       "1/2",  "1@2",
					   "1 2", "1\n", "a.b",      "~1",       "^1",   "../x",
					   "a:b", "a/b", "1+2",      "\xc3\xa9", "1;id", "npm:foo" };
	char longest[66] = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		if (!install_version_is_valid(good[i]))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		if (install_version_is_valid(bad[i]))
			fail_msg("%s", bad[i]);
	memset(longest, '1', 64);
	assert_true(install_version_is_valid(longest));
	longest[64] = '1';
	assert_false(install_version_is_valid(longest));
}

/* Whatever can be installed can be started. */
static void agents_are_the_profiles(void **state)
{
	for (size_t i = 0; install_agent_at(i); i++) {
		const InstallAgent *agent = install_agent_at(i);
		const Profile *profile = profile_find(agent->name);

		assert_non_null(profile);
		assert_null(profile->system_program);
		assert_ptr_equal(install_agent_find(agent->name), agent);
		assert_int_equal(!agent->native, !!agent->node);
	}
	assert_null(install_agent_find("shell"));
}

static void environment_is_chosen(void **state)
{
	static const char *const kept[] = { "https_proxy=x",
					    "HTTPS_PROXY=x",
					    "no_proxy=x",
					    "NODE_EXTRA_CA_CERTS=/c",
					    "npm_config_registry=https://r",
					    "NPM_CONFIG_REGISTRY=https://r" };
	static const char *const dropped[] = { "PATH=/x",
					       "HOME=/x",
					       "NODE_OPTIONS=--require=/x",
					       "LD_PRELOAD=/x",
					       "npm_config_ignore_scripts=false",
					       "npm_config_userconfig=/x",
					       "npm_config_prefix=/x",
					       "npm_config_git=/x",
					       "NODE_TLS_REJECT_UNAUTHORIZED=0",
					       "npm_config_strict_ssl=false",
					       "https_proxy",
					       "" };

	for (size_t i = 0; i < ELEMENTSOF(kept); i++)
		assert_true(install_npm_keeps(kept[i]));
	for (size_t i = 0; i < ELEMENTSOF(dropped); i++)
		assert_false(install_npm_keeps(dropped[i]));
}

static void last_line_is_the_one_that_helps(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{ "", "it says nothing" },
		{ "\n \n", "it says nothing" },
		{ "npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error errno ENOTFOUND\n"
		  "npm error network request to https://r/x failed\nnpm error network advice\n",
		  "network request to https://r/x failed" },
		{ "npm ERR! code E404\nnpm ERR! 404 Not Found\nnpm ERR! A complete log of\n",
		  "404 Not Found" },
		{ "npm error code X\n", "it says nothing" },
		{ "one\nit cannot be started: no such file\n", "it cannot be started: no such file" },
		{ "without a newline", "without a newline" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *line = install_npm_last_line(cases[i].text);

		assert_string_equal(line, cases[i].line);
	}
}

static void networks_are_told_apart(void **state)
{
	assert_true(install_npm_is_network("request to https://r/x failed, reason: getaddrinfo EAI_AGAIN r"));
	assert_true(install_npm_is_network("request to https://r/x failed, reason: self-signed certificate"));
	assert_true(
		install_npm_is_network("network request to http://r/x failed, reason: connect ECONNREFUSED"));
	assert_false(install_npm_is_network("404 Not Found - GET https://r/x"));
	assert_false(install_npm_is_network("sha512-A integrity checksum failed when using sha512"));
}

static void mounts_are_recognised(void **state)
{
	static const char text[] = "30 20 0:5 / / ro - ext4 /dev/vda ro\n"
				   "31 30 0:5 /usr/libexec/claude-sandbox/agents/.versions/claude-1.0/claude "
				   "/home/a ro - ext4 x ro\n";
	static const struct {
		const char *entry;
		bool found;
	} cases[] = { { "claude-1.0", true },
		      { "claude-1", false },
		      { "claude-1.0+1", false },
		      { "laude-1.0", false } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_fclose_ FILE *stream = fmemopen((void *)text, strlen(text), "r");

		assert_int_equal(install_mounts_name(stream, cases[i].entry), cases[i].found);
	}
}

typedef struct Place {
	char path[32];
	int fd;
} Place;

static int place_make(void **state)
{
	Place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->path, sizeof(place->path), "/tmp/install-test.XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->fd >= 0);
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	Place *place = *state;

	(void)close(place->fd);
	assert_int_equal(install_tree_remove(AT_FDCWD, place->path), 0);
	assert_int_equal(access(place->path, F_OK), -1);
	free(place);
	return 0;
}

static void make_file(int fd, const char *name, mode_t mode)
{
	_cleanup_close_ int file_fd = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(file_fd >= 0);
	assert_int_equal(fchmod(file_fd, mode), 0);
}

static mode_t mode_of(int fd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void trees_are_settled(void **state)
{
	const Place *place = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdirat(place->fd, "d", 0777), 0);
	assert_int_equal(fchmodat(place->fd, "d", 02777, 0), 0);
	make_file(place->fd, "d/run", 06777);
	make_file(place->fd, "d/read", 0666);
	assert_int_equal(fchownat(place->fd, "d/read", 7, 7, 0), 0);
	assert_int_equal(symlinkat("../d/run", place->fd, "d/inside"), 0);
	assert_int_equal(install_tree_settle(place->fd, NULL), 0);
	assert_int_equal(mode_of(place->fd, "d"), 0755);
	assert_int_equal(mode_of(place->fd, "d/run"), 0755);
	assert_int_equal(mode_of(place->fd, "d/read"), 0644);
	assert_int_equal(mode_of(place->fd, "."), 0755);
}

static void odd_things_are_refused(void **state)
{
	static const char *const links[] = { "/etc/passwd", "../x", "d/../../x",
					     "nowhere",     "odd",  "hop/../../x" };
	const Place *place = *state;
	_cleanup_free_ char *problem = NULL;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdirat(place->fd, "d", 0755), 0);
	assert_int_equal(mkdirat(place->fd, "d/e", 0755), 0);
	assert_int_equal(symlinkat("..", place->fd, "d/hop"), 0);
	assert_int_equal(install_tree_settle(place->fd, NULL), 0);
	for (size_t i = 0; i < ELEMENTSOF(links); i++) {
		assert_int_equal(symlinkat(links[i], place->fd, "odd"), 0);
		assert_int_equal(install_tree_settle(place->fd, &problem), -EBADMSG);
		assert_non_null(strstr(problem, "odd"));
		assert_int_equal(unlinkat(place->fd, "odd", 0), 0);
	}
	assert_int_equal(mkfifoat(place->fd, "d/fifo", 0644), 0);
	assert_int_equal(install_tree_settle(place->fd, &problem), -EBADMSG);
	assert_non_null(strstr(problem, "d/fifo"));
	assert_int_equal(unlinkat(place->fd, "d/fifo", 0), 0);
	make_file(place->fd, "one", 0644);
	assert_int_equal(linkat(place->fd, "one", place->fd, "two", 0), 0);
	assert_int_equal(install_tree_settle(place->fd, &problem), -EBADMSG);
	assert_non_null(strstr(problem, "second name"));
}

static void deep_trees_are_removed(void **state)
{
	const Place *place = *state;
	_cleanup_free_ char *problem = NULL;
	int fd = dup(place->fd);

	for (unsigned i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
	if (geteuid() == 0)
		assert_int_equal(install_tree_settle(place->fd, &problem), -EBADMSG);
	assert_int_equal(install_tree_remove(place->fd, "d"), 0);
	assert_int_equal(faccessat(place->fd, "d", F_OK, 0), -1);
	assert_int_equal(install_tree_remove(place->fd, "d"), 0);
}

static void expect_version(const char *path, const char *version)
{
	_cleanup_free_ char *found = NULL;

	assert_int_equal(install_store_version(path, "pi", &found), 0);
	assert_string_equal(found, version);
}

static void publish(InstallStore *store, const char *version, const char *entry)
{
	_cleanup_free_ char *chosen = NULL;
	int staging_fd = install_store_stage(store, NULL);

	assert_true(staging_fd >= 0);
	assert_int_equal(mkdirat(staging_fd, "source", 0755), 0);
	assert_int_equal(install_store_choose(store, "pi", version, &chosen), 0);
	assert_string_equal(chosen, entry);
	assert_int_equal(install_store_publish(store, staging_fd, "source", "pi", chosen, NULL), 0);
	(void)close(staging_fd);
}

static void store_exchanges_versions(void **state)
{
	_cleanup_(install_store_done) InstallStore store = INSTALL_STORE_INIT;
	InstallStore second = INSTALL_STORE_INIT;
	_cleanup_free_ char *problem = NULL, *none = NULL;
	const Place *place = *state;

	if (geteuid() != 0)
		skip(); /* which versions sessions have is root's to know */
	assert_int_equal(install_store_open(place->path, &store, &problem), 0);
	assert_int_equal(install_store_open(place->path, &second, &problem), -EBUSY);
	assert_int_equal(install_store_version(place->path, "pi", &none), -ENOENT);

	publish(&store, "1.0", "pi-1.0");
	expect_version(place->path, "1.0");
	assert_int_equal(install_store_sweep(&store), 0);
	publish(&store, "1.0", "pi-1.0+1");
	expect_version(place->path, "1.0");
	assert_int_equal(faccessat(store.versions_fd, "pi-1.0", F_OK, 0), 0);
	assert_int_equal(install_store_sweep(&store), 0);
	assert_int_equal(faccessat(store.versions_fd, "pi-1.0", F_OK, 0), -1);
	assert_int_equal(faccessat(store.fd, INSTALL_STAGING, F_OK, 0), -1);

	/* One that somebody put there by hand. */
	assert_int_equal(install_store_withdraw(&store, "pi"), 0);
	assert_int_equal(install_store_withdraw(&store, "pi"), -ENOENT);
	assert_int_equal(mkdirat(store.fd, "pi", 0755), 0);
	make_file(store.fd, "pi/pi", 0755);
	assert_int_equal(install_store_version(place->path, "pi", &none), -EBADMSG);
	publish(&store, "2.0", "pi-2.0");
	expect_version(place->path, "2.0");
	assert_int_equal(install_store_sweep(&store), 0);
	assert_int_equal(faccessat(store.fd, "pi/pi", F_OK, 0), -1);
}

static void store_is_ones_own(void **state)
{
	InstallStore store = INSTALL_STORE_INIT;
	_cleanup_free_ char *problem = NULL;
	const Place *place = *state;

	assert_int_equal(fchmod(place->fd, 0775), 0);
	assert_int_equal(install_store_open(place->path, &store, &problem), -EPERM);
	assert_int_equal(fchmod(place->fd, 0755), 0);
	assert_int_equal(symlinkat("/tmp", place->fd, ".versions"), 0);
	assert_true(install_store_open(place->path, &store, &problem) < 0);
}

static void places_of_npm_are_roots(void **state)
{
	_cleanup_free_ char *file = NULL;
	const Place *place = *state;

	assert_int_equal(install_npm_check_place("/bin/sh"), 0);
	assert_int_equal(install_npm_check_place("/bin/there-is-none"), -ENOENT);
	assert_true(install_npm_check_place("/bin") < 0);
	/* /tmp can be written by everybody. */
	make_file(place->fd, "npm", 0755);
	assert_true(asprintf(&file, "%s/npm", place->path) > 0);
	assert_int_equal(install_npm_check_place(file), -EPERM);
}

#define with_place(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_strict),
		cmocka_unit_test(agents_are_the_profiles),
		cmocka_unit_test(environment_is_chosen),
		cmocka_unit_test(last_line_is_the_one_that_helps),
		cmocka_unit_test(networks_are_told_apart),
		cmocka_unit_test(mounts_are_recognised),
		with_place(trees_are_settled),
		with_place(odd_things_are_refused),
		with_place(deep_trees_are_removed),
		with_place(store_exchanges_versions),
		with_place(store_is_ones_own),
		with_place(places_of_npm_are_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
