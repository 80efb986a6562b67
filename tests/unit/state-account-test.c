/* SPDX-License-Identifier: MIT */

/* All account files of an agent, between the home and a project's directory, and the locks that go with them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <time.h>

#include "service/link/pack.h"
#include "service/session/state-lock.h"
#include "service/session/state-mirror.h"
#include "service/session/state-sync.h"
#include "tests/unit/state-fixture.h"

#define DEADLINE_USEC (10 * USEC_PER_SEC)

static void make_directories(const StateFixture *f, const char *name)
{
	for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
		_cleanup_free_ char *part = strndup(name, (size_t)(slash - name)),
				    *path = state_path(f, part);

		if (mkdir(path, 0700) < 0)
			assert_int_equal(errno, EEXIST);
	}
}

/* A home in which no agent ran outside, and the project's directory. */
static StateFixture *begin(void **state, const char *agent)
{
	StateFixture *f = *state;
	_cleanup_free_ char *made = state_path(f, ".claude"), *directory = NULL;

	assert_return_code(rmdir(made), errno);
	state_fixture_list(f, agent, false);
	assert_true(asprintf(&directory, "%s/", f->files.agent + strlen(f->home) + 1) > 0);
	make_directories(f, directory);
	return f;
}

static char *agent_name(const StateFixture *f, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", f->files.agent + strlen(f->home) + 1, name) > 0);
	return path;
}

static int sync_now(StateFixture *f)
{
	f->warnings = strings_free(f->warnings);
	return state_sync(&f->files, &(StateSyncOptions){ .deletions = true }, &f->warnings);
}

static void synced(StateFixture *f)
{
	assert_return_code(sync_now(f), 0);
	if (f->warnings)
		fail_msg("%s", f->warnings[0]);
}

static void warned(const StateFixture *f, const char *word)
{
	if (!f->warnings || !strstr(f->warnings[0], word))
		fail_msg("%s is not warned of: %s", word, f->warnings ? f->warnings[0] : "nothing");
}

static bool exists(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);

	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void remove_name(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);

	assert_return_code(unlink(path), errno);
}

static void make_link(const StateFixture *f, const char *name, const char *text)
{
	_cleanup_free_ char *path = state_path(f, name);

	make_directories(f, name);
	assert_return_code(symlink(text, path), errno);
}

/* ---- every file of every agent ---- */

static void check_file(StateFixture *f, const StateName *name)
{
	_cleanup_free_ char *agent = agent_name(f, name->agent);
	const char *first = name->json ? "{\"a\":1}" : "a = 1\n",
		   *second = name->json ? "{\"a\":2}" : "a = 2\n", *third = name->json ? "{}" : "";

	make_directories(f, agent);
	state_put(f, agent, first);
	synced(f);
	state_holds(f, name->host, first);
	state_put(f, name->host, second);
	synced(f);
	state_holds(f, agent, second);
	state_put(f, agent, third);
	synced(f);
	state_holds(f, name->host, third);

	/* A deletion, as a logout is; then one that came too late. */
	remove_name(f, agent);
	synced(f);
	assert_false(exists(f, name->host));
	state_put(f, name->host, first);
	synced(f);
	remove_name(f, name->host);
	synced(f);
	assert_false(exists(f, agent));
	state_put(f, agent, first);
	synced(f);
	state_put(f, agent, second);
	remove_name(f, name->host);
	synced(f);
	state_holds(f, name->host, second);
	state_holds(f, agent, second);
}

static void check_agent(void **state, const char *agent)
{
	StateFixture *f = begin(state, agent);

	/* What is nowhere is made nowhere. */
	synced(f);
	state_lists(f, ".", ".local");
	assert_true(f->files.n_names >= 3);
	for (size_t i = 0; i < f->files.n_names; i++)
		check_file(f, &f->files.names[i]);
	for (size_t i = 0; i < f->files.n_names; i++) {
		_cleanup_free_ char *next = NULL;

		assert_true(asprintf(&next, PROJECT "/account/%s.next", f->files.names[i].record) > 0);
		assert_false(exists(f, next));
	}
}

static void files_of_claude(void **state)
{
	check_agent(state, "claude");
}

