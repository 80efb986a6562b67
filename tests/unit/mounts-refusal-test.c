/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/plan-fixture.h"

/* What the plan refuses, and what it hides with a warning. Each starts from the machine of the fixture. */

static void expect_refusal(PlanFixture *fixture, const char *error, const char *part)
{
	int r = plan_fixture_make(fixture);

	assert_true(r < 0);
	assert_non_null(fixture->error);
	assert_string_equal(fixture->error, error);
	assert_non_null(fixture->problem);
	if (!strstr(fixture->problem, part))
		fail_msg("'%s' does not say '%s'", fixture->problem, part);
	assert_null(strchr(fixture->problem, '\n'));
	assert_null(fixture->plan.entries);
	plan_fixture_done(fixture);
}

static void expect_warning(PlanFixture *fixture, const char *part)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s", fixture->problem);
	if (!plan_fixture_warns(fixture, part))
		fail_msg("no warning says '%s'", part);
}

static void start(PlanFixture *fixture, const char *agent, const FakeNode *more)
{
	plan_fixture_init(fixture, "user", agent);
	if (more)
		plan_fixture_add(fixture, more);
}

static void set_workspace(PlanFixture *fixture, const char *path)
{
	config_done(&fixture->request.config);
	free(fixture->request.cwd);
	fixture->request.cwd = strdup(plan_fixture_path(fixture, path));
}

static void test_procfs(void **state)
{
	PlanFixture fixture;

	start(&fixture, "claude", NULL);
	plan_fixture_configure(&fixture, CONFIG_PROCFS, "private");
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(plan_fixture_entry(&fixture, "/proc")->kind, ENTRY_PROC);
	fixture.facts.private_proc = false;
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "procfs = auto");

	start(&fixture, "claude", NULL);
	plan_fixture_configure(&fixture, CONFIG_PROCFS, "outer");
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(plan_fixture_entry(&fixture, "/proc")->kind, ENTRY_BIND);
	assert_int_equal(plan_fixture_entry(&fixture, "/proc")->mode, ENTRY_RO);
	assert_false(fixture.plan.private_proc);
	plan_fixture_done(&fixture);
}

static void test_terminal(void **state)
{
	static const char *const bad[] = { "/dev/tty1", "/dev/pts/", "/dev/pts/ptmx", "/dev/pts/../sda",
					   "/dev/pts/99" };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		start(&fixture, "claude", NULL);
		fixture.facts.terminal_path = bad[i];
		expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "terminal");
	}
}

static void test_agent_missing(void **state)
{
	static const FakeNode gone[] = { { "~/.local/bin/claude", 0 }, { 0 } };
	static const FakeNode ours[] = {
		{ "~/.local/bin/claude", S_IFLNK | 0777, 1000, "/usr/local/bin/claude" }, { 0 }
	};
	static const FakeNode no_program[] = { { "~/.local/share/claude/versions/2.0", S_IFREG | 0644, 1000 },
					       { 0 } };
	static const FakeNode loop[] = { { "~/.local/bin/claude", S_IFLNK | 0777, 1000, "claude" }, { 0 } };
	static const FakeNode in_bin[] = { { "~/.local/bin/claude", S_IFLNK | 0777, 1000,
					     "/usr/local/bin/other" },
					   { "/usr/local/bin/other", S_IFREG | 0755 },
					   { 0 } };
	static const FakeNode *const all[] = { gone, ours, no_program, loop, in_bin };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		start(&fixture, "claude", all[i]);
		expect_refusal(&fixture, CS_ERROR_AGENT_MISSING, "claude-sandbox install claude");
	}
	start(&fixture, "codex", NULL);
	expect_refusal(&fixture, CS_ERROR_AGENT_MISSING, "claude-sandbox install codex");

	/* One that is not root's in the place of the installed ones is passed over. */
	static const FakeNode planted[] = {
		{ "/usr/libexec/claude-sandbox/agents/claude/claude", S_IFREG | 0755, 1000 }, { 0 }
	};
	start(&fixture, "claude", planted);
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_string_equal(fixture.plan.program, "/home/user/.local/bin/claude");
	assert_non_null(plan_fixture_entry(&fixture, "/home/user/.local/share/claude/versions/2.0"));
	plan_fixture_done(&fixture);
}

static void test_agent_writable(void **state)
{
	static const FakeNode in_cache[] = { { "~/.local/bin/claude", S_IFLNK | 0777, 1000,
					       "~/.cache/claude" },
					     { "~/.cache/claude", S_IFREG | 0755, 1000 },
					     { 0 } };
	static const FakeNode in_workspace[] = { { "~/.local/bin/claude", S_IFLNK | 0777, 1000,
						   "~/src/project/c" },
						 { "~/src/project/c", S_IFREG | 0755, 1000 },
						 { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", in_cache);
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "agents may write");
	start(&fixture, "claude", in_workspace);
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "agents may write");
	start(&fixture, "claude", NULL);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~");
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "agents may write");
}

