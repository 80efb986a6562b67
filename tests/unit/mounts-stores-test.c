/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/mount-list.h"
#include "tests/unit/plan-fixture.h"

/* Where the person's keys lie, and what only root may read. */

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

/* The person's stores lie where variables say; these hide and never show. */
static void variables_hide_stores(void **state)
{
	static const FakeNode more[] = {
		{ "/data/config/gh", S_IFDIR | 0700, 1000 },
		{ "/data/share", S_IFDIR | 0700, 1000 },
		{ "/data/aws", S_IFREG | 0600, 1000 },
		{ "/data/claude", S_IFDIR | 0700, 1000 },
		{ "/data/foreign", S_IFLNK | 0777, 1000, "/data" },
		{ "~/src/project/.xdg", S_IFDIR | 0700, 1000 },
		{ 0 },
	};
	PlanFixture fixture;

	start(&fixture, "claude", more);
	plan_fixture_setenv(&fixture, "XDG_CONFIG_HOME=/data/config");
	plan_fixture_setenv(&fixture, "XDG_DATA_HOME=/data/share/");
	plan_fixture_setenv(&fixture, "AWS_CONFIG_FILE=/data/aws");
	plan_fixture_setenv(&fixture, "CLAUDE_CONFIG_DIR=/data/claude");
	plan_fixture_setenv(&fixture, "XDG_CACHE_HOME=relative");
	plan_fixture_setenv(&fixture, "XDG_STATE_HOME=/data/none");
	plan_fixture_setenv(&fixture, "GNUPGHOME=/data/foreign");
	plan_fixture_setenv(&fixture, plan_fixture_path(&fixture, "DOCKER_CONFIG=/home/user/.docker"));
	make(&fixture);
	assert_true(plan_hides(&fixture.plan, "/data/config/gh"));
	assert_true(plan_hides(&fixture.plan, "/data/share"));
	assert_true(plan_hides(&fixture.plan, "/data/aws"));
	assert_true(plan_hides(&fixture.plan, "/data/claude"));
	assert_false(plan_hides(&fixture.plan, "/data"));
	assert_string_equal(seen(&fixture, "/data/config")->origin, "environment XDG_CONFIG_HOME");
	assert_int_equal(plan_fixture_warnings(&fixture), 1);
	assert_true(plan_fixture_warns(&fixture, "what GNUPGHOME names may be readable"));
	for (size_t i = 0; i < fixture.plan.n_variables; i++)
		assert_null(starts_with(fixture.plan.variables[i].name, "XDG_"));
	plan_fixture_done(&fixture);
}

/* Keys and logins one link away from their usual place, and named in every way that a variable can. */
static void links_and_variables_lead_to_keys(void **state)
{
	static const FakeNode more[] = {
		{ "~/.ssh", S_IFDIR | 0700, 1000 },
		{ "~/.ssh/id_ed25519", S_IFLNK | 0777, 1000, "/volume/keys/id" },
		{ "/volume/keys/id", S_IFREG | 0600, 1000 },
		{ "/volume/keys/other", S_IFREG | 0600, 1000 },
		{ "~/.ssh/config", S_IFLNK | 0777, 1000, "../src/project/ssh-config" },
		{ "~/src/project/ssh-config", S_IFREG | 0644, 1000 },
		{ "~/.kube/config", S_IFLNK | 0777, 1000, "../../../data/kube" },
		{ "/data/kube", S_IFREG | 0600, 1000 },
		{ "~/.aws", S_IFLNK | 0777, 1000, "/data/aws" },
		{ "/data/aws/sso", S_IFLNK | 0777, 1000, "/volume/sso" },
		{ "/volume/sso", S_IFDIR | 0700, 1000 },
		{ "/volume/sso/cache", S_IFREG | 0600, 1000 },
		{ "~/.config/theme", S_IFLNK | 0777, 1000, "/usr/share/theme" },
		{ "/usr/share/theme/file", S_IFREG | 0644, 0 },
		{ "~/.config/gone", S_IFLNK | 0777, 1000, "/none" },
		{ "~/.config/work", S_IFLNK | 0777, 1000, "../src" },
		{ "/opt/k1", S_IFREG | 0600, 1000 },
		{ "/opt/k2", S_IFREG | 0600, 1000 },
		{ "/opt/cc", S_IFDIR | 0700, 1000 },
		{ "/opt/pg", S_IFREG | 0600, 1000 },
		{ 0 },
	};
	static const char *const hidden[] = { "/volume/keys/id", "/data/kube", "/volume/sso/cache",
					      "/opt/k1",         "/opt/k2",    "/opt/cc",
					      "/opt/pg" };
	PlanFixture fixture;

	start(&fixture, "claude", more);
	plan_fixture_setenv(&fixture, "KUBECONFIG=/opt/k1::relative:/opt/k2");
	plan_fixture_setenv(&fixture, "KRB5CCNAME=DIR:/opt/cc");
	plan_fixture_setenv(&fixture, "KRB5_KTNAME=KEYRING:persistent:1000");
	plan_fixture_setenv(&fixture, "PGPASSFILE=/opt/pg");
	make(&fixture);
	for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
		if (!plan_hides(&fixture.plan, hidden[i]))
			fail_msg("%s", hidden[i]);
	assert_string_equal(seen(&fixture, "/volume/keys/id")->reason,
			    "a link among the person's keys and logins leads there");
	assert_string_equal(seen(&fixture, "/opt/k2")->origin, "environment KUBECONFIG");
	/* What is beside, everybody's, or the workspace's is not hidden, and the last is told. */
	assert_false(plan_hides(&fixture.plan, "/volume/keys/other"));
	assert_false(plan_hides(&fixture.plan, "/usr/share/theme/file"));
	assert_int_equal(seen(&fixture, "/home/user/src/project/ssh-config")->mode, ENTRY_RW);
	assert_int_equal(plan_fixture_warnings(&fixture), 1);
	assert_true(plan_fixture_warns(&fixture, "lies in the workspace: the agent can read it"));
	plan_fixture_done(&fixture);
}