static void files_of_codex(void **state)
{
	check_agent(state, "codex");
}

static void files_of_pi(void **state)
{
	check_agent(state, "pi");
}

static void one_bad_file_keeps_no_other(void **state)
{
	StateFixture *f = begin(state, "claude");

	state_put(f, PROJECT "/.claude/.claude.json", "{");
	state_put(f, PROJECT "/.claude/.credentials.json", "{\"t\":1}");
	state_put(f, PROJECT "/.claude/settings.json", "{\"s\":1}");
	assert_return_code(sync_now(f), 0);
	warned(f, "is not brought to");
	state_holds(f, ".claude/.credentials.json", "{\"t\":1}");
	state_holds(f, ".claude/settings.json", "{\"s\":1}");
	assert_false(exists(f, ".claude.json"));
}

static int64_t changed(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);
	struct stat st;

	assert_return_code(stat(path, &st), errno);
	return st.st_ctim.tv_sec * (int64_t)1000000000 + st.st_ctim.tv_nsec;
}

/* Times go in steps. */
static void put_after(const StateFixture *f, const char *name, const char *text, const char *other)
{
	time_t end = time(NULL) + 10;

	do
		state_put(f, name, text);
	while (changed(f, name) <= changed(f, other) && time(NULL) < end);
}

/* The one that was changed last, whatever times an agent gives it. */
static void of_whole_files_the_newer_holds(void **state)
{
	StateFixture *f = begin(state, "claude");
	_cleanup_free_ char *agent = state_path(f, PROJECT "/.claude/CLAUDE.md"), *command = NULL;
	const struct timespec future[2] = { { .tv_sec = time(NULL) + 100000 },
					    { .tv_sec = time(NULL) + 100000 } };

	state_put(f, PROJECT "/.claude/CLAUDE.md", "both");
	synced(f);
	state_put(f, PROJECT "/.claude/CLAUDE.md", "the agent's");
	assert_return_code(utimensat(AT_FDCWD, agent, future, 0), errno);
	put_after(f, ".claude/CLAUDE.md", "the person's", PROJECT "/.claude/CLAUDE.md");
	synced(f);
	state_holds(f, PROJECT "/.claude/CLAUDE.md", "the person's");
	assert_true(asprintf(&command,
			     "grep -qF \"the agent's\" %s/" PROJECT "/.claude/backups/CLAUDE.md.replaced.*",
			     f->home) > 0);
	assert_int_equal(system(command), 0);

	state_put(f, ".claude/CLAUDE.md", "the person's second");
	put_after(f, PROJECT "/.claude/CLAUDE.md", "the agent's second", ".claude/CLAUDE.md");
	synced(f);
	state_holds(f, ".claude/CLAUDE.md", "the agent's second");
}

/* ---- links ---- */

static void link_to_dotfiles_is_kept(void **state)
{
	StateFixture *f = begin(state, "claude");

	make_link(f, ".claude/settings.json", "../dotfiles/claude/settings.json");
	make_directories(f, "dotfiles/claude/");
	state_put(f, "dotfiles/claude/settings.json", "{\"a\":1}");
	synced(f);
	state_holds(f, PROJECT "/.claude/settings.json", "{\"a\":1}");
	state_put(f, PROJECT "/.claude/settings.json", "{\"a\":2}");
	synced(f);
	state_holds(f, "dotfiles/claude/settings.json", "{\"a\":2}");
	state_lists(f, "dotfiles/claude", "settings.json");
	assert_true(exists(f, ".claude/settings.json"));
}

static void home_file_may_lie_in_the_state(void **state)
{
	StateFixture *f = begin(state, "claude");

	make_link(f, ".claude.json", ".claude/of-another.json");
	make_directories(f, ".claude/");
	state_put(f, ".claude/of-another.json", "{\"a\":1}");
	synced(f);
	state_put(f, PROJECT "/.claude/.claude.json", "{\"a\":2}");
	synced(f);
	state_holds(f, ".claude/of-another.json", "{\"a\":2}");
}

