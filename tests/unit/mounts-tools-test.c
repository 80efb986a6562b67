/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

#define USER 1000
#define DIRECTORY(path)                    \
	{                                  \
		path, S_IFDIR | 0755, USER \
	}

static const FakeNode home[] = {
	DIRECTORY("~/.cargo/bin"),
	DIRECTORY("~/.cargo/registry"),
	{ "~/.cargo/credentials.toml", S_IFREG | 0600, USER },
	DIRECTORY("~/.nvm/versions/node/v20/bin"),
	DIRECTORY("~/miniconda3/bin"),
	{ "~/miniconda3/.condarc", S_IFREG | 0600, USER },
	DIRECTORY("~/.npm/_cacache"),
	DIRECTORY("~/private/bin"),
	DIRECTORY("/opt/tl/bin"),
	DIRECTORY("~/src/project/.venv/bin"),
	DIRECTORY("~/src/project/node_modules/.bin"),
	{ 0 },
};

/* A home full of tools, and what more a case needs: ended by one without path, or NULL. */
static void start_with(PlanFixture *fixture, const char *path, const FakeNode *more)
{
	FakeNode nodes[ELEMENTSOF(home) + 4] = { 0 };
	size_t n = ELEMENTSOF(home) - 1;

	memcpy(nodes, home, sizeof(home));
	for (size_t i = 0; more && more[i].path; i++)
		nodes[n++] = more[i];
	plan_fixture_init(fixture, "user", "claude");
	plan_fixture_add(fixture, nodes);
	plan_fixture_set_path(fixture, path);
}

static void start(PlanFixture *fixture, const char *path)
{
	start_with(fixture, path, NULL);
}

static void make(PlanFixture *fixture)
{
	if (plan_fixture_make(fixture) < 0)
		fail_msg("%s", fixture->problem);
}

static bool is_visible(PlanFixture *fixture, const char *path)
{
	return !plan_hides(&fixture->plan, plan_fixture_path(fixture, path));
}

static void tools_are_shown(void **state)
{
	PlanFixture fixture;

	start(&fixture, "/usr/bin");
	make(&fixture);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/.cargo/bin")->mode, ENTRY_RO);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/.nvm")->mode, ENTRY_RO);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/.cargo/registry")->mode, ENTRY_RW);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/.npm/_cacache")->mode, ENTRY_RW);
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/miniconda3/.condarc")->mode, ENTRY_MASKED);
	assert_false(is_visible(&fixture, "~/.cargo/credentials.toml"));
	assert_false(is_visible(&fixture, "~/private/bin"));
	assert_string_equal(plan_fixture_entry(&fixture, "/home/user/.nvm")->origin, "tools");
	plan_fixture_done(&fixture);

	start(&fixture, "/usr/bin");
	plan_fixture_configure(&fixture, CONFIG_TOOLS, "0");
	make(&fixture);
	assert_false(is_visible(&fixture, "~/.cargo/bin"));
	assert_false(is_visible(&fixture, "~/.nvm"));
	assert_false(is_visible(&fixture, "~/.npm/_cacache"));
	plan_fixture_done(&fixture);
}

static void path_is_the_persons(void **state)
{
#define SYSTEM "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	static const struct {
		const char *path, *virtual_env, *inside;
	} cases[] = {
		{ "~/.nvm/versions/node/v20/bin:~/.cargo/bin:/usr/local/bin:/usr/bin", NULL,
		  "/home/user/.nvm/versions/node/v20/bin:/home/user/.cargo/bin:/usr/local/bin:/usr/bin:"
		  "/usr/local/sbin:/usr/sbin:/sbin:/bin:/home/user/.local/bin" },
		{ "/opt/tl/bin:/usr/bin", NULL,
		  "/opt/tl/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin:"
		  "/home/user/.local/bin" },
		/* What the agent can write comes last, but for the environment that is active. */
		{ "/usr/local/bin:~/src/project/node_modules/.bin", NULL,
		  "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:"
		  "/home/user/src/project/node_modules/.bin:/home/user/.local/bin" },
		{ "/usr/local/bin:~/src/project/.venv/bin:/usr/bin",
		  "VIRTUAL_ENV=/home/user/src/project/.venv",
		  "/usr/local/bin:/home/user/src/project/.venv/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin:/bin:"
		  "/home/user/.local/bin" },
		{ "/usr/local/bin:relative:/none:~/private/bin", NULL,
		  "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/home/user/.local/bin" },
		{ NULL, NULL, SYSTEM ":/home/user/.local/bin" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		PlanFixture fixture;

		start(&fixture, cases[i].path);
		if (cases[i].virtual_env)
			plan_fixture_setenv(&fixture, cases[i].virtual_env);
		make(&fixture);
		assert_string_equal(plan_variable(&fixture.plan, "PATH")->value, cases[i].inside);
		plan_fixture_done(&fixture);
	}
}

static void hidden_directory_is_named(void **state)
{
	PlanFixture fixture;

	start(&fixture, "/usr/local/bin:~/private/bin");
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, "1 directory of your PATH: /home/user/private/bin"));
	plan_fixture_done(&fixture);

	/* The key shows it, and puts it on PATH at its place. */
	start(&fixture, "/usr/local/bin:~/private/bin");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_READ, "~/private");
	make(&fixture);
	assert_false(plan_fixture_warns(&fixture, "of your PATH"));
	assert_int_equal(plan_fixture_entry(&fixture, "/home/user/private")->mode, ENTRY_RO);
	assert_non_null(starts_with(plan_variable(&fixture.plan, "PATH")->value,
				    "/usr/local/bin:/home/user/private/bin:"));
	plan_fixture_done(&fixture);
}

