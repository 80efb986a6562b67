/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

/* Links, places that lie elsewhere than usual, and what earlier sessions may have left. */

static void start(PlanFixture *fixture, const char *agent, const FakeNode *more)
{
	plan_fixture_init(fixture, "user", agent);
	if (more)
		plan_fixture_add(fixture, more);
}

static void make(PlanFixture *fixture)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s", fixture->problem);
}

static void expect_refusal(PlanFixture *fixture, const char *error, const char *part)
{
	assert_true(plan_fixture_make(fixture) < 0);
	assert_string_equal(fixture->error, error);
	if (!strstr(fixture->problem, part))
		fail_msg("'%s' does not say '%s'", fixture->problem, part);
	plan_fixture_done(fixture);
}

static void set_workspace(PlanFixture *fixture, const char *path)
{
	config_done(&fixture->request.config);
	free(fixture->request.cwd);
	fixture->request.cwd = strdup(plan_fixture_path(fixture, path));
	fixture->facts.git_directory = fixture->facts.git_common_directory = NULL;
}

/* What decides at path, as bwrap will have done it. */
static const Entry *seen(const PlanFixture *fixture, const char *path)
{
	return plan_covering(&fixture->plan, path);
}

static const FakeNode repository[] = {
	{ "~/.claude", S_IFLNK | 0777, 1000, "dotfiles/claude" },
	{ "~/dotfiles/claude/local", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/claude/settings.json", S_IFREG | 0644, 1000 },
	{ "~/dotfiles/claude/commands", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/claude/skills", S_IFLNK | 0777, 1000, "../skills" },
	{ "~/dotfiles/skills", S_IFDIR | 0755, 1000 },
	{ "~/.ssh", S_IFLNK | 0777, 1000, "dotfiles/ssh" },
	{ "~/dotfiles/ssh/id", S_IFREG | 0600, 1000 },
	{ "~/dotfiles/vim", S_IFDIR | 0755, 1000 },
	{ 0 },
};

#define PROJECT "/home/user/.local/state/claude-sandbox/projects/abcdefghijklm/.claude"

static const Entry *entry_at(const PlanFixture *fixture, const char *path)
{
	const Entry *entry = plan_fixture_entry(fixture, path);

	if (!entry)
		fail_msg("nothing is at %s", path);
	return entry;
}

/* What is of the account comes from where it lies, into the project's own directory; a link leads on. */
static void state_in_a_repository_of_dotfiles(void **state)
{
	PlanFixture fixture;

	start(&fixture, "claude", repository);
	make(&fixture);
	assert_string_equal(entry_at(&fixture, "/home/user/.claude")->source, PROJECT);
	assert_string_equal(entry_at(&fixture, "/home/user/.claude/commands")->source,
			    "/home/user/dotfiles/claude/commands");
	assert_true(plan_hides(&fixture.plan, "/home/user/dotfiles/claude/settings.json"));
	assert_true(plan_hides(&fixture.plan, "/home/user/dotfiles/ssh/id"));
	/* What an agent could have made once is not followed. */
	assert_null(plan_fixture_entry(&fixture, "/home/user/.claude/skills"));
	assert_true(plan_hides(&fixture.plan, "/home/user/dotfiles/skills"));
	assert_true(plan_fixture_warns(&fixture, "/home/user/.claude/skills leads to "
						 "/home/user/dotfiles/skills, which is hidden"));
	plan_fixture_done(&fixture);

	/* An administrator may say so. */
	start(&fixture, "claude", repository);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/dotfiles/skills");
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	assert_int_equal(seen(&fixture, "/home/user/dotfiles/skills")->mode, ENTRY_RW);
	plan_fixture_done(&fixture);
}

static void a_workspace_does_not_show_where_links_lead(void **state)
{
	static const char *const bad[] = { "~/dotfiles", "~/dotfiles/ssh", "~/dotfiles/claude/skills" };
	static const FakeNode git[] = { { "~/.ssh", S_IFLNK | 0777, 1000, "keys/ssh" },
					{ "~/keys", S_IFDIR | 0755, 1000 },
					{ "~/keys/ssh", S_IFDIR | 0700, 1000 },
					{ 0 } };
	PlanFixture fixture;

	for (size_t i = 0; i < 2; i++) {
		start(&fixture, "shell", repository);
		set_workspace(&fixture, bad[i]);
		expect_refusal(&fixture, CS_ERROR_UNSAFE_WORKSPACE, "leads there)");
	}
	start(&fixture, "shell", repository);
	set_workspace(&fixture, "~/dotfiles/vim");
	make(&fixture);
	assert_true(plan_hides(&fixture.plan, "/home/user/dotfiles/ssh/id"));
	plan_fixture_done(&fixture);

	/* Nor does what a .git file names. */
	start(&fixture, "shell", git);
	fixture.facts.git_common_directory = plan_fixture_node(&fixture, "/home/user/keys");
	fixture.facts.git_directory = NULL;
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, "/home/user/keys stays hidden: it lies where nothing is"));
	assert_true(plan_hides(&fixture.plan, "/home/user/keys/ssh"));
	plan_fixture_done(&fixture);
}

