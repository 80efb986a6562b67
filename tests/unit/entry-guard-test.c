/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/entry-guard.h"
#include "tests/unit/plan-fixture.h"

/* The workspace is ~/src/project of user 1000. */
#define PROJECT "/home/user/src/project"

static const FakeNode machine[] = {
	{ PROJECT "/a", S_IFDIR | 0755, 1000 },
	{ PROJECT "/a/bin", S_IFDIR | 0755, 1000 },
	{ PROJECT "/a/sbin", S_IFDIR | 0755, 1000 },
	{ PROJECT "/a/inner", S_IFDIR | 0755, 1000 },
	{ PROJECT "/a/socket", S_IFSOCK | 0777, 1000 },
	{ PROJECT "/file", S_IFREG | 0755, 1000 },
	{ PROJECT "/link", S_IFLNK | 0777, 1000, "a/bin" },
	{ PROJECT "/roots", S_IFDIR | 0755, 0 },
	{ PROJECT "/roots/pi", S_IFREG | 0755, 1000 },
	{ PROJECT "/roots/link", S_IFLNK | 0777, 0, "../a/bin" },
	{ "/opt/shims", S_IFLNK | 0777, 1000, PROJECT "/a/bin" },
	{ "/opt/own", S_IFLNK | 0777, 1000, "../usr/local/bin" },
	{ "/opt/loop", S_IFLNK | 0777, 1000, "loop" },
	{ "/opt/file", S_IFREG | 0755, 0 },
	{ "/opt/tools", S_IFDIR | 0755, 0 },
	{ "/opt/tools/claude", S_IFREG | 0644, 1000 },
	{ "/mnt/again", S_IFDIR | 0755, 1000 },
	{ "/mnt/again/a/bin", S_IFDIR | 0755, 1000 },
	{ "/home/user/bin", S_IFDIR | 0755, 1000 },
	{ "/home/user/.local/share/uv/bin", S_IFDIR | 0755, 1000 },
	{ "/home/user/.local/share/uv/tools/bin", S_IFDIR | 0755, 1000 },
	{ 0 },
};

static const FakeAlias aliases[] = {
	{ "/mnt/again", PROJECT },
	{ 0 },
};

static void start(PlanFixture *fixture, const char *path)
{
	plan_fixture_init(fixture, "user", "shell");
	plan_fixture_add(fixture, machine);
	plan_fixture_set_path(fixture, path);
}

static void make(PlanFixture *fixture)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s: %s", fixture->error, fixture->problem);
}

static size_t index_of(const PlanFixture *fixture, const char *destination)
{
	const Entry *entry = plan_fixture_entry(fixture, destination);

	if (!entry)
		fail_msg("no entry at %s", destination);
	return entry ? (size_t)(entry - fixture->plan.entries) : 0;
}

static size_t count(const PlanFixture *fixture, bool pins)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->plan.n_entries; i++)
		n += pins ? fixture->plan.entries[i].pin : fixture->plan.entries[i].placeholder;
	return n;
}

/* Every name in directory is covered with /dev/null, by an entry after which nothing else comes there. */
static void expect_covered(const PlanFixture *fixture, const char *directory)
{
	for (const char *const *name = entry_guard_names(); *name; name++) {
		_cleanup_free_ char *path = NULL;

		assert_true(asprintf(&path, "%s/%s", directory, *name) > 0);
		const Entry *entry = &fixture->plan.entries[index_of(fixture, path)];
		assert_int_equal(entry->kind, ENTRY_BIND);
		assert_int_equal(entry->mode, ENTRY_MASKED);
		assert_string_equal(entry->source, "/dev/null");
		assert_true(entry->placeholder && !entry->covers_listener && !entry->pin);
	}
}

