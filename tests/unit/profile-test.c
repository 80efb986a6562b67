/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/link/pack.h"
#include "service/plan/profile.h"

static void test_table(void **state)
{
	static const char *const names[] = { "claude", "codex", "pi", "shell" };
	size_t n = 0;

	for (const Profile *profile; (profile = profile_at(n)); n++) {
		assert_string_equal(profile->name, names[n]);
		assert_ptr_equal(profile_find(profile->name), profile);
		/* Every list is there, so that nobody who walks one asks first. */
		assert_non_null(profile->directories);
		assert_non_null(profile->masks);
		assert_non_null(profile->first_arguments);
		assert_non_null(profile->removed_arguments);
		assert_non_null(profile->variables);
		for (size_t i = 0; profile->variables[i]; i++)
			assert_non_null(strchr(profile->variables[i], '='));
		if (profile->state_file)
			assert_non_null(profile->directories[0]);
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
			for (size_t k = 0; i != j && profile_at(i)->directories[k]; k++)
				for (size_t l = 0; profile_at(j)->directories[l]; l++)
					assert_string_not_equal(profile_at(i)->directories[k],
								profile_at(j)->directories[l]);
	assert_string_equal(profile_find("codex")->masks[0], ".codex/packages");
	assert_string_equal(profile_find("codex")->masks[1], ".codex/app-server-control");
	assert_string_equal(profile_find("codex")->masks[2], ".codex/app-server-daemon");
	assert_string_equal(profile_find("claude")->masks[0], ".claude/local");
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
	static const char *const claude[] = { "/bin/agent", "--no-chrome", "-p", "",
					      "--chrome=x", "two\nlines",  NULL };
	static const char *const shell[] = { "/bin/agent", "-p",         "--chrome", "",
					     "--chrome=x", "two\nlines", "--chrome", NULL };
	static const char *const none[] = { "/bin/agent", NULL };

	check_arguments("claude", given, claude);
	check_arguments("shell", given, shell);
	check_arguments("codex", given, shell);
	check_arguments("shell", NULL, none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_state_is_own),
		cmocka_unit_test(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
