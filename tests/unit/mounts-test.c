/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/paths.h"
#include "tests/unit/plan-fixture.h"

/*
 * Whole plans against tests/data/plan/WHO-AGENT-VARIANT.txt. After a wanted change: TEST_DATA=tests/data
 * PLAN_WRITE=1 build/tests/unit/mounts-test, and read the difference as what it is: a change of policy.
 */

#define CALLERS ((uid_t)-1) /* plan-fixture.c puts the caller in */

static const FakeNode linked[] = {
	{ "~/.claude", S_IFLNK | 0777, 1000, "/data/claude" },
	{ "/data/claude/local", S_IFDIR | 0755, 1000 },
	{ "~/.config", S_IFLNK | 0777, 1000, "/data/config" },
	{ "/data/config/gh", S_IFDIR | 0755, 1000 },
	{ "/data/config/glab-cli", S_IFDIR | 0755, 1000 },
	{ "~/.ssh", S_IFLNK | 0777, 1000, "/data/keys" },
	{ "/data/keys", S_IFDIR | 0700, 1000 },
	{ "~/.netrc", S_IFLNK | 0777, 1000, "/data/netrc" },
	{ "/data/netrc", S_IFREG | 0600, 1000 },
	{ 0 },
};

static const FakeNode moved[] = {
	{ "/home", S_IFLNK | 0777, 0, "var/home" },
	{ "/var/home", S_IFDIR | 0755 },
	{ "/run/current-system", 0 },
	{ 0 },
};

static const FakeNode allowed[] = {
	{ "/run/user/socket", S_IFSOCK | 0777, 1000 },
	{ "/srv/shared", S_IFDIR | 0755 },
	{ "/srv/shared/socket", S_IFSOCK | 0777 },
	{ 0 },
};

static const FakeNode installed[] = {
	{ "/usr/libexec/claude-sandbox/agents/claude/claude", S_IFREG | 0755 },
	{ "/var/run", S_IFDIR | 0755 },
	{ 0 },
};

static const FakeNode dotfiles[] = {
	{ "~/.claude", S_IFLNK | 0777, 1000, "dotfiles/claude" },
	{ "~/.codex", S_IFLNK | 0777, 1000, "dotfiles/codex" },
	{ "~/.pi", S_IFLNK | 0777, 1000, "dotfiles/pi" },
	{ "~/.agents", S_IFLNK | 0777, 1000, "dotfiles/agents" },
	{ "~/.ssh", S_IFLNK | 0777, 1000, "dotfiles/ssh" },
	{ "~/dotfiles/claude/local", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/claude/settings.json", S_IFLNK | 0777, 1000, "../settings.json" },
	{ "~/dotfiles/codex/packages", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/pi", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/agents/skills", S_IFDIR | 0755, 1000 },
	{ "~/dotfiles/ssh/id_ed25519", S_IFREG | 0600, 1000 },
	{ "~/dotfiles/settings.json", S_IFREG | 0644, 1000 },
	{ 0 },
};

static const FakeNode elsewhere[] = {
	{ "/data/config/gh", S_IFDIR | 0700, 1000 },
	{ "/data/claude", S_IFDIR | 0700, 1000 },
	{ "/dev/kvm", S_IFCHR | 0660 },
	{ "/dev/dri/card0", S_IFCHR | 0660 },
	{ 0 },
};

/* Without a repository elsewhere, without links: what most people have. */
static const FakeNode ordinary[] = {
	{ "/srv/database/socket", 0 },
	{ "/srv/queue", 0 },
	{ "~/.cache/bus/socket", 0 },
	{ "~/src/project/server.sock", 0 },
	{ 0 },
};

static void set_ordinary(PlanFixture *fixture)
{
	plan_fixture_add(fixture, ordinary);
	fixture->facts.git_directory = fixture->facts.git_common_directory = NULL;
}

static void set_dotfiles(PlanFixture *fixture)
{
	plan_fixture_add(fixture, dotfiles);
}

static void set_elsewhere(PlanFixture *fixture)
{
	plan_fixture_add(fixture, elsewhere);
	plan_fixture_setenv(fixture, "XDG_CONFIG_HOME=/data/config");
	plan_fixture_setenv(fixture, "CLAUDE_CONFIG_DIR=/data/claude");
	plan_fixture_configure(fixture, CONFIG_ALLOW_DEVICE, "/dev/kvm");
	plan_fixture_configure(fixture, CONFIG_GPU, "1");
}

static const FakeNode guarded[] = {
	{ "~/src/project/node_modules", S_IFDIR | 0755, CALLERS },
	{ "~/src/project/node_modules/.bin", S_IFDIR | 0755, CALLERS },
	{ "~/src/project/node_modules/inner", S_IFDIR | 0755, CALLERS },
	{ "~/.local/share/uv/bin", S_IFDIR | 0755, CALLERS },
	{ 0 },
};

static void set_plain(PlanFixture *fixture)
{
}

static void set_no_forge(PlanFixture *fixture)
{
	plan_fixture_configure(fixture, CONFIG_NO_FORGE, "1");
	plan_fixture_configure(fixture, CONFIG_EGRESS_JAIL, "0");
	fixture->facts.terminal = false;
	fixture->facts.resolver = NULL;
	fixture->facts.git_directory = fixture->facts.git_common_directory = NULL;
}

static void set_linked(PlanFixture *fixture)
{
	plan_fixture_add(fixture, linked);
}

static void set_allowed(PlanFixture *fixture)
{
	plan_fixture_add(fixture, allowed);
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "~/.local/share/applications");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "/run/user/socket");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "~/.ssh/known_hosts");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "/srv/shared");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "/etc/letsencrypt/live");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "~/missing");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "/dev/../srv/queue");
	fixture->sockets[0][0] = '\0';
	strings_append(&fixture->sockets, "/srv/shared/socket");
	fixture->facts.sockets = (const char *const *)fixture->sockets;
	strcpy(fixture->sockets[0], "/run");
}

