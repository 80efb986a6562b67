/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/link/pack.h"
#include "service/plan/named-programs.h"
#include "tests/unit/plan-fixture.h"

/* Programs that an agent's settings name: which are found, and which are shown. */

static void check_found(const char *text, const char *const *wanted)
{
	static const char *const keys[] = { "command", "args", "notify", NULL };
	char **found = NULL;
	size_t n = 0;

	assert_int_equal(named_programs_find(text, strlen(text), keys, "/home/u", &found), 0);
	for (; wanted[n]; n++) {
		if (!found || !found[n] || !streq(found[n], wanted[n]))
			fail_msg("%s: '%s' instead of '%s'", text, found && found[n] ? found[n] : "nothing",
				 wanted[n]);
	}
	if (found && found[n])
		fail_msg("%s: '%s' too", text, found[n]);
	strings_free(found);
}

static void test_words(void **state)
{
	static const struct {
		const char *text;
		const char *wanted[4];
	} cases[] = {
		{ "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": "
		  "\"~/bin/guard --deny\"}]}]}}",
		  { "/home/u/bin/guard" } },
		{ "{\"command\":\"python3 $HOME/a.py && ${HOME}/b|/c\"}",
		  { "/home/u/a.py", "/home/u/b", "/c" } },
		{ "{\"command\": \"\\\"/home/u/my hooks/x\\\" '~/y z'\"}",
		  { "/home/u/my hooks/x", "/home/u/y z" } },
		{ "{\"mcpServers\": {\"one\": {\"command\": \"node\", \"args\": [\"/home/u/s.js\",\n \"-x\", "
		  "\"~/t.js\"]}}}",
		  { "/home/u/s.js", "/home/u/t.js" } },
		{ "{\"command\": [\"/a\", {\"x\": \"/b\"}], \"other\": \"/c\", \"args\": 7}", { "/a" } },
		{ "{\"command\": \"/a\", \"args\": [\"/a\"]}", { "/a" } },
		{ "# don't\nnotify = [\"/home/u/n\", '~/m']\n[mcp_servers.x]\ncommand='/home/u/q'\n",
		  { "/home/u/n", "/home/u/m", "/home/u/q" } },
		{ "{\"commands\": \"/a\", \"x\": \"command\", \"y\": \"/b\"}", { NULL } },
		/* Cut off anywhere. */
		{ "{\"command\": \"/home/u/a", { "/home/u/a" } },
		{ "{\"command\": [\"/home/u/a\",", { "/home/u/a" } },
		{ "{\"command\":", { NULL } },
		{ "\"", { NULL } },
		{ "{\"command\": \"\\", { NULL } },
	};
	(void)state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		check_found(cases[i].text, cases[i].wanted);
}

static void test_words_are_bounded(void **state)
{
	static const char *const keys[] = { "args", NULL };
	char *text = NULL, **found = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	fputs("{\"args\": [", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "\"/p%d\",", i);
	fputs("]}", f);
	fclose(f);
	assert_int_equal(named_programs_find(text, size, keys, "/home/u", &found), 0);
	assert_int_equal(strings_count(found), NAMED_WORDS_MAX);
	strings_free(found);
	free(text);
}

#define HOOK(word) "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"" word "\"}]}]}}"

/* What a settings file names is shown, or named in the warning, or passed over. */
typedef enum Outcome { SHOWN, NAMED, PASSED } Outcome;