static void expect_guarded(const char *path, const char *wanted)
{
	PlanFixture fixture;

	start(&fixture, path);
	fixture.fake.aliases = aliases;
	make(&fixture);
	const PlanVariable *last = &fixture.plan.variables[fixture.plan.n_variables - 1];
	assert_string_equal(last->name, "CLAUDE_SANDBOX_ENTRY_GUARD");
	if (!streq(last->value, wanted))
		fail_msg("PATH %s: '%s' is guarded, not '%s'", path, last->value, wanted);
	assert_int_equal(strings_count(fixture.plan.guarded) > 0, *wanted != '\0');
	for (size_t i = 0; fixture.plan.guarded && fixture.plan.guarded[i]; i++)
		expect_covered(&fixture, fixture.plan.guarded[i]);
	plan_fixture_done(&fixture);
}

static void expect_refused(const char *path, const char *part)
{
	PlanFixture fixture;

	start(&fixture, path);
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, CS_ERROR_UNSAFE_ENTRY_POINT);
	if (!strstr(fixture.problem, part))
		fail_msg("PATH %s: '%s' does not say '%s'", path, fixture.problem, part);
	assert_null(strchr(fixture.problem, '\n'));
	plan_fixture_done(&fixture);
}

static void test_which_directories(void **state)
{
	static const struct {
		const char *path, *guarded;
	} cases[] = {
		{ NULL, "" },
		{ "/usr/local/bin:" PROJECT, "" },
		{ "/usr/local/sbin:/usr/local/bin", "" },
		{ PROJECT ":/usr/local/bin", PROJECT },
		{ PROJECT "/a/bin", PROJECT "/a/bin" }, /* the sandbox's own is not on PATH at all */
		{ PROJECT "/a/bin:/usr/bin:" PROJECT "/a/sbin", PROJECT "/a/bin:" PROJECT "/a/sbin" },
		{ PROJECT "/a/bin:/usr/local/bin:" PROJECT "/a/sbin", PROJECT "/a/bin" },
		{ PROJECT "/a/bin:" PROJECT "//a/./bin/:" PROJECT "/a/bin", PROJECT "/a/bin" },
		{ PROJECT "/a/inner/../bin:/usr/local/bin", PROJECT "/a/bin" },
		/* by links that no agent can change, whoever's they are */
		{ "/opt/shims:/usr/local/bin", PROJECT "/a/bin" },
		{ PROJECT "/roots/link:/usr/local/bin", PROJECT "/a/bin" },
		{ "/opt/own:relative:" PROJECT, "" },
		{ "/opt/own/:" PROJECT, "" },
		{ "/usr/local/bin/.:" PROJECT, "" },
		{ "/opt/loop:/opt/file:/opt/none:/opt/none/bin:/usr/local/bin", "" },
		/* by another mount of the same */
		{ "/mnt/again/a/bin:/usr/local/bin", PROJECT "/a/bin" },
		{ "/mnt/again:/usr/local/bin", PROJECT },
		/* what agents do not write, and what they do in every session */
		{ "~/.local/bin:~/bin:~/none:/opt/tools:/tmp:/usr/local/bin", "" },
		{ "~/.local/share/uv/bin:/usr/local/bin", "/home/user/.local/share/uv/bin" },
		{ "~/.local/share/uv/tools/bin:~/.local/share/nvim/none:/usr/local/bin", "" },
		{ "~/src:~/src/project/../missing:/usr/local/bin", "" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		expect_guarded(cases[i].path, cases[i].guarded);
}

static void test_what_refuses(void **state)
{
	static const struct {
		const char *path, *part;
	} cases[] = {
		{ "", "an empty entry" },
		{ ":/usr/local/bin", "an empty entry" },
		{ "/usr/bin::/usr/local/bin", "an empty entry" },
		{ "/usr/bin:", "an empty entry" },
		{ "bin:/usr/local/bin", "'bin'" },
		{ ".:/usr/local/bin", "'.'" },
		{ "/proc/self/cwd/bin:/usr/local/bin", "through /proc" },
		{ "/opt/../proc/1/root:/usr/local/bin", "through /proc" },
		{ "../bin:/usr/local/bin", "'../bin'" },
		{ "./node_modules/.bin", "'./node_modules/.bin'" },
		{ "a\nb:/usr/local/bin", "'a\\x0ab'" },
		{ PROJECT "/missing:/usr/local/bin",
		  "does not exist, and agents could make it in " PROJECT ";" },
		{ PROJECT "/a/missing/bin:/usr/local/bin", "does not exist" },
		{ PROJECT "/missing/../a/bin:/usr/local/bin", "does not exist" },
		{ PROJECT "/file:/usr/local/bin", "is no directory" },
		{ PROJECT "/link:/usr/local/bin", "the link " PROJECT "/link" },
		{ PROJECT "/link/../sbin:/usr/local/bin", "the link " PROJECT "/link" },
		{ "~/.cache/missing:/usr/local/bin", "does not exist" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		expect_refused(cases[i].path, cases[i].part);
}

/* A pin comes right after what shows the directory, and everything mounted below it follows. */
static void test_pins(void **state)
{
	PlanFixture fixture;

	start(&fixture, PROJECT "/a/bin:" PROJECT "/a/sbin:" PROJECT ":/usr/local/bin");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/srv/missing");
	make(&fixture);
	assert_int_equal(count(&fixture, true), 3);
	assert_int_equal(count(&fixture, false), 15);
	size_t project = index_of(&fixture, PROJECT), a = index_of(&fixture, PROJECT "/a");
	assert_int_equal(a, project + 1);
	assert_true(fixture.plan.entries[a].pin);
	assert_int_equal(fixture.plan.entries[a].mode, ENTRY_RW);
	assert_string_equal(fixture.plan.entries[a].source, PROJECT "/a");
	assert_true(index_of(&fixture, PROJECT "/a/bin") > a && index_of(&fixture, PROJECT "/a/sbin") > a);
	/* What is mounted below follows. */
	assert_true(index_of(&fixture, PROJECT "/server.sock") > index_of(&fixture, PROJECT "/a/sbin"));
	assert_false(fixture.plan.entries[project].pin);
	/* The last of all. */
	for (size_t i = fixture.plan.n_entries - 15; i < fixture.plan.n_entries; i++)
		assert_true(fixture.plan.entries[i].placeholder);
	assert_false(plan_fixture_warns(&fixture, "no effect"));
	plan_fixture_done(&fixture);

	/* allow-write names what the workspace gives already: it has no bind of its own, and all is kept. */
	start(&fixture, PROJECT "/a/inner:/usr/local/bin");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, PROJECT "/a/inner");
	make(&fixture);
	assert_int_equal(count(&fixture, true), 2);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/a")->pin);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/a/inner")->pin);
	expect_covered(&fixture, PROJECT "/a/inner");
	plan_fixture_done(&fixture);

	/* By the second name the whole way is kept, too. */
	start(&fixture, "/mnt/again/a/bin");
	fixture.fake.aliases = aliases;
	make(&fixture);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/a")->pin);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/a/bin")->pin);
	plan_fixture_done(&fixture);

	/* What is stepped back over. */
	start(&fixture, PROJECT "/a/inner/../bin");
	make(&fixture);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/a/inner")->pin);
	plan_fixture_done(&fixture);
}