/* A shared directory that leads to where stores lie would show them under its own name. */
static void a_shared_directory_does_not_show_stores(void **state)
{
	static const FakeNode more[] = { { "~/.cache", S_IFLNK | 0777, 1000, "/data/all" },
					 { "~/.ssh", S_IFLNK | 0777, 1000, "/data/all/ssh" },
					 { "/data/all/ssh", S_IFDIR | 0700, 1000 },
					 { 0 } };
	PlanFixture fixture;

	start(&fixture, "shell", more);
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, "/home/user/.cache stays hidden: it leads to /data/all"));
	assert_true(plan_hides(&fixture.plan, "/data/all/ssh"));
	plan_fixture_done(&fixture);
}

static void read_only_stores(void **state)
{
	static const FakeNode more[] = {
		{ "~/.claude", S_IFLNK | 0777, 1000, "/nix/store/abc-claude" },
		{ "/nix/store/abc-claude/commands", S_IFDIR | 0555, 0 },
		{ "/nix/store/abc-claude/skills", S_IFLNK | 0777, 0, "/nix/store/def-skills" },
		{ "/nix/store/def-skills", S_IFDIR | 0555, 0 },
		{ 0 },
	};
	PlanFixture fixture;

	start(&fixture, "claude", more);
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	assert_string_equal(entry_at(&fixture, "/home/user/.claude/commands")->source,
			    "/nix/store/abc-claude/commands");
	/* What "/" shows is seen through the link. */
	assert_false(plan_hides(&fixture.plan, "/nix/store/def-skills"));
	plan_fixture_done(&fixture);
}