static void set_passed(PlanFixture *fixture)
{
	static const char *const names[] = { "LINES_OF_TEXT", "SECRET_TOKEN", "TERM",
					     "UNSET",         "PATH",         "IS_SANDBOX" };

	plan_fixture_add(fixture, installed);
	plan_fixture_setenv(fixture, "LINES_OF_TEXT=one\ntwo");
	plan_fixture_setenv(fixture, "IS_SANDBOX=0");
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		plan_fixture_configure(fixture, CONFIG_PASS_ENV, names[i]);
}

static void set_moved(PlanFixture *fixture)
{
	fixture->facts.private_proc = false;
	plan_fixture_add(fixture, moved);
}

/* The second directory is writable for every agent; the mount below the first stays in sight. */
static void set_guarded(PlanFixture *fixture)
{
	plan_fixture_add(fixture, guarded);
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "~/src/project/node_modules/inner");
	plan_fixture_set_path(fixture, "~/src/project/node_modules/.bin:~/.local/bin:~/.local/share/uv/bin:"
				       "/usr/local/bin:relative");
}

/* The home itself given back: the dotfiles stay covered. Only a shell, whose program does not lie there. */
static void set_home_allowed(PlanFixture *fixture)
{
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "~");
}

static const struct {
	const char *name;
	void (*set)(PlanFixture *fixture);
	bool shell_only;
} variants[] = {
	{ "plain", set_plain, false },
	{ "no-forge", set_no_forge, false },
	{ "linked-home", set_linked, false },
	{ "allow-write", set_allowed, false },
	{ "pass-env", set_passed, false },
	{ "var-home", set_moved, false },
	{ "home-allowed", set_home_allowed, true },
	{ "ordinary", set_ordinary, false },
	{ "dotfiles", set_dotfiles, false },
	{ "elsewhere", set_elsewhere, false },
	{ "guard", set_guarded, false },
};

static void print_bytes(FILE *stream, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\n')
			fputs("\\n", stream);
		else
			fputc(text[i], stream);
}