static const struct {
	const char *word, *path;
	mode_t mode;
	uid_t uid;
	const char *content;
	Outcome outcome;
} files[] = {
	{ "~/bin/guard", "~/bin/guard", S_IFREG | 0755, 1000, "\177ELF", SHOWN },
	{ "sh ~/hooks/guard.sh", "~/hooks/guard.sh", S_IFREG | 0600, 1000, "exit 2", SHOWN },
	{ "~/hooks/guard", "~/hooks/guard", S_IFREG | 0644, 1000, "#!/bin/sh", SHOWN },
	{ "~/bin/guard", "~/bin/guard", S_IFREG | 0755, 0, "\177ELF", SHOWN },
	/* No program. */
	{ "cat ~/notes/secret", "~/notes/secret", S_IFREG | 0600, 1000, "word", NAMED },
	/* In a store, whatever it is. */
	{ "~/.ssh/run.sh", "~/.ssh/run.sh", S_IFREG | 0755, 1000, "#!/bin/sh", NAMED },
	{ "~/.config/tool/run.sh", "~/.config/tool/run.sh", S_IFREG | 0755, 1000, "#!/bin/sh", NAMED },
	{ "~/.local/share/keyrings/x.sh", "~/.local/share/keyrings/x.sh", S_IFREG | 0755, 1000, "#!/bin/sh",
	  NAMED },
	{ "~/.codex/x.sh", "~/.codex/x.sh", S_IFREG | 0755, 1000, "#!/bin/sh", NAMED },
	/* Somebody else's, no file, not there. */
	{ "~/bin/guard", "~/bin/guard", S_IFREG | 0755, 1001, "#!/bin/sh", NAMED },
	{ "~/hooks", "~/hooks", S_IFDIR | 0755, 1000, NULL, PASSED },
	{ "~/bin/none", "~/bin/other", S_IFREG | 0755, 1000, "#!/bin/sh", PASSED },
	{ "~/bin/pipe", "~/bin/pipe", S_IFIFO | 0755, 1000, NULL, PASSED },
	/* A link below the top level, which an agent may have made. */
	{ "~/hooks/guard.sh", "~/hooks/guard.sh", S_IFLNK | 0777, 1000, "../.ssh/id_rsa", NAMED },
};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		_cleanup_free_ char *settings = NULL;
		PlanFixture fixture;
		const Entry *entry;

		assert_true(asprintf(&settings, HOOK("%s"), files[i].word) > 0);
		const FakeNode nodes[] = { { "~/.claude/settings.json", S_IFREG | 0600, 1000, settings },
					   { files[i].path, files[i].mode, files[i].uid, files[i].content },
					   { 0 } };
		plan_fixture_init(&fixture, "user", "claude");
		plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
		plan_fixture_install(&fixture, "claude");
		plan_fixture_add(&fixture, nodes);
		if (plan_fixture_make(&fixture) < 0)
			fail_msg("%s", fixture.problem);
		entry = plan_fixture_entry(&fixture, plan_fixture_path(&fixture, files[i].path));
		if (!!entry != (files[i].outcome == SHOWN))
			fail_msg("%s, case %zu: %s", files[i].path, i, entry ? "shown" : "not shown");
		if (entry) {
			assert_int_equal(entry->mode, ENTRY_RO);
			assert_string_equal(entry->origin, "settings");
		}
		if (plan_fixture_warns(&fixture, "although the agent's settings name it") !=
		    (files[i].outcome == NAMED))
			fail_msg("%s, case %zu: the warning", files[i].path, i);
		plan_fixture_done(&fixture);
	}
}

/* No more than a few, however many are named; servers of the home's own file count too. */
static void test_count(void **state)
{
	_cleanup_free_ char *text = NULL;
	FakeNode nodes[42] = { { "~/.claude.json", S_IFREG | 0600, 1000, NULL } };
	char *paths[40];
	PlanFixture fixture;
	size_t size = 0, shown = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	fputs("{\"mcpServers\": {\"x\": {\"args\": [", f);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		assert_true(asprintf(&paths[i], "~/bin/p%zu", i) > 0);
		fprintf(f, "%s\"%s\"", i ? "," : "", paths[i]);
		nodes[i + 1] = (FakeNode){ paths[i], S_IFREG | 0755, 1000, "#!/bin/sh", 0 };
	}
	fputs("]}}}", f);
	fclose(f);
	nodes[0].link = text;
	plan_fixture_init(&fixture, "user", "claude");
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	plan_fixture_install(&fixture, "claude");
	plan_fixture_add(&fixture, nodes);
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s", fixture.problem);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		shown += !!plan_fixture_entry(&fixture, plan_fixture_path(&fixture, paths[i]));
	assert_int_equal(shown, 16);
	assert_true(plan_fixture_warns(&fixture, "~/bin/p39") || plan_fixture_warns(&fixture, "/bin/p39"));
	plan_fixture_done(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		free(paths[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_words_are_bounded),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
