/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/environment.h"
#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

static const char *value_of(const PlanFixture *fixture, const char *name)
{
	const PlanVariable *variable = plan_variable(&fixture->plan, name);

	return variable ? variable->value : NULL;
}

static void start(PlanFixture *fixture, const char *const *environment)
{
	plan_fixture_init(fixture, "user", "claude");
	strings_free(fixture->request.environment);
	fixture->request.environment = NULL;
	for (size_t i = 0; environment[i]; i++)
		plan_fixture_setenv(fixture, environment[i]);
}

static void make(PlanFixture *fixture)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s", fixture->problem);
}

#define PATH_START "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/home/user/.local/bin"

static void test_from_nothing(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const names[] = { "PATH",
					     "HOME",
					     "USER",
					     "LOGNAME",
					     "SHELL",
					     "IS_SANDBOX",
					     "IS_SANDBOX_AGENT",
					     "GIT_CONFIG_GLOBAL",
					     "GIT_CONFIG_SYSTEM",
					     "CLAUDE_CONFIG_DIR",
					     "CLAUDE_CODE_DISABLE_AGENT_VIEW",
					     "CLAUDE_CODE_ENABLE_CFC",
					     "DISABLE_AUTOUPDATER",
					     "CLAUDE_SANDBOX_ENTRY_GUARD" };
	PlanFixture fixture;

	start(&fixture, none);
	fixture.facts.temp_root = NULL;
	make(&fixture);
	assert_int_equal(fixture.plan.n_variables, ELEMENTSOF(names));
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		assert_string_equal(fixture.plan.variables[i].name, names[i]);
	assert_string_equal(value_of(&fixture, "PATH"), PATH_START);
	assert_string_equal(value_of(&fixture, "SHELL"), "/bin/zsh");
	assert_string_equal(value_of(&fixture, "GIT_CONFIG_SYSTEM"), "/dev/null");
	assert_string_equal(value_of(&fixture, "CLAUDE_CONFIG_DIR"), "/home/user/.claude");
	plan_fixture_done(&fixture);
}

static void test_by_value(void **state)
{
	static const char *const through[] = { "TERM=t",
					       "COLORTERM=c",
					       "NO_COLOR=",
					       "LANG=l",
					       "LC_ALL=a",
					       "LC_MONETARY=m",
					       "TZ=z",
					       "EDITOR=e",
					       "VISUAL=v",
					       "PAGER=p",
					       "TERM_PROGRAM=tp",
					       "VIRTUAL_ENV=/none",
					       "UV_PROJECT_ENVIRONMENT=1",
					       "UV_CACHE_DIR=2",
					       "UV_PYTHON_CACHE_DIR=3",
					       "UV_PYTHON_INSTALL_DIR=4",
					       "UV_TOOL_DIR=5",
					       "PRE_COMMIT_HOME=pc",
					       NULL };
	static const char *const kept_out[] = { "GH_TOKEN=x",
						"ANTHROPIC_API_KEY=x",
						"AWS_PROFILE=x",
						"DISPLAY=x",
						"WAYLAND_DISPLAY=x",
						"SSH_AUTH_SOCK=x",
						"LD_PRELOAD=x",
						"PYTHONPATH=x",
						"BASH_ENV=x",
						"ENV=x",
						"UV_INDEX_URL=x",
						"UV_PUBLISH_TOKEN=x",
						"LC_=x",
						"LC_a=x",
						"LCX=x",
						"DBUS_SYSTEM_BUS_ADDRESS=x",
						"TERMINFO=x",
						"XDG_RUNTIME_DIR=x",
						"GIT_DIR=x",
						"IS_SANDBOX=0",
						"HOME=/root",
						"USER=other",
						"SHELL=/evil",
						"CLAUDE_CONFIG_DIR=/evil",
						"PATH=/evil",
						"TERM=second",
						"no equals sign",
						"=x",
						"",
						NULL };
	PlanFixture fixture;

	start(&fixture, through);
	for (size_t i = 0; kept_out[i]; i++)
		plan_fixture_setenv(&fixture, kept_out[i]);
	make(&fixture);
	for (size_t i = 0; through[i]; i++) {
		const char *equals = strchr(through[i], '=');
		_cleanup_free_ char *name = strndup(through[i], (size_t)(equals - through[i]));

		assert_non_null(value_of(&fixture, name));
		assert_string_equal(value_of(&fixture, name), equals + 1);
		assert_string_equal(plan_variable(&fixture.plan, name)->origin, "caller");
	}
	for (size_t i = 0; i < fixture.plan.n_variables; i++) {
		assert_string_not_equal(fixture.plan.variables[i].value, "x");
		assert_null(strstr(fixture.plan.variables[i].value, "evil"));
	}
	assert_string_equal(value_of(&fixture, "IS_SANDBOX"), "1");
	assert_string_equal(value_of(&fixture, "HOME"), "/home/user");
	assert_string_equal(value_of(&fixture, "USER"), "user");
	plan_fixture_done(&fixture);
}