/* Above a socket that is covered, too. */
static void test_pins_above_sockets(void **state)
{
	PlanFixture fixture;

	start(&fixture, "/usr/local/bin");
	strings_append(&fixture.sockets, PROJECT "/a/socket");
	fixture.facts.sockets = (const char *const *)fixture.sockets;
	make(&fixture);
	assert_int_equal(index_of(&fixture, PROJECT "/a"), index_of(&fixture, PROJECT) + 1);
	assert_true(index_of(&fixture, PROJECT "/a/socket") > index_of(&fixture, PROJECT "/a"));
	assert_int_equal(plan_fixture_entry(&fixture, PROJECT "/a/socket")->mode, ENTRY_MASKED);
	/* Its program may remove it at any time: nothing ends for that. */
	assert_false(plan_fixture_entry(&fixture, PROJECT "/a")->pin);
	plan_fixture_done(&fixture);
}

/* Where the mode lets no agent make names, only what is there can be written; the directory stays in place.
 */
static void test_foreign_directory(void **state)
{
	PlanFixture fixture;

	start(&fixture, PROJECT "/roots:/usr/local/bin");
	make(&fixture);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/roots")->pin);
	assert_int_equal(count(&fixture, false), 1);
	assert_true(plan_fixture_entry(&fixture, PROJECT "/roots/pi")->placeholder);
	assert_int_equal(strings_count(fixture.plan.guarded), 1);
	plan_fixture_done(&fixture);

	/* Nothing can be made there, missing or not. */
	start(&fixture, PROJECT "/roots/missing:/usr/local/bin");
	make(&fixture);
	plan_fixture_done(&fixture);
}