static void allow_read_has_bounds(void **state)
{
	static const char *const refused[] = { "~", "/home", "/", "/proc/1" };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
		start_with(&fixture, "/usr/local/bin", (const FakeNode[]){ DIRECTORY("/proc/1"), { 0 } });
		plan_fixture_configure(&fixture, CONFIG_ALLOW_READ, refused[i]);
		assert_true(plan_fixture_make(&fixture) < 0);
		assert_non_null(strstr(fixture.problem, "is refused"));
		plan_fixture_done(&fixture);
	}
	start_with(&fixture, "/usr/local/bin", (const FakeNode[]){ DIRECTORY("~/.ssh"), { 0 } });
	plan_fixture_configure(&fixture, CONFIG_ALLOW_READ, "~/.ssh");
	make(&fixture);
	assert_true(plan_fixture_warns(&fixture, "gives agents keys or logins"));
	plan_fixture_done(&fixture);
}

static void hidden_stays_hidden(void **state)
{
	static const FakeNode disk[] = { DIRECTORY("/media/u/DISK/.ssh"),
					 { "/srv/data/secret", S_IFREG | 0644 },
					 { 0 } };
	PlanFixture fixture;

	start_with(&fixture, "/usr/local/bin", disk);
	plan_fixture_configure(&fixture, CONFIG_HIDE, "/media");
	plan_fixture_configure(&fixture, CONFIG_HIDE, "/srv/data/secret");
	plan_fixture_configure(&fixture, CONFIG_HIDE, "/not/there");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_READ, "/srv/data");
	make(&fixture);
	assert_false(is_visible(&fixture, "/media/u/DISK/.ssh"));
	assert_false(is_visible(&fixture, "/srv/data/secret"));
	assert_int_equal(plan_fixture_entry(&fixture, "/srv/data/secret")->mode, ENTRY_MASKED);
	plan_fixture_done(&fixture);

	static const char *const refused[] = { "/usr", "/", "/etc" };
	for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
		start(&fixture, "/usr/local/bin");
		plan_fixture_configure(&fixture, CONFIG_HIDE, refused[i]);
		assert_true(plan_fixture_make(&fixture) < 0);
		plan_fixture_done(&fixture);
	}
	start(&fixture, "/usr/local/bin");
	plan_fixture_configure(&fixture, CONFIG_HIDE, "~/src");
	assert_true(plan_fixture_make(&fixture) < 0);
	assert_string_equal(fixture.error, CS_ERROR_UNSAFE_WORKSPACE);
	plan_fixture_done(&fixture);
}

/* A variable shows certificates, and nothing else that it may be made to name. */
static void certificates_by_variable(void **state)
{
#define PEM "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
	static const struct {
		const char *content;
		bool shown;
	} cases[] = {
		{ PEM, true },
		{ "# comment\n" PEM PEM, true },
		{ "-----BEGIN TRUSTED CERTIFICATE-----\n", true },
		{ PEM "-----BEGIN PRIVATE KEY-----\n", false },
		{ PEM "-----BEGIN OPENSSH PRIVATE KEY-----\n", false },
		{ PEM "-----BEGIN X-----\n", false },
		{ "password = secret\n", false },
		{ "-----BEGIN ", false },
		{ "", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const FakeNode more[] = { { "~/ca.pem", S_IFREG | 0644, USER, cases[i].content }, { 0 } };
		PlanFixture fixture;

		start_with(&fixture, "/usr/local/bin", more);
		plan_fixture_setenv(&fixture, "NODE_EXTRA_CA_CERTS=/home/user/ca.pem");
		make(&fixture);
		assert_int_equal(is_visible(&fixture, "~/ca.pem"), cases[i].shown);
		assert_int_equal(plan_variable(&fixture.plan, "NODE_EXTRA_CA_CERTS") != NULL, cases[i].shown);
		assert_int_equal(plan_fixture_warns(&fixture, "NODE_EXTRA_CA_CERTS is not passed"),
				 !cases[i].shown);
		plan_fixture_done(&fixture);
	}
}

static void proxies_without_passwords(void **state)
{
	static const struct {
		const char *variable;
		bool passed;
	} cases[] = {
		{ "HTTPS_PROXY=http://proxy.example.org:3128", true },
		{ "https_proxy=proxy.example.org:3128/a@b", true },
		{ "HTTP_PROXY=http://me:word@proxy.example.org:3128", false },
		{ "ALL_PROXY=me@proxy.example.org", false },
		{ "SLURM_JOB_ID=7", true },
		{ "SLURM_JWT=secret", false },
		{ "SLURM_job=x", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *name = strndup(cases[i].variable, strcspn(cases[i].variable, "="));
		PlanFixture fixture;

		start(&fixture, "/usr/local/bin");
		plan_fixture_setenv(&fixture, cases[i].variable);
		make(&fixture);
		assert_int_equal(plan_variable(&fixture.plan, name) != NULL, cases[i].passed);
		if (strstr(name, "PROXY"))
			assert_int_equal(plan_fixture_warns(&fixture, "it holds a password"),
					 !cases[i].passed);
		plan_fixture_configure(&fixture, CONFIG_PASS_ENV, name);
		make(&fixture);
		assert_non_null(plan_variable(&fixture.plan, name));
		assert_false(plan_fixture_warns(&fixture, "is not passed"));
		plan_fixture_done(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tools_are_shown),           cmocka_unit_test(path_is_the_persons),
		cmocka_unit_test(hidden_directory_is_named), cmocka_unit_test(allow_read_has_bounds),
		cmocka_unit_test(hidden_stays_hidden),       cmocka_unit_test(certificates_by_variable),
		cmocka_unit_test(proxies_without_passwords),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