/* What only root may read: hidden from root's agents, but for the workspace and what allow-write names. */
static void what_only_root_may_read(void **state)
{
	static const FakeNode more[] = {
		{ "/etc/shadow.bak", S_IFREG | 0600, 0 },
		{ "/var/lib/service", S_IFDIR | 0700, 101 },
		{ "/var/lib/service/key", S_IFREG | 0600, 101 },
		{ "/var/www/site", S_IFDIR | 0750, 33 },
		{ "/var/www/site/page", S_IFREG | 0640, 33 },
		{ "/var/tmp", S_IFDIR | 01777, 0 },
		{ "/var/spool/own", S_IFDIR | 0700, 0 },
		{ "/var/spool/own/job", S_IFREG | 0600, 0 },
		{ 0 },
	};
	static const char *const places[] = { "/etc/shadow.bak",
					      "/var/lib/service",
					      "/var/www/site",
					      "/var/tmp",
					      "/var/spool/own",
					      "/var/gone",
					      NULL };
	PlanFixture fixture;

	plan_fixture_init(&fixture, "root", "shell");
	plan_fixture_add(&fixture, more);
	set_workspace(&fixture, "/var/www/site");
	plan_fixture_configure(&fixture, CONFIG_ALLOW_WRITE, "/var/spool/own/job");
	fixture.facts.system_private = places;
	make(&fixture);
	assert_true(plan_hides(&fixture.plan, "/etc/shadow.bak"));
	assert_true(plan_hides(&fixture.plan, "/var/lib/service/key"));
	assert_int_equal(plan_fixture_entry(&fixture, "/var/lib/service")->mode, ENTRY_MASKED);
	assert_int_equal(plan_fixture_entry(&fixture, "/var/tmp")->permissions, 01777);
	assert_int_equal(seen(&fixture, "/var/www/site/page")->mode, ENTRY_RW);
	assert_true(plan_hides(&fixture.plan, "/var/spool/own/other"));
	assert_int_equal(seen(&fixture, "/var/spool/own/job")->mode, ENTRY_RW);
	plan_fixture_done(&fixture);
}

static void variables_break_nothing(void **state)
{
	static const struct {
		const char *variable, *warning;
	} harmless[] = {
		{ "XDG_DATA_HOME=/", "what XDG_DATA_HOME names, /, stays readable" },
		{ "XDG_DATA_HOME=/usr/bin", "system directory" },
		{ "XDG_CONFIG_HOME=/etc", "system directory" },
		{ "XDG_CONFIG_HOME=/home/user/src/project/.xdg", NULL },
		{ "XDG_CONFIG_HOME=/home/user/src", NULL },
		{ "XDG_CONFIG_HOME=/home/user/src/project", NULL },
	};
	static const FakeNode more[] = { { "~/src/project/.xdg", S_IFDIR | 0700, 1000 }, { 0 } };
	static const FakeNode outside[] = { { "/data/job/project", S_IFDIR | 0755, 1000 }, { 0 } };
	PlanFixture fixture;

	for (size_t i = 0; i < ELEMENTSOF(harmless); i++) {
		start(&fixture, "claude", more);
		plan_fixture_setenv(&fixture, harmless[i].variable);
		make(&fixture);
		assert_int_equal(plan_fixture_warnings(&fixture), harmless[i].warning ? 1 : 0);
		if (harmless[i].warning && !plan_fixture_warns(&fixture, harmless[i].warning))
			fail_msg("%s", fixture.plan.warnings[0]);
		assert_false(plan_hides(&fixture.plan, "/usr/bin/bash"));
		assert_int_equal(seen(&fixture, "/home/user/src/project/.xdg")->mode, ENTRY_RW);
		plan_fixture_done(&fixture);
	}

	/* The workspace lies in the store: it is shown, and nothing beside it. */
	start(&fixture, "shell", outside);
	set_workspace(&fixture, "/data/job/project");
	plan_fixture_setenv(&fixture, "XDG_DATA_HOME=/data/job");
	make(&fixture);
	assert_int_equal(seen(&fixture, "/data/job/project")->mode, ENTRY_RW);
	assert_true(plan_hides(&fixture.plan, "/data/job"));
	plan_fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_hide_stores),
		cmocka_unit_test(links_and_variables_lead_to_keys),
		cmocka_unit_test(what_only_root_may_read),
		cmocka_unit_test(variables_break_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