/* An agent could have made it when it still had the person's directory, or makes the second one in its workspace. */
static void link_of_an_agents_leads_nowhere(void **state)
{
	StateFixture *f = begin(state, "claude");

	make_directories(f, ".ssh/");
	state_put(f, ".ssh/id", "secret");
	make_link(f, ".claude/CLAUDE.md", "../.ssh/id");
	assert_true(sync_now(f) < 0);
	warned(f, "where credentials lie");
	assert_false(exists(f, PROJECT "/.claude/CLAUDE.md"));
	remove_name(f, ".claude/CLAUDE.md");

	/* The home of a test may lie in a place of the system. */
	assert_return_code(view_add_writable(&f->view, f->home), 0);
	make_link(f, "demo/x/CLAUDE.md", "../../.bashrc");
	state_put(f, ".bashrc", "the person's");
	make_link(f, ".claude/CLAUDE.md", "../demo/x/CLAUDE.md");
	state_put(f, PROJECT "/.claude/CLAUDE.md", "the agent's");
	assert_true(sync_now(f) < 0);
	warned(f, "cannot be followed");
	state_holds(f, ".bashrc", "the person's");
}

static void agents_directory_is_no_link(void **state)
{
	StateFixture *f = begin(state, "pi");

	make_directories(f, "elsewhere/");
	state_put(f, "elsewhere/auth.json", "{\"token\":1}");
	make_link(f, PROJECT "/.pi/agent", "../../../../../../elsewhere");
	assert_true(sync_now(f) < 0);
	assert_false(exists(f, ".pi/agent/auth.json"));
	state_put(f, "elsewhere/auth.json", "{\"token\":1}");
	make_directories(f, ".pi/agent/");
	state_put(f, ".pi/agent/auth.json", "{\"token\":2}");
	assert_true(sync_now(f) < 0);
	state_holds(f, "elsewhere/auth.json", "{\"token\":1}");
}

/* ---- locks ---- */

#define INSIDE PROJECT "/.claude/.oauth_refresh.lock"
#define OUTSIDE ".claude/.oauth_refresh.lock"

typedef struct Mirrored {
	StateFixture *f;
	sd_event *event;
	StateMirror *mirror;
	unsigned let_go;
} Mirrored;

static void on_let_go(void *userdata)
{
	Mirrored *m = userdata;

	m->let_go++;
}

static Mirrored mirror_begin(StateFixture *f)
{
	Mirrored m = { .f = f };

	assert_return_code(sd_event_new(&m.event), 0);
	return m;
}

static void mirror_start(Mirrored *m)
{
	assert_return_code(state_mirror_new(m->event, &m->f->files, on_let_go, m, &m->mirror), 0);
	state_mirror_watch(m->mirror);
}

static void mirror_end(Mirrored *m)
{
	m->mirror = state_mirror_free(m->mirror);
	(void)sd_event_unref(m->event);
}

static void until_exists(const Mirrored *m, const char *name, bool wanted)
{
	uint64_t now = 0, end;

	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	for (end = now + DEADLINE_USEC; exists(m->f, name) != wanted && now < end;) {
		assert_return_code(sd_event_run(m->event, 100 * USEC_PER_MSEC), 0);
		(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	}
	if (exists(m->f, name) != wanted)
		fail_msg("%s is %sthere", name, wanted ? "not " : "");
}

static void until_let_go(const Mirrored *m, unsigned n)
{
	for (unsigned i = 0; m->let_go < n && i < 100; i++)
		assert_return_code(sd_event_run(m->event, 100 * USEC_PER_MSEC), 0);
	assert_true(m->let_go >= n);
}

static void take_lock(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);

	assert_return_code(mkdir(path, 0755), errno);
}

static void drop_lock(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);

	assert_return_code(rmdir(path), errno);
}

static void locks_are_made_on_the_other_side(void **state)
{
	static const char *const sides[] = { INSIDE, OUTSIDE };
	StateFixture *f = begin(state, "claude");
	Mirrored m = mirror_begin(f);

	make_directories(f, OUTSIDE);
	mirror_start(&m);
	for (unsigned i = 0; i < 2; i++) {
		take_lock(f, sides[i]);
		until_exists(&m, sides[!i], true);
		drop_lock(f, sides[i]);
		until_let_go(&m, i + 1);
		/* Not before the files are the same. */
		assert_true(exists(f, sides[!i]));
		state_mirror_release(m.mirror);
		assert_false(exists(f, sides[!i]));
	}
	/* One that is there before the agent runs. */
	mirror_end(&m);
	take_lock(f, OUTSIDE);
	m = mirror_begin(f);
	mirror_start(&m);
	assert_true(exists(f, INSIDE));
	mirror_end(&m);
	assert_false(exists(f, INSIDE));
	assert_true(exists(f, OUTSIDE));
}

