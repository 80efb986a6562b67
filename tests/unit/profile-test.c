/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/link/pack.h"
#include "service/plan/profile.h"

static bool has(const char *const *list, const char *name)
{
	for (size_t i = 0; list[i]; i++)
		if (streq(list[i], name))
			return true;
	return false;
}

/* Paths below the state, of one kind each: none is listed twice, or lies in another. */
static void check_names(const Profile *profile)
{
	const char *const *const lists[] = { profile->account_directories, profile->account_files,
					     profile->account_locks, profile->session_names };
	const char *names[128] = { profile->transcripts };
	size_t n = profile->transcripts ? 1 : 0;

	for (size_t i = 0; i < ELEMENTSOF(lists); i++)
		for (size_t j = 0; lists[i][j]; j++) {
			assert_non_null(profile->state);
			assert_true(lists[i][j][0] != '/' && lists[i][j][0] != 0);
			assert_null(strstr(lists[i][j], ".."));
			assert_null(strstr(lists[i][j], "//"));
			assert_true(n < ELEMENTSOF(names));
			names[n++] = lists[i][j];
		}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			size_t length = strlen(names[i]) - (names[i][strlen(names[i]) - 1] == '/');

			if (i != j && strncmp(names[i], names[j], length) == 0)
				assert_true(names[j][length] != '/' && names[j][length] != 0);
		}
	for (size_t i = 0; i < ELEMENTSOF(lists) - 1; i++)
		for (size_t j = 0; lists[i][j]; j++)
			assert_true(lists[i][j][strlen(lists[i][j]) - 1] != '/');
}

static void test_table(void **state)
{
	static const char *const names[] = { "claude", "codex", "pi", "shell" };
	size_t n = 0;

	for (const Profile *profile; (profile = profile_at(n)); n++) {
		assert_string_equal(profile->name, names[n]);
		assert_ptr_equal(profile_find(profile->name), profile);
		/* Every list is there, so that nobody who walks one asks first. */
		assert_non_null(profile->account_directories);
		assert_non_null(profile->account_files);
		assert_non_null(profile->account_locks);
		assert_non_null(profile->session_names);
		assert_non_null(profile->settings);
		assert_non_null(profile->program_keys);
		for (size_t i = 0; profile->settings[i]; i++)
			assert_true(has(profile->account_files, profile->settings[i]));
		assert_non_null(profile->first_arguments);
		assert_non_null(profile->removed_arguments);
		assert_non_null(profile->variables);
		for (size_t i = 0; profile->variables[i]; i++)
			assert_non_null(strchr(profile->variables[i], '='));
		if (profile->home_file) {
			assert_non_null(profile->state);
			assert_true(has(profile->account_files, profile->home_file));
		}
		assert_int_equal(!!profile->transcripts, profile->transcripts_kept != TRANSCRIPTS_NONE);
		if (profile->skills)
			assert_true(has(profile->account_directories, profile->skills));
		check_names(profile);
	}
	assert_int_equal(n, ELEMENTSOF(names));
	assert_null(profile_find("bash"));
	assert_null(profile_find(""));
	assert_null(profile_find("Claude"));
}

/* No agent sees the state of another. */
static void test_state_is_own(void **state)
{
	for (size_t i = 0; profile_at(i); i++)
		for (size_t j = 0; profile_at(j); j++)
			if (i != j && profile_at(i)->state && profile_at(j)->state)
				assert_string_not_equal(profile_at(i)->state, profile_at(j)->state);

	char *path = profile_path(profile_find("codex"), "packages/");
	assert_string_equal(path, ".codex/packages");
	free(path);
	path = profile_path(profile_find("pi"), "agent/auth.json");
	assert_string_equal(path, ".pi/agent/auth.json");
	free(path);
}

static void check_arguments(const char *agent, const char *const *given, const char *const *expected)
{
	char **arguments = profile_arguments(profile_find(agent), "/bin/agent", (char *const *)given);
	size_t n = 0;

	assert_non_null(arguments);
	for (; expected[n]; n++)
		assert_string_equal(arguments[n], expected[n]);
	assert_null(arguments[n]);
	strings_free(arguments);
}

static void test_arguments(void **state)
{
	static const char *const given[] = { "-p",         "--chrome", "",  "--chrome=x",
					     "two\nlines", "--chrome", NULL };
	static const char *const claude[] = { "/bin/agent", "-p", "", "--chrome=x", "two\nlines", NULL };
	static const char *const shell[] = { "/bin/agent", "-p",         "--chrome", "",
					     "--chrome=x", "two\nlines", "--chrome", NULL };
	static const char *const codex[] = { "/bin/agent", "-c",         "features.daemon_auto_start=false",
					     "-p",         "--chrome",   "",
					     "--chrome=x", "two\nlines", "--chrome",
					     NULL };
	static const char *const none[] = { "/bin/agent", NULL };

	check_arguments("claude", given, claude);
	check_arguments("shell", given, shell);
	check_arguments("codex", given, codex);
	check_arguments("shell", NULL, none);
}

/* The first argument decides, whole: what comes before a prompt makes it none of these. */
static void test_first_argument(void **state)
{
	static const struct {
		const char *agent, *arguments[3];
		bool anywhere, updates;
	} rows[] = {
		{ "claude", { "--version" }, true, false },
		{ "claude", { "mcp", "list" }, true, false },
		{ "claude", { "doctor" }, true, false },
		{ "claude", { "mcp-serve" }, false, false },
		{ "claude", { "-p", "mcp" }, false, false },
		{ "claude", { "" }, false, false },
		{ "claude", { NULL }, false, false },
		{ "claude", { "update" }, false, true },
		{ "claude", { "install", "x" }, false, true },
		{ "claude", { "-p", "update" }, false, false },
		{ "codex", { "update" }, false, true },
		{ "codex", { "login", "status" }, true, false },
		{ "codex", { "exec", "x" }, false, false },
		{ "pi", { "update" }, false, false },
		{ "pi", { "--version" }, true, false },
		{ "shell", { "--version" }, false, false },
		{ "shell", { "update" }, false, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const Profile *profile = profile_find(rows[i].agent);
		char *const *argv = (char *const *)rows[i].arguments;

		assert_int_equal(profile_works_anywhere(profile, argv), rows[i].anywhere);
		assert_int_equal(profile_updates(profile, argv), rows[i].updates);
	}
	assert_false(profile_works_anywhere(profile_find("claude"), NULL));
	assert_false(profile_updates(profile_find("claude"), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_state_is_own),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_first_argument),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