static void test_writable_file(void **state)
{
	PlanFixture fixture;

	start(&fixture, "/opt/tools:/usr/local/bin");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/opt/tools/claude");
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, CS_ERROR_UNSAFE_ENTRY_POINT);
	assert_non_null(strstr(fixture.problem, "agents may write /opt/tools/claude"));
	plan_fixture_done(&fixture);
}

/* The agent's own program would be covered, and could not start. */
static void test_own_program(void **state)
{
	PlanFixture fixture;

	plan_fixture_init(&fixture, "user", "claude");
	plan_fixture_add(&fixture,
			 (const FakeNode[]){ { CS_AGENTS_DIR "/claude/claude", S_IFREG | 0755 }, { 0 } });
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/home/user/.local/bin");
	plan_fixture_set_path(&fixture, "/home/user/.local/bin:/usr/local/bin");
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, CS_ERROR_UNSAFE_ENTRY_POINT);
	assert_non_null(
		strstr(fixture.problem, "/home/user/.local/bin/claude is where this agent's program stands"));
	plan_fixture_done(&fixture);
}

static void test_bounds(void **state)
{
	char *path = NULL;
	size_t size;
	FILE *stream = open_memstream(&path, &size);
	PlanFixture fixture;

	for (unsigned i = 0; i < 1025; i++)
		fprintf(stream, "%s/opt/%u", i > 0 ? ":" : "", i);
	fclose(stream);
	expect_refused(path, "more than 1024 entries");
	free(path);

	FakeNode many[41] = { { 0 } };
	char *names[40];
	stream = open_memstream(&path, &size);
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		assert_true(asprintf(&names[i], PROJECT "/%zu", i) > 0);
		many[i] = (FakeNode){ names[i], S_IFDIR | 0755, 1000 };
		fprintf(stream, "%s%s", i > 0 ? ":" : "", names[i]);
	}
	fclose(stream);
	plan_fixture_init(&fixture, "user", "shell");
	plan_fixture_add(&fixture, many);
	plan_fixture_set_path(&fixture, path);
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, CS_ERROR_PLAN_REFUSED);
	assert_non_null(strstr(fixture.problem, "put /usr/local/bin before"));
	plan_fixture_done(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		free(names[i]);
	free(path);
}

/* The first PATH is the shell's; what the caller has of the variable is not looked at. */
static void test_hostile_environment(void **state)
{
	PlanFixture fixture;

	start(&fixture, PROJECT "/a/bin:/usr/local/bin");
	plan_fixture_setenv(&fixture, "PATH=/usr/local/bin");
	plan_fixture_setenv(&fixture, "CLAUDE_SANDBOX_ENTRY_GUARD=/evil");
	make(&fixture);
	const PlanVariable *last = &fixture.plan.variables[fixture.plan.n_variables - 1];
	assert_string_equal(last->name, "CLAUDE_SANDBOX_ENTRY_GUARD");
	assert_string_equal(last->value, PROJECT "/a/bin");
	plan_fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_directories),
		cmocka_unit_test(test_what_refuses),
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_foreign_directory),
		cmocka_unit_test(test_writable_file),
		cmocka_unit_test(test_pins_above_sockets),
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_hostile_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