/* What stands for a lock holds as long as that is refreshed, and keeps no write of ours waiting. */
static void locks_are_refreshed_and_grow_old(void **state)
{
	const struct timespec past[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	StateFixture *f = begin(state, "claude");
	_cleanup_free_ char *inside = state_path(f, INSIDE), *outside = state_path(f, OUTSIDE);
	Mirrored m = mirror_begin(f);
	struct stat st;

	make_directories(f, OUTSIDE);
	mirror_start(&m);
	take_lock(f, INSIDE);
	until_exists(&m, OUTSIDE, true);
	assert_return_code(utimensat(AT_FDCWD, outside, past, 0), errno);
	assert_return_code(utimensat(AT_FDCWD, inside, NULL, 0), errno);
	for (unsigned i = 0; i < 100; i++) {
		assert_return_code(stat(outside, &st), errno);
		if (!state_lock_is_old(&st))
			break;
		assert_return_code(sd_event_run(m.event, 100 * USEC_PER_MSEC), 0);
	}
	assert_false(state_lock_is_old(&st));
	mirror_end(&m);
	assert_false(exists(f, OUTSIDE));
	drop_lock(f, INSIDE);

	/* A killed session's: nobody refreshes it. */
	assert_return_code(mkdir(outside, STATE_MIRROR_MODE), errno);
	assert_return_code(utimensat(AT_FDCWD, outside, past, 0), errno);
	assert_return_code(mkdir(inside, STATE_MIRROR_MODE), errno);
	m = mirror_begin(f);
	mirror_start(&m);
	assert_false(exists(f, OUTSIDE));
	until_exists(&m, INSIDE, true);
	state_mirror_watch(m.mirror);
	assert_false(exists(f, INSIDE));
	mirror_end(&m);
}

/* Of two jails of one person the agents hold each other off, too. */
static void locks_reach_other_projects(void **state)
{
	StateFixture *f = begin(state, "claude");
	_cleanup_free_ char *other = state_path(f, "other");
	StateFiles files = f->files;
	Mirrored m = mirror_begin(f);
	StateMirror *second = NULL;

	make_directories(f, OUTSIDE);
	assert_return_code(mkdir(other, 0700), errno);
	files.agent = other;
	mirror_start(&m);
	assert_return_code(state_mirror_new(m.event, &files, on_let_go, &m, &second), 0);
	state_mirror_watch(second);
	take_lock(f, INSIDE);
	until_exists(&m, "other/.oauth_refresh.lock", true);
	drop_lock(f, INSIDE);
	until_let_go(&m, 1);
	state_mirror_release(m.mirror);
	assert_false(exists(f, OUTSIDE));
	until_let_go(&m, 2);
	state_mirror_release(second);
	assert_false(exists(f, "other/.oauth_refresh.lock"));
	second = state_mirror_free(second);
	mirror_end(&m);
}

#define WITH_HOME(name) cmocka_unit_test_setup_teardown(name, state_fixture_make, state_fixture_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_HOME(files_of_claude),
		WITH_HOME(files_of_codex),
		WITH_HOME(files_of_pi),
		WITH_HOME(one_bad_file_keeps_no_other),
		WITH_HOME(of_whole_files_the_newer_holds),
		WITH_HOME(link_to_dotfiles_is_kept),
		WITH_HOME(home_file_may_lie_in_the_state),
		WITH_HOME(link_of_an_agents_leads_nowhere),
		WITH_HOME(agents_directory_is_no_link),
		WITH_HOME(locks_are_made_on_the_other_side),
		WITH_HOME(locks_are_refreshed_and_grow_old),
		WITH_HOME(locks_reach_other_projects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