static void test_workspace(void **state)
{
	static const FakeNode links[] = { { "/srv/link", S_IFLNK | 0777, 1000, "/home/user/src/project" },
					  { "~/.ssh", S_IFLNK | 0777, 1000, "/srv/keys" },
					  { "/srv/keys/more", S_IFDIR | 0700, 1000 },
					  { "/srv/file", S_IFREG | 0644, 1000 },
					  { 0 } };
	static const struct {
		const char *cwd, *part;
	} bad[] = {
		{ "/", "whole file system" },
		{ "~", "home directory" },
		{ "/home", "home directories" },
		{ "~/.ssh", "kept from agents" },
		{ "/srv/link", "link" },
		{ "/srv", "kept from agents" },
		{ "/srv/keys/more", "kept from agents" },
		{ "/srv/none", "No such file" },
		{ "/srv/file", "no directory" },
		{ "/etc/ssl", "system directory" },
	};
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		start(&fixture, "claude", links);
		set_workspace(&fixture, bad[i].cwd);
		expect_refusal(&fixture, CS_ERROR_UNSAFE_WORKSPACE, bad[i].part);
	}
	start(&fixture, "claude", NULL);
	set_workspace(&fixture, "relative");
	expect_refusal(&fixture, CS_ERROR_UNSAFE_WORKSPACE, "not known");

	start(&fixture, "claude", NULL);
	free(fixture.request.cwd);
	fixture.request.cwd = strdup("/srv");
	expect_warning(&fixture, "outside of the workspace");
	assert_string_equal(fixture.plan.cwd, "/home/user/src/project");
	plan_fixture_done(&fixture);
}

static void test_homes(void **state)
{
	static const FakeNode linked[] = { { "/home/user", S_IFLNK | 0777, 0, "/srv/user" },
					   { "/srv/user", S_IFDIR | 0755, 1000 },
					   { "/srv/user/.local/bin/claude", S_IFREG | 0755, 1000 },
					   { "/srv/user/src/project", S_IFDIR | 0755, 1000 },
					   { "/srv/other", S_IFDIR | 0755, 1000 },
					   { 0 } };
	static const char *const bad[] = { "/",        "/usr",  "/etc/skel",  "/var",
					   "relative", "/none", "/etc/shadow" };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		static const FakeNode more[] = { { "/etc/skel", S_IFDIR | 0755 },
						 { "/var/lib", S_IFDIR | 0755 },
						 { 0 } };

		start(&fixture, "claude", more);
		free(fixture.request.home);
		fixture.request.home = strdup(bad[i]);
		expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "the account's home directory");
	}

	/* A second home by the environment is hidden as well; the variable inside is the account's. */
	start(&fixture, "shell", linked);
	strings_free(fixture.request.environment);
	fixture.request.environment = NULL;
	plan_fixture_setenv(&fixture, "HOME=/srv/other");
	plan_fixture_setenv(&fixture, "HOME=/usr");
	set_workspace(&fixture, "/home/user/src/project");
	fixture.facts.git_directory = fixture.facts.git_common_directory = NULL;
	fixture.fake.home = "/srv/user";
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(plan_fixture_entry(&fixture, "/srv/other")->kind, ENTRY_TMPFS);
	assert_int_equal(plan_fixture_entry(&fixture, "/srv/user")->kind, ENTRY_TMPFS);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user")->kind, ENTRY_LINK);
	assert_string_equal(plan_fixture_entry(&fixture, "/home/user")->data, "/srv/user");
	plan_fixture_done(&fixture);

	start(&fixture, "claude", NULL);
	strings_free(fixture.request.environment);
	fixture.request.environment = NULL;
	plan_fixture_setenv(&fixture, "HOME=/usr");
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "unset HOME");
}

