/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/plan-fixture.h"

/* Where agents are found, what comes with them, and what is none. */

#define USER 1000
#define LINK_(path, text)                        \
	{                                        \
		path, S_IFLNK | 0777, USER, text \
	}
#define PROGRAM_(path, text)                     \
	{                                        \
		path, S_IFREG | 0755, USER, text \
	}
#define NODE_SCRIPT "#!/usr/bin/env node\n"
#define CODEX_JS "~/.npm/lib/node_modules/@openai/codex/bin/codex.js"
#define NVM "~/.nvm/versions/node/v22.1.0"
#define PI_JS NVM "/lib/node_modules/@mariozechner/pi-coding-agent/dist/cli.js"

static void start(PlanFixture *fixture, const char *agent, const FakeNode *more)
{
	plan_fixture_init(fixture, "user", agent);
	plan_fixture_add(fixture, more);
}

static void expect_refusal(const char *agent, const FakeNode *more, const char *error, const char *part)
{
	PlanFixture fixture;

	start(&fixture, agent, more);
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, error);
	if (!strstr(fixture.problem, part))
		fail_msg("'%s' does not say '%s'", fixture.problem, part);
	plan_fixture_done(&fixture);
}

static void expect_read_only(PlanFixture *fixture, const char *path)
{
	const Entry *entry;

	path = plan_fixture_path(fixture, path);
	entry = plan_fixture_entry(fixture, path);
	if (!entry)
		fail_msg("nothing is bound at %s", path);
	assert_int_equal(entry->kind, ENTRY_BIND);
	assert_int_equal(entry->mode, ENTRY_RO);
	assert_string_equal(entry->source, path);
}