static char *render(const Plan *plan)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	fprintf(stream, "program %s\ncwd %s\nworkspace %s\nprivate-proc %d jailed %d\n", plan->program,
		plan->cwd, plan->workspace, plan->private_proc, plan->jailed);
	for (size_t i = 0; plan->argv[i]; i++) {
		fputs("argument ", stream);
		print_bytes(stream, plan->argv[i], strlen(plan->argv[i]));
		fputc('\n', stream);
	}
	for (size_t i = 0; i < plan->n_entries; i++) {
		const Entry *entry = &plan->entries[i];

		fprintf(stream, "%s %s %s", entry_kind_to_string(entry->kind),
			entry_mode_to_string(entry->mode), entry->destination);
		if (entry->device)
			fputs(" device", stream);
		if (entry->source && !streq(entry->source, entry->destination))
			fprintf(stream, " from %s", entry->source);
		if (entry->permissions)
			fprintf(stream, " %04o", (unsigned)entry->permissions);
		if (entry->data) {
			fputs(" \"", stream);
			print_bytes(stream, entry->data, entry->data_size);
			fputc('"', stream);
		}
		fprintf(stream, " | %s | %s\n", entry->origin, entry->reason);
	}
	for (size_t i = 0; i < plan->n_variables; i++) {
		fprintf(stream, "variable %s=", plan->variables[i].name);
		print_bytes(stream, plan->variables[i].value, strlen(plan->variables[i].value));
		fprintf(stream, " | %s\n", plan->variables[i].origin);
	}
	for (size_t i = 0; plan->warnings && plan->warnings[i]; i++)
		fprintf(stream, "warning %s\n", plan->warnings[i]);
	fclose(stream);
	return text;
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *stream = fopen(path, "re");

	if (!stream)
		return text;
	(void)!fread(text, 1, 65535, stream);
	fclose(stream);
	return text;
}

/* A mask follows every bind that would show what it hides, but for those that allow-write names, and what a
 * link of the home leads to, which is brought back by its name. */
static void check_order(const Plan *plan)
{
	for (size_t i = 0; i < plan->n_entries; i++)
		for (size_t j = i + 1; plan->entries[i].mode == ENTRY_MASKED && j < plan->n_entries; j++) {
			const Entry *mask = &plan->entries[i], *bind = &plan->entries[j];

			if (bind->kind != ENTRY_BIND || bind->mode == ENTRY_MASKED ||
			    !path_is_within(mask->destination, bind->destination) ||
			    streq(bind->reason, "allow-write") ||
			    (streq(mask->origin, "homes") && streq(bind->destination, mask->destination)))
				continue;
			fail_msg("%s comes after the mask of %s", bind->destination, mask->destination);
		}
}

static size_t count_mounts(const Plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_entries; i++)
		n += plan->entries[i].kind != ENTRY_LINK && plan->entries[i].kind != ENTRY_DIRECTORY &&
		     plan->entries[i].kind != ENTRY_DESCRIPTOR;
	return n;
}

static void check_golden(const char *who, const char *agent, size_t variant)
{
	const char *data = getenv("TEST_DATA");
	PlanFixture fixture;
	char *path, *text, *golden;

	assert_non_null(data);
	assert_true(asprintf(&path, "%s/plan/%s-%s-%s.txt", data, who, agent, variants[variant].name) > 0);
	plan_fixture_init(&fixture, variants[variant].set == set_moved && streq(who, "user") ? "moved" : who,
			  agent);
	plan_fixture_install(&fixture, agent);
	variants[variant].set(&fixture);
	if (plan_fixture_make(&fixture) < 0)
		fail_msg("%s: %s: %s", path, fixture.error, fixture.problem);
	assert_true(count_mounts(&fixture.plan) <=
		    PLAN_MOUNTS_ORDINARY + (variants[variant].set == set_ordinary  ? 0u
					    : variants[variant].set == set_guarded ? 20u
										   : 10u));
	check_order(&fixture.plan);
	text = render(&fixture.plan);
	if (getenv("PLAN_WRITE")) {
		FILE *stream = fopen(path, "we");

		assert_non_null(stream);
		fputs(text, stream);
		fclose(stream);
	}
	golden = read_file(path);
	if (!streq(golden, text))
		print_message("%s differs; the plan is now:\n%s\n", path, text);
	assert_string_equal(golden, text);
	free(golden);
	free(text);
	free(path);
	plan_fixture_done(&fixture);
}

static void test_golden(void **state)
{
	static const char *const who[] = { "root", "user" };
	const Profile *profile;

	for (size_t w = 0; w < ELEMENTSOF(who); w++)
		for (size_t a = 0; (profile = profile_at(a)); a++)
			for (size_t v = 0; v < ELEMENTSOF(variants); v++)
				if (!variants[v].shell_only || streq(profile->name, "shell"))
					check_golden(who[w], profile->name, v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