static void test_state(void **state)
{
	static const FakeNode odd[] = { { "~/.claude", S_IFREG | 0644, 1000 },
					{ "~/.cache", S_IFLNK | 0777, 1000, "/" },
					{ "~/.config/gh", S_IFLNK | 0777, 1000, "/srv" },
					{ "/srv/database/socket", 0 },
					{ 0 } };
	static const FakeNode linked_share[] = { { "~/.local/share/uv/tools", S_IFLNK | 0777, 0, "/srv" },
						 { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", odd);
	expect_warning(&fixture, "/home/user/.cache stays hidden: it leads to /");
	assert_true(
		plan_fixture_warns(&fixture, "/home/user/.config/gh stays hidden: the way there is a link"));
	assert_null(plan_fixture_entry(&fixture, "/home/user/.claude/skills"));
	assert_null(plan_fixture_entry(&fixture, "/home/user/.config/gh"));
	plan_fixture_done(&fixture);

	start(&fixture, "claude", linked_share);
	expect_warning(&fixture, "/home/user/.local/share/uv stays hidden: tools in it is a link");
	assert_null(plan_fixture_entry(&fixture, "/home/user/.local/share/uv"));
	plan_fixture_done(&fixture);
}

static void test_git_directories(void **state)
{
	static const FakeNode more[] = { { "/srv/foreign", S_IFDIR | 0755, 1001 },
					 { "~/.config/repo", S_IFDIR | 0755, 1000 },
					 { "/srv/file", S_IFREG | 0644, 1000 },
					 { "/usr/own", S_IFDIR | 0755, 1000 },
					 { 0 } };
	static const struct {
		const char *path, *part;
	} bad[] = {
		{ "/srv/foreign", "another user" },   { "/home/user/.config/repo", "nothing is shown" },
		{ "/srv/file", "no directory" },      { "/usr/own", "nothing is shown" },
		{ "/home/user", "nothing is shown" },
	};
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		size_t n;

		start(&fixture, "claude", more);
		fixture.facts.git_directory = fixture.facts.git_common_directory = NULL;
		assert_int_equal(plan_fixture_make(&fixture), 0);
		n = fixture.plan.n_entries;
		fixture.facts.git_common_directory = plan_fixture_node(&fixture, bad[i].path);
		expect_warning(&fixture, bad[i].part);
		assert_int_equal(fixture.plan.n_entries, n);
		plan_fixture_done(&fixture);
	}
}

static void test_temp_root(void **state)
{
	static const FakeNode more[] = { { "/var/tmp/claude-agent/1000/foreign", S_IFDIR | 0700, 1001 },
					 { "/var/tmp/claude-agent/1000/link", S_IFLNK | 0777, 0, "/srv" },
					 { "/var/tmp/elsewhere", S_IFDIR | 0700, 1000 },
					 { 0 } };
	static const char *const bad[] = { "/var/tmp/claude-agent/1000/foreign",
					   "/var/tmp/claude-agent/1000/link",
					   "/var/tmp/claude-agent/1000/none", "/var/tmp/elsewhere",
					   "/var/tmp/claude-agent" };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		start(&fixture, "claude", more);
		fixture.facts.temp_root = bad[i];
		expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "temporary directory");
	}
}

static void test_allow_write(void **state)
{
	static const FakeNode more[] = { { "/dev/sda", S_IFBLK | 0660 },
					 { "/srv/device", S_IFBLK | 0660 },
					 { "/srv/link", S_IFLNK | 0777, 1000, "/srv" },
					 { "/run/claude-sandbox/users", S_IFDIR | 0755 },
					 { 0 } };
	static const char *const refused[] = { "/",
					       "/dev/sda",
					       "/proc/self",
					       "/usr",
					       "/run",
					       "/etc",
					       "/run/claude-sandbox/users",
					       "/var/tmp/claude-agent/1000/abcdefghijklm" };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
		start(&fixture, "claude", more);
		plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, refused[i]);
		expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "/etc/claude-sandbox.conf:7: allow-write");
	}

	start(&fixture, "claude", more);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/srv/link");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/srv/device");
	expect_warning(&fixture, "allow-write /srv/link stays as it is: the way there is a link");
	assert_true(plan_fixture_warns(&fixture, "allow-write /srv/device stays as it is: it is a device"));
	plan_fixture_done(&fixture);
}

static void test_too_many(void **state)
{
	FakeNode more[PLAN_MOUNTS_MAX + 1] = { 0 };
	PlanFixture fixture;
	char names[PLAN_MOUNTS_MAX][32];

	for (size_t i = 0; i < PLAN_MOUNTS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "/srv/many/%zu", i);
		more[i] = (FakeNode){ names[i], S_IFDIR | 0755 };
	}
	start(&fixture, "claude", more);
	for (size_t i = 0; i < PLAN_MOUNTS_MAX; i++)
		plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, names[i]);
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "more than 150 mounts");
}

static void test_resolver(void **state)
{
	static const FakeNode dangling[] = {
		{ "/etc/resolv.conf", S_IFLNK | 0777, 0, "/run/none/resolv.conf" }, { 0 }
	};
	static const FakeNode outside[] = { { "/etc/resolv.conf", S_IFLNK | 0777, 0, "/run/../srv/none" },
					    { 0 } };
	static const FakeNode none[] = { { "/etc/resolv.conf", 0 }, { 0 } };
	static const FakeNode not_installed[] = { { "/etc/claude-gitconfig", 0 }, { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", dangling);
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_int_equal(plan_fixture_entry(&fixture, "/run/none/resolv.conf")->kind, ENTRY_FILE);
	plan_fixture_done(&fixture);

	start(&fixture, "claude", outside);
	expect_warning(&fixture, "names are not resolved");
	plan_fixture_done(&fixture);
	start(&fixture, "claude", none);
	expect_warning(&fixture, "names are not resolved");
	plan_fixture_done(&fixture);

	start(&fixture, "claude", not_installed);
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "install the sandbox again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_procfs),        cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_agent_missing), cmocka_unit_test(test_agent_writable),
		cmocka_unit_test(test_workspace),     cmocka_unit_test(test_homes),
		cmocka_unit_test(test_state),         cmocka_unit_test(test_git_directories),
		cmocka_unit_test(test_temp_root),     cmocka_unit_test(test_allow_write),
		cmocka_unit_test(test_too_many),      cmocka_unit_test(test_resolver),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