static void not_our_entry(void **state)
{
	static const FakeNode to_entry[] = { LINK_("~/.local/bin/pi", "/usr/local/bin/pi"),
					     { "/usr/local/bin/pi", S_IFLNK | 0777, 0,
					       "/usr/libexec/claude-sandbox/entry" },
					     { "/usr/libexec/claude-sandbox/entry", S_IFREG | 0755 },
					     { 0 } };
	static const FakeNode script[] = {
		PROGRAM_("~/.local/bin/pi", "#!/bin/sh\nexec /usr/local/bin/pi \"$@\"\n"), { 0 }
	};
	static const FakeNode loop[] = { LINK_("~/.local/bin/pi", "../bin/other"),
					 LINK_("~/.local/bin/other", "pi"),
					 { 0 } };
	static const FakeNode dangling[] = { LINK_("~/.local/bin/pi", "/opt/none"), { 0 } };
	static const FakeNode plain[] = { { "~/.local/bin/pi", S_IFREG | 0644, USER }, { 0 } };
	static const FakeNode directory[] = { { "~/.local/bin/pi", S_IFDIR | 0755, USER }, { 0 } };
	static const FakeNode fifo[] = { { "~/.local/bin/pi", S_IFIFO | 0755, USER }, { 0 } };
	static const FakeNode nothing[] = { { 0 } };
	static const struct {
		const FakeNode *nodes;
		const char *part;
	} cases[] = {
		{ to_entry, "/home/user/.local/bin/pi leads to the entry of the jail" },
		{ script, "is a script that starts the entry of the jail" },
		{ loop, "is a link that leads in a circle" },
		{ dangling, "is a link that leads nowhere" },
		{ plain, "is no program that can be executed" },
		{ directory, "is no program that can be executed" },
		{ fifo, "is no program that can be executed" },
		{ nothing, "pi is not installed; run 'sudo claude-sandbox install pi'" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		expect_refusal("pi", cases[i].nodes, CS_ERROR_AGENT_MISSING, cases[i].part);
		expect_refusal("pi", cases[i].nodes, CS_ERROR_AGENT_MISSING,
			       "sudo claude-sandbox install pi");
	}
}

/* What root installed comes first, when it is root's, not writable by others, and not our entry. */
static void installed_comes_first(void **state)
{
#define INSTALLED "/usr/libexec/claude-sandbox/agents/codex/codex"
	static const struct {
		FakeNode node;
		bool taken;
	} cases[] = {
		{ { INSTALLED, S_IFREG | 0755, 0 }, true },
		{ { INSTALLED, S_IFREG | 0755, USER }, false },
		{ { INSTALLED, S_IFREG | 0775, 0 }, false },
		{ { INSTALLED, S_IFREG | 0757, 0 }, false },
		{ { INSTALLED, S_IFREG | 0644, 0 }, false },
		{ { INSTALLED, S_IFDIR | 0755, 0 }, false },
		{ { INSTALLED, S_IFREG | 0755, 0, "#!/bin/sh\n/usr/local/bin/codex\n" }, false },
		{ { INSTALLED, S_IFLNK | 0777, 0, "/usr/local/bin/codex" }, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const FakeNode nodes[] = { cases[i].node,
					   { "/usr/local/bin/codex", S_IFREG | 0755 },
					   { "/bin/sh", S_IFREG | 0755 },
					   PROGRAM_("~/.local/bin/codex", NULL),
					   { 0 } };
		PlanFixture fixture;

		start(&fixture, "codex", nodes);
		assert_int_equal(plan_fixture_make(&fixture), 0);
		if (streq(fixture.plan.program, INSTALLED) != cases[i].taken)
			fail_msg("case %zu: %s", i, fixture.plan.program);
		expect_read_only(&fixture, cases[i].taken ? INSTALLED : "~/.local/bin/codex");
		plan_fixture_done(&fixture);
	}
}

static const FakeNode npm_codex[] = {
	LINK_("~/.local/bin/codex", "../../.npm/bin/codex"),
	LINK_("~/.npm/bin/codex", "../lib/node_modules/@openai/codex/bin/codex.js"),
	PROGRAM_(CODEX_JS, NODE_SCRIPT),
	{ "/usr/bin/node", S_IFREG | 0755 },
	{ 0 },
};

static void packages_come_with_their_programs(void **state)
{
	PlanFixture fixture;

	start(&fixture, "codex", npm_codex);
	assert_int_equal(plan_fixture_make(&fixture), 0);
	assert_string_equal(fixture.plan.program, plan_fixture_path(&fixture, CODEX_JS));
	assert_string_equal(fixture.plan.argv[0], fixture.plan.program);
	expect_read_only(&fixture, "~/.npm/lib/node_modules/@openai/codex");
	expect_read_only(&fixture, CODEX_JS);
	assert_null(plan_fixture_entry(&fixture, plan_fixture_path(&fixture, "~/.npm")));
	plan_fixture_done(&fixture);

	/* Without any node the person learns it outside. */
	FakeNode without[ELEMENTSOF(npm_codex)];
	memcpy(without, npm_codex, sizeof(npm_codex));
	without[3] = (FakeNode){ "/usr/bin/node", S_IFREG | 0644 };
	expect_refusal("codex", without, CS_ERROR_AGENT_MISSING,
		       "codex.js needs node, which no session sees");
	/* One that only a home has, by a link of the system, is not seen either. */
	without[3] = (FakeNode){ "/usr/bin/node", S_IFLNK | 0777, 0, "/home/user/node" };
	expect_refusal("codex", without, CS_ERROR_AGENT_MISSING, "which no session sees");
}

/* A node of the same installation: links of directories on the way, a starter, and nothing else of it. */
static void node_of_the_same_installation(void **state)
{
	static const FakeNode nodes[] = {
		LINK_("~/.local/bin/pi", "../../.nvm/current/bin/pi"),
		LINK_("~/.nvm/current", "versions/node/v22.1.0"),
		LINK_(NVM "/bin/pi", "../lib/node_modules/@mariozechner/pi-coding-agent/dist/cli.js"),
		PROGRAM_(PI_JS, NODE_SCRIPT),
		LINK_(NVM "/bin/node", "../lib/node"),
		PROGRAM_(NVM "/lib/node", NULL),
		{ "/usr/bin/node", S_IFREG | 0755 },
		{ 0 },
	};
	PlanFixture fixture;
	const Entry *entry;

	start(&fixture, "pi", nodes);
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s", fixture.problem);
	/* ~/.local/bin is the person's own, in which nothing of ours can stand. */
	assert_string_equal(fixture.plan.program, CS_STARTER_DIR "/pi");
	entry = plan_fixture_entry(&fixture, CS_STARTER_DIR "/pi");
	assert_int_equal(entry->kind, ENTRY_FILE);
	assert_int_equal(entry->permissions, 0555);
	assert_non_null(starts_with(entry->data, "#!/home/user/.nvm/versions/node/v22.1.0/lib/node\n"));
	expect_read_only(&fixture, NVM "/lib/node");
	expect_read_only(&fixture, NVM "/lib/node_modules/@mariozechner/pi-coding-agent");
	assert_null(plan_fixture_entry(&fixture, plan_fixture_path(&fixture, NVM)));
	plan_fixture_done(&fixture);

	start(&fixture, "pi", nodes);
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s", fixture.problem);
	assert_string_equal(fixture.plan.program, "/home/user/.local/bin/pi");
	assert_int_equal(plan_fixture_entry(&fixture, fixture.plan.program)->kind, ENTRY_FILE);
	plan_fixture_done(&fixture);
}

static void what_lies_beside(void **state)
{
#define STANDALONE "~/.codex/packages/standalone/releases/1"
	static const FakeNode nodes[] = {
		LINK_("~/.local/bin/codex", "/home/user/.codex/packages/standalone/current/bin/codex"),
		LINK_("~/.codex/packages/standalone/current", "releases/1"),
		PROGRAM_(STANDALONE "/bin/codex", NULL),
		{ STANDALONE "/codex-path", S_IFDIR | 0755, USER },
		{ 0 },
	};
	PlanFixture fixture;

	start(&fixture, "codex", nodes);
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s", fixture.problem);
	expect_read_only(&fixture, STANDALONE);
	assert_int_equal(plan_fixture_entry(&fixture, plan_fixture_path(&fixture, "~/.codex/packages"))->mode,
			 ENTRY_PRIVATE);
	plan_fixture_done(&fixture);
}

/* Neither the program nor what leads to it or comes with it lies where an agent writes, of whatever profile.
 */
static void nothing_that_agents_write(void **state)
{
	static const FakeNode in_other_state[] = { LINK_("~/.local/bin/claude", "/home/user/.codex/bin/x"),
						   PROGRAM_("~/.codex/bin/x", NULL),
						   { 0 } };
	static const FakeNode link_in_cache[] = { LINK_("~/.local/bin/claude", "/home/user/.cache/x"),
						  LINK_("~/.cache/x", "/opt/claude"),
						  PROGRAM_("/opt/claude", NULL),
						  { 0 } };
	static const FakeNode share[] = { LINK_("~/.local/bin/claude",
						"/home/user/.local/share/uv/node_modules/c/cli.js"),
					  PROGRAM_("~/.local/share/uv/node_modules/c/cli.js", NULL),
					  { 0 } };
	static const FakeNode node[] = { PROGRAM_("~/.local/bin/claude", "#!/home/user/.cache/node\n"),
					 PROGRAM_("~/.cache/node", NULL),
					 { 0 } };
	static const FakeNode around[] = { LINK_("~/.local/bin/claude",
						 "/home/user/src/node_modules/c/cli.js"),
					   PROGRAM_("~/src/node_modules/c/cli.js", NULL),
					   { "~/src/node_modules/c/inner", S_IFDIR | 0755, USER },
					   { 0 } };
	PlanFixture fixture;

	expect_refusal("claude", in_other_state, CS_ERROR_PLAN_REFUSED, "lies in the state of codex");
	expect_refusal("claude", link_in_cache, CS_ERROR_PLAN_REFUSED, "agents may write");
	expect_refusal("claude", share, CS_ERROR_PLAN_REFUSED, "agents may write");
	expect_refusal("claude", node, CS_ERROR_PLAN_REFUSED, "agents may write");

	start(&fixture, "claude", around);
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "~/src/node_modules/c/inner");
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_non_null(strstr(fixture.problem, "agents may write"));
	plan_fixture_done(&fixture);
}

/* An agent that looks for its package stays there; its usual name leads to it. */
static void native_path_and_package(void **state)
{
	static const FakeNode nodes[] = {
		LINK_("~/.local/bin/claude", "../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"),
		PROGRAM_("~/.local/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", NULL),
		{ 0 }
	};
	PlanFixture fixture;

	start(&fixture, "claude", nodes);
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s", fixture.problem);
	assert_string_equal(fixture.plan.program, plan_fixture_path(&fixture, nodes[1].path));
	/* The person's own link, in a directory that is shown. */
	assert_null(plan_fixture_entry(&fixture, "/home/user/.local/bin/claude"));
	expect_read_only(&fixture, "~/.local/bin");
	expect_read_only(&fixture, "~/.local/lib/node_modules/@anthropic-ai/claude-code");
	plan_fixture_done(&fixture);
}

/* Links among what an agent is told, wherever its profile keeps that: named when they lead to nothing inside.
 */
static void skills_that_are_links(void **state)
{
	static const struct {
		const char *agent, *skills;
	} cases[] = { { "claude", "~/.claude/skills" },
		      { "codex", "~/.codex/skills" },
		      { "pi", "~/.pi/agent/skills" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		PlanFixture fixture;
		char program[64];

		(void)snprintf(program, sizeof(program), "~/.local/bin/%s", cases[i].agent);
		const FakeNode nodes[] = { PROGRAM_(program, NULL),
					   LINK_(cases[i].skills, "/home/user/dotfiles/skills"),
					   { "~/dotfiles/skills", S_IFDIR | 0755, USER },
					   { 0 } };
		start(&fixture, cases[i].agent, nodes);
		if (plan_fixture_make(&fixture) < 0)
			fail_msg("%s", fixture.problem);
		assert_true(plan_fixture_warns(&fixture, "/skills leads to /home/user/dotfiles/skills"));
		plan_fixture_done(&fixture);
	}
}

/* Each sees its own state and none of the others'. */
static void states_are_apart(void **state)
{
	static const FakeNode nodes[] = {
		PROGRAM_("~/.local/bin/claude", NULL),   PROGRAM_("~/.local/bin/codex", NULL),
		PROGRAM_("~/.local/bin/pi", NULL),       { "~/.codex/packages", S_IFDIR | 0700, USER },
		{ "~/.pi/agent", S_IFDIR | 0700, USER }, { 0 }
	};
	static const char *const places[] = { "~/.claude", "~/.codex", "~/.pi" };
	static const char *const variables[] = { "CLAUDE_CONFIG_DIR=/home/user/.claude",
						 "CODEX_UPDATE_DISABLED=1", "PI_SKIP_VERSION_CHECK=1" };
	const Profile *profile;

	for (size_t p = 0; (profile = profile_at(p)); p++) {
		PlanFixture fixture;

		start(&fixture, profile->name, nodes);
		if (plan_fixture_make(&fixture) < 0)
			fail_msg("%s", fixture.problem);
		for (size_t i = 0; i < ELEMENTSOF(places); i++) {
			bool own = profile->state && streq(places[i] + 2, profile->state);
			const Entry *entry =
				plan_fixture_entry(&fixture, plan_fixture_path(&fixture, places[i]));
			bool told = false;

			assert_int_equal(!!entry, own);
			if (entry)
				assert_int_equal(entry->mode, ENTRY_RW);
			for (size_t v = 0; v < fixture.plan.n_variables; v++) {
				const char *rest = starts_with(variables[i], fixture.plan.variables[v].name);

				told = told || (rest && *rest == '=' &&
						streq(rest + 1, fixture.plan.variables[v].value));
			}
			assert_int_equal(told, own);
		}
		assert_true(fixture.plan.n_entries <= PLAN_MOUNTS_ORDINARY + 10);
		plan_fixture_done(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_our_entry),
		cmocka_unit_test(installed_comes_first),
		cmocka_unit_test(packages_come_with_their_programs),
		cmocka_unit_test(node_of_the_same_installation),
		cmocka_unit_test(what_lies_beside),
		cmocka_unit_test(nothing_that_agents_write),
		cmocka_unit_test(native_path_and_package),
		cmocka_unit_test(skills_that_are_links),
		cmocka_unit_test(states_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