static void test_virtual_env(void **state)
{
	static const FakeNode more[] = { { "~/src/project/.venv/bin", S_IFDIR | 0755, 1000 },
					 { "/srv/a:b/bin", S_IFDIR | 0755 },
					 { "/srv/file/bin", S_IFREG | 0755 },
					 { 0 } };
	static const struct {
		const char *variable, *path;
	} cases[] = {
		{ "VIRTUAL_ENV=/home/user/src/project/.venv",
		  PATH_START ":/home/user/src/project/.venv/bin" },
		{ "VIRTUAL_ENV=/none", PATH_START },
		{ "VIRTUAL_ENV=relative", PATH_START },
		{ "VIRTUAL_ENV=", PATH_START },
		{ "VIRTUAL_ENV=/srv/a:b", PATH_START },
		{ "VIRTUAL_ENV=/srv/file", PATH_START },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const char *const environment[] = { cases[i].variable, NULL };
		PlanFixture fixture;

		start(&fixture, environment);
		plan_fixture_add(&fixture, more);
		make(&fixture);
		assert_string_equal(value_of(&fixture, "PATH"), cases[i].path);
		plan_fixture_done(&fixture);
	}
}

static void test_pass_env(void **state)
{
	static const char *const environment[] = {
		"TOKEN=first\nline=2", "TOKEN=second", "EMPTY=", "GIT_DIR=/evil",
		"LD_PRELOAD=/evil",    "LANG=C",       NULL
	};
	static const char *const names[] = { "TOKEN", "EMPTY", "UNSET", "GIT_DIR",   "LD_PRELOAD",
					     "PATH",  "HOME",  "LANG",  "IS_SANDBOX" };
	PlanFixture fixture;

	start(&fixture, environment);
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		plan_fixture_configure(&fixture, CONFIG_PASS_ENV, names[i]);
	make(&fixture);
	assert_string_equal(value_of(&fixture, "TOKEN"), "first\nline=2");
	assert_string_equal(plan_variable(&fixture.plan, "TOKEN")->origin,
			    "pass-env, /etc/claude-sandbox.conf:7");
	assert_string_equal(value_of(&fixture, "EMPTY"), "");
	assert_null(value_of(&fixture, "UNSET"));
	assert_null(value_of(&fixture, "GIT_DIR"));
	assert_null(value_of(&fixture, "LD_PRELOAD"));
	assert_string_equal(value_of(&fixture, "PATH"), PATH_START);
	assert_string_equal(plan_variable(&fixture.plan, "LANG")->origin, "caller");
	plan_fixture_done(&fixture);
}

static void test_temp_root(void **state)
{
	static const char *const none[] = { "CLAUDE_CODE_TMPDIR=/evil", NULL };
	PlanFixture fixture;

	start(&fixture, none);
	make(&fixture);
	assert_string_equal(value_of(&fixture, "CLAUDE_CODE_TMPDIR"), fixture.facts.temp_root);
	fixture.facts.temp_root = NULL;
	make(&fixture);
	assert_null(value_of(&fixture, "CLAUDE_CODE_TMPDIR"));
	plan_fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_nothing), cmocka_unit_test(test_by_value),
		cmocka_unit_test(test_virtual_env),  cmocka_unit_test(test_pass_env),
		cmocka_unit_test(test_temp_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