static void links_that_lead_nowhere(void **state)
{
	static const FakeNode more[] = { { "~/.claude", S_IFLNK | 0777, 1000, "/data/gone" },
					 { "~/.cache", S_IFLNK | 0777, 1000, "/data/gone" },
					 { "~/.ssh", S_IFLNK | 0777, 1000, "/data/gone" },
					 { "~/.agents/skills/x", S_IFLNK | 0777, 1000, "/data/gone" },
					 { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	assert_string_equal(entry_at(&fixture, "/home/user/.claude")->source, PROJECT);
	assert_null(plan_fixture_entry(&fixture, "/home/user/.cache"));
	plan_fixture_done(&fixture);
}

/* Whatever its name: what is in ~/.local/share is hidden, but for what tools need, which has its mode. */
static void the_share_is_hidden_but_for_tools(void **state)
{
	static const FakeNode more[] = {
		{ "~/.local/share/mkcert/rootCA-key.pem", S_IFREG | 0600, 1000 },
		{ "~/.local/share/containers/secrets", S_IFREG | 0600, 1000 },
		{ "~/.local/share/mise/shims", S_IFDIR | 0755, 1000 },
		{ "~/.local/share/virtualenvs", S_IFDIR | 0755, 1000 },
		{ 0 },
	};
	static const char *const hidden[] = { "/home/user/.local/share/mkcert/rootCA-key.pem",
					      "/home/user/.local/share/containers/secrets",
					      "/home/user/.local/share/mise/shims",
					      "/home/user/.local/share/new",
					      "/home/user/.local/share/uv/tools/black",
					      "/home/user/.local/share/uv/credentials/pypi",
					      "/home/user/.local/share/pnpm/bin" };
	static const struct {
		const char *path;
		EntryMode mode;
	} shown[] = { { "/home/user/.local/share/uv/python", ENTRY_RW },
		      { "/home/user/.local/share/uv/tools/ruff/bin", ENTRY_RO },
		      { "/home/user/.local/share/pnpm/store/v3", ENTRY_RW },
		      { "/home/user/.local/share/virtualenvs/x", ENTRY_RW },
		      { "/home/user/.local/share/pipx/venvs", ENTRY_RO } };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	make(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
		if (!plan_hides(&fixture.plan, hidden[i]))
			fail_msg("%s", hidden[i]);
	for (size_t i = 0; i < ELEMENTSOF(shown); i++)
		if (seen(&fixture, shown[i].path)->kind != ENTRY_BIND ||
		    seen(&fixture, shown[i].path)->mode != shown[i].mode)
			fail_msg("%s", shown[i].path);
	plan_fixture_done(&fixture);
}

static void homes_beside_the_usual_place(void **state)
{
	static const FakeNode more[] = { { "/var/home/other/notes", S_IFREG | 0644, 1001 }, { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	make(&fixture);
	assert_true(plan_hides(&fixture.plan, "/var/home/other/notes"));
	assert_false(plan_hides(&fixture.plan, "/var/www"));
	plan_fixture_done(&fixture);
}

static void installers_behind_links(void **state)
{
	static const FakeNode linked[] = {
		{ "~/.local/bin/uv", S_IFLNK | 0777, 1000, "../share/pipx/venvs/uv/bin/uv" },
		{ "~/.local/share/pipx/venvs/uv/bin/uv", S_IFREG | 0755, 1000 },
		{ "~/.local/bin/uvx", S_IFLNK | 0777, 1000, "/home/user/.ssh/id_ed25519" },
		{ 0 },
	};
	static const FakeNode further[] = {
		{ "~/.local/bin/uv", S_IFLNK | 0777, 1000, "../share/uv/link" },
		{ "~/.local/share/uv/link", S_IFLNK | 0777, 1000, "/home/user/.ssh/program" },
		{ "~/.ssh/program", S_IFREG | 0755, 1000 },
		{ "~/.local/bin/uvx", 0 },
		{ 0 },
	};
	PlanFixture fixture;

	start(&fixture, "claude", linked);
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	make(&fixture);
	assert_string_equal(plan_fixture_entry(&fixture, "/home/user/.local/bin/uv")->source,
			    "/home/user/.local/share/pipx/venvs/uv/bin/uv");
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/.local/bin/uv")->mode, ENTRY_RO);
	assert_null(plan_fixture_entry(&fixture, "/home/user/.local/bin/uvx"));
	assert_true(plan_fixture_warns(&fixture, ".local/bin/uvx stays hidden"));
	plan_fixture_done(&fixture);

	start(&fixture, "claude", further);
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	make(&fixture);
	assert_null(plan_fixture_entry(&fixture, "/home/user/.local/bin/uv"));
	assert_null(plan_fixture_entry(&fixture, "/home/user/.local/bin/uvx"));
	assert_true(plan_fixture_warns(&fixture, ".local/bin/uv stays hidden"));
	plan_fixture_done(&fixture);
}

static void allow_write_reaches_through_masks(void **state)
{
	static const FakeNode more[] = { { "/run/engine/api.sock", S_IFSOCK | 0666 },
					 { "/run/engine/other.sock", S_IFSOCK | 0666 },
					 { "/run/events", S_IFIFO | 0666 },
					 { "~/.local/share/keyrings/one", S_IFREG | 0600, 1000 },
					 { "~/.local/share/keyrings/two", S_IFREG | 0600, 1000 },
					 { 0 } };
	static const char *const allowed[] = { "/run/engine/api.sock", "/run/events",
					       "~/.local/share/keyrings/one", "~/.local/share/fish",
					       "/srv/queue" };
	static const char *const hidden[] = { "/run/engine/other.sock",
					      "/run/engine",
					      "/home/user/.local/share/keyrings/two",
					      "/home/user/.local/share/keyrings",
					      "/home/user/.local/share/zsh",
					      "/srv/database/socket" };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
		plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, allowed[i]);
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 1);
	assert_true(plan_fixture_warns(&fixture, "gives agents keys or logins"));
	for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
		assert_int_equal(seen(&fixture, plan_fixture_path(&fixture, allowed[i]))->mode, ENTRY_RW);
	for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
		assert_true(plan_hides(&fixture.plan, hidden[i]));
	plan_fixture_done(&fixture);
}

/* No mount of its own for what is writable in any case; that it is named still keeps sockets uncovered. */
static void allow_write_in_the_workspace(void **state)
{
	PlanFixture fixture;
	size_t n;

	start(&fixture, "claude", NULL);
	make(&fixture);
	n = fixture.plan.n_entries;
	assert_int_equal(seen(&fixture, "/home/user/src/project/server.sock")->mode, ENTRY_MASKED);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/src/project/src");
	make(&fixture);
	assert_int_equal(fixture.plan.n_entries, n);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/src/project/server.sock");
	make(&fixture);
	assert_int_equal(fixture.plan.n_entries, n - 1);
	assert_int_equal(seen(&fixture, "/home/user/src/project/server.sock")->mode, ENTRY_RW);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	plan_fixture_done(&fixture);
}

/* Left by an agent where the configuration names a path: hidden, with a warning, and the launch goes on. */
static void leftovers_at_the_places_of_mounts(void **state)
{
	static const FakeNode more[] = {
		{ "/srv/shared", S_IFLNK | 0777, 1000, "/home/user/.ssh" },
		{ "~/src/project/out", S_IFLNK | 0777, 1000, "/home/user/.ssh" },
		{ "~/.cache/tool", S_IFLNK | 0777, 1000, "/home/user/.ssh" },
		{ "~/.cache/bus", S_IFLNK | 0777, 1000, "/home/user/.ssh" },
		{ "~/.config/gh", S_IFLNK | 0777, 1000, "/home/user/.ssh" },
		{ 0 },
	};
	PlanFixture fixture;

	start(&fixture, "claude", more);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/srv/shared");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/src/project/out");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/.cache/tool");
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 4);
	assert_true(plan_fixture_warns(&fixture, "allow-write /srv/shared stays as it is"));
	assert_true(plan_fixture_warns(&fixture, "allow-write /home/user/src/project/out stays as it is"));
	assert_true(plan_fixture_warns(&fixture, "allow-write /home/user/.cache/tool stays as it is"));
	assert_true(plan_fixture_warns(&fixture, "/home/user/.config/gh stays hidden"));
	assert_true(plan_hides(&fixture.plan, "/home/user/.ssh/id_ed25519"));
	for (size_t i = 0; i < fixture.plan.n_entries; i++)
		assert_true(!fixture.plan.entries[i].source ||
			    !strstr(fixture.plan.entries[i].source, ".ssh"));
	plan_fixture_done(&fixture);
}

static void an_environment_of_python_that_is_hidden(void **state)
{
	static const FakeNode more[] = { { "~/.venvs/one/bin", S_IFDIR | 0755, 1000 },
					 { "~/src/project/.venv/bin", S_IFDIR | 0755, 1000 },
					 { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	plan_fixture_setenv(&fixture, "VIRTUAL_ENV=/home/user/.venvs/one");
	make(&fixture);
	assert_null(strstr(plan_variable(&fixture.plan, "PATH")->value, ".venvs"));
	plan_fixture_done(&fixture);

	start(&fixture, "claude", more);
	plan_fixture_setenv(&fixture, "VIRTUAL_ENV=/home/user/src/project/.venv");
	make(&fixture);
	assert_non_null(strstr(plan_variable(&fixture.plan, "PATH")->value,
			       ":/home/user/.local/bin:/home/user/src/project/.venv/bin"));
	plan_fixture_done(&fixture);
}

/* The file system of the homes is mounted a second time, as btrfs' top level often is, and so is that of
 * /etc. */
static void homes_that_are_mounted_twice(void **state)
{
	static const FakeAlias aliases[] = { { "/tmp", "/volume/disk/tmp" },
					     { "/run", "/volume/disk/run" },
					     { "/home", "/volume/disk/@home" },
					     { "/etc", "/volume/disk/etc" },
					     { 0 } };
	static const FakeNode more[] = { { "/volume/disk/@home/user/src/project", S_IFDIR | 0755, 1000 },
					 { "/volume/disk/@home/user/.ssh/id", S_IFREG | 0600, 1000 },
					 { "/volume/disk/etc/shadow", S_IFREG | 0640 },
					 { 0 } };
	PlanFixture fixture;

	start(&fixture, "shell", more);
	fixture.fake.aliases = aliases;
	make(&fixture);
	assert_true(plan_hides(&fixture.plan, "/volume/disk/@home/user/.ssh/id"));
	assert_true(plan_hides(&fixture.plan, "/volume/disk/tmp"));
	assert_true(plan_hides(&fixture.plan, "/volume/disk/run"));
	assert_false(plan_hides(&fixture.plan, "/volume/disk"));
	plan_fixture_done(&fixture);

	start(&fixture, "shell", more);
	fixture.fake.aliases = aliases;
	set_workspace(&fixture, "/volume/disk/@home/user/src/project");
	make(&fixture);
	assert_int_equal(seen(&fixture, "/volume/disk/@home/user/src/project")->mode, ENTRY_RW);
	assert_true(plan_hides(&fixture.plan, "/volume/disk/@home/user/.ssh/id"));
	plan_fixture_done(&fixture);

	start(&fixture, "shell", more);
	fixture.fake.aliases = aliases;
	set_workspace(&fixture, "/volume/disk/@home/user");
	expect_refusal(&fixture, CS_ERROR_UNSAFE_WORKSPACE, "it is the home directory");

	plan_fixture_init(&fixture, "root", "shell");
	plan_fixture_add(&fixture, more);
	fixture.fake.aliases = aliases;
	make(&fixture);
	assert_int_equal(seen(&fixture, "/volume/disk/etc/shadow")->mode, ENTRY_MASKED);
	plan_fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_in_a_repository_of_dotfiles),
		cmocka_unit_test(a_workspace_does_not_show_where_links_lead),
		cmocka_unit_test(a_shared_directory_does_not_show_stores),
		cmocka_unit_test(read_only_stores),
		cmocka_unit_test(links_that_lead_nowhere),
		cmocka_unit_test(the_share_is_hidden_but_for_tools),
		cmocka_unit_test(homes_beside_the_usual_place),
		cmocka_unit_test(homes_that_are_mounted_twice),
		cmocka_unit_test(installers_behind_links),
		cmocka_unit_test(allow_write_reaches_through_masks),
		cmocka_unit_test(allow_write_in_the_workspace),
		cmocka_unit_test(leftovers_at_the_places_of_mounts),
		cmocka_unit_test(an_environment_of_python_that_is_hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
