/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

/* The agent's state in three kinds. */

#define PROJECT "/home/user/.local/state/claude-sandbox/projects/abcdefghijklm/.claude"

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

static const Entry *entry_at(const PlanFixture *fixture, const char *path)
{
	const Entry *entry = plan_fixture_entry(fixture, path);

	if (!entry)
		fail_msg("nothing is at %s", path);
	return entry;
}

/* Nothing of the host's state is seen but what a list names. */
static void state_in_three_kinds(void **state)
{
	static const FakeNode more[] = { { "~/.claude/daemon/dispatch", S_IFDIR | 0700, 1000 },
					 { "~/.claude/new-in-the-next-version", S_IFDIR | 0700, 1000 },
					 { "~/.claude/history.jsonl", S_IFREG | 0600, 1000 },
					 { "~/.claude/settings.json", S_IFREG | 0600, 1000 },
					 { 0 } };
	static const char *const hidden[] = { "~/.claude/daemon/dispatch",
					      "~/.claude/new-in-the-next-version",
					      "~/.claude/history.jsonl",
					      "~/.claude/settings.json",
					      "~/.claude/projects/-home-user-src-other",
					      "~/.claude/projects" };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	make(&fixture);
	assert_int_equal(plan_fixture_warnings(&fixture), 0);
	for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
		assert_true(plan_hides(&fixture.plan, plan_fixture_path(&fixture, hidden[i])));
	assert_non_null(starts_with(entry_at(&fixture, "/home/user/.claude")->reason, "project: "));
	/* What is in place stays there. */
	assert_string_equal(entry_at(&fixture, "/home/user/.claude/projects")->source, PROJECT "/projects");
	assert_false(plan_hides(&fixture.plan, "/home/user/.claude/projects/-home-user-src-project-src"));
	assert_false(plan_hides(&fixture.plan, "/home/user/.claude/skills"));
	assert_non_null(starts_with(entry_at(&fixture, "/home/user/.claude/skills")->reason, "account: "));
	plan_fixture_done(&fixture);

	/* The host's transcripts, and no more than that. */
	start(&fixture, "claude", more);
	plan_fixture_configure(&fixture, CONFIG_HISTORY, "all");
	make(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
		assert_int_equal(plan_hides(&fixture.plan, plan_fixture_path(&fixture, hidden[i])), i < 4);
	plan_fixture_done(&fixture);
}

/* Where the session has no place for it nothing is kept, and a login is still there. */
static void state_without_a_place(void **state)
{
	static const FakeNode more[] = { { "~/.claude/.credentials.json", S_IFREG | 0600, 1000 }, { 0 } };
	static const FakeNode foreign[] = { { "~/.local/state/claude-sandbox/projects/abcdefghijklm/.claude",
					      S_IFDIR | 0700, 1001 },
					    { 0 } };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	fixture.facts.project_state = NULL;
	make(&fixture);
	assert_int_equal(entry_at(&fixture, "/home/user/.claude")->kind, ENTRY_TMPFS);
	assert_int_equal(entry_at(&fixture, "/home/user/.claude/.credentials.json")->mode, ENTRY_RO);
	assert_int_equal(entry_at(&fixture, "/home/user/.claude/skills")->mode, ENTRY_RW);
	assert_null(plan_fixture_entry(&fixture, "/home/user/.claude/local"));
	plan_fixture_done(&fixture);

	/* Another one's, or one that a link leads to, is none. */
	start(&fixture, "claude", foreign);
	make(&fixture);
	assert_int_equal(entry_at(&fixture, "/home/user/.claude")->kind, ENTRY_TMPFS);
	plan_fixture_done(&fixture);
	start(&fixture, "claude", NULL);
	fixture.facts.project_state =
		"/home/user/./.local/state/claude-sandbox/projects/abcdefghijklm/.claude";
	make(&fixture);
	assert_int_equal(entry_at(&fixture, "/home/user/.claude")->kind, ENTRY_TMPFS);
	plan_fixture_done(&fixture);
}

/* Names deeper in the state: what they lie in is held in place, first. */
static void state_below_the_top(void **state)
{
	PlanFixture fixture;
	const Entry *way, *skills;

	start(&fixture, "pi", NULL);
	plan_fixture_install(&fixture, "pi");
	make(&fixture);
	way = entry_at(&fixture, "/home/user/.pi/agent");
	skills = entry_at(&fixture, "/home/user/.pi/agent/skills");
	assert_true(way < skills);
	assert_string_equal(way->source,
			    "/home/user/.local/state/claude-sandbox/projects/abcdefghijklm/.pi/agent");
	assert_string_equal(skills->source, "/home/user/.pi/agent/skills");
	plan_fixture_done(&fixture);

	/* Somebody has taken it away. */
	start(&fixture, "pi",
	      (const FakeNode[]){ { "~/.local/state/claude-sandbox/projects/abcdefghijklm/.pi/agent",
				    S_IFLNK | 0777, 1000, "/srv" },
				  { 0 } });
	plan_fixture_install(&fixture, "pi");
	expect_refusal(&fixture, CS_ERROR_PLAN_REFUSED, "was replaced just now");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_in_three_kinds),
		cmocka_unit_test(state_without_a_place),
		cmocka_unit_test(state_below_the_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
