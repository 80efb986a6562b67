/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#include "service/link/pack.h"
#include "service/session/state-backup.h"
#include "service/session/state-lock.h"
#include "service/session/state-sync.h"
#include "service/session/state-take.h"
#include "tests/unit/state-fixture.h"

static int sync_as(StateFixture *f, bool launch)
{
	f->warnings = strings_free(f->warnings);
	return state_sync(&f->files, &(StateSyncOptions){ .launch = launch, .deletions = true },
			  &f->warnings);
}

static void synced(StateFixture *f)
{
	assert_return_code(sync_as(f, true), 0);
	if (f->warnings)
		fail_msg("%s", f->warnings[0]);
}

static void warned(const StateFixture *f, const char *word)
{
	if (!f->warnings || !strstr(f->warnings[0], word))
		fail_msg("%s is not warned of: %s", word, f->warnings ? f->warnings[0] : "nothing");
	assert_null(f->warnings[1]);
}

static void both_hold(const StateFixture *f, const char *text)
{
	state_holds(f, HOST_FILE, text);
	state_holds(f, AGENT_FILE, text);
}

static struct stat stat_of(const StateFixture *f, const char *name)
{
	_cleanup_free_ char *path = state_path(f, name);
	struct stat st;

	assert_return_code(lstat(path, &st), errno);
	return st;
}

/* ---- who is followed ---- */

static void first_launch_imports(void **state)
{
	StateFixture *f = *state;

	state_put(f, HOST_FILE, "{\"a\": 1}\n");
	assert_false(state_files_unchanged(&f->files));
	synced(f);
	both_hold(f, "{\"a\": 1}\n");
	assert_int_equal(stat_of(f, AGENT_FILE).st_mode, S_IFREG | 0600);
	state_lists(f, ".claude", ".claude.json");
	state_lists(f, ".", ".claude .claude.json .local");
	state_lists(f, RECORD, ".claude.json .claude.json.seen");
}

static void nothing_comes_from_nothing(void **state)
{
	StateFixture *f = *state;

	assert_true(state_files_unchanged(&f->files));
	synced(f);
	state_lists(f, ".claude", "");
	state_lists(f, ".", ".claude");
	assert_true(state_files_unchanged(&f->files));
}

static void each_side_is_followed(void **state)
{
	StateFixture *f = *state;

	state_put(f, AGENT_FILE, "{\"a\":1}");
	synced(f);
	both_hold(f, "{\"a\":1}");
	assert_int_equal(stat_of(f, HOST_FILE).st_mode, S_IFREG | 0600);
	state_put(f, AGENT_FILE, "{\"a\":2}");
	synced(f);
	both_hold(f, "{\"a\":2}");
	state_put(f, HOST_FILE, "{\"a\":3}");
	synced(f);
	both_hold(f, "{\"a\":3}");
	state_lists(f, ".claude", ".claude.json");
}

static void mode_is_kept(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *path = state_path(f, HOST_FILE);

	state_put(f, HOST_FILE, "{}");
	assert_return_code(chmod(path, 0640), errno);
	synced(f);
	state_put(f, AGENT_FILE, "{\"a\":2}");
	synced(f);
	both_hold(f, "{\"a\":2}");
	assert_int_equal(stat_of(f, HOST_FILE).st_mode, S_IFREG | 0640);
	assert_int_equal(stat_of(f, AGENT_FILE).st_mode, S_IFREG | 0600);
}

/* A deletion is followed while the other side is what both had; else the file comes back. */
static void deletions_are_followed(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *host = state_path(f, HOST_FILE), *agent = state_path(f, AGENT_FILE);

	for (int side = 0; side < 2; side++) {
		const char *deleted = side ? host : agent, *other = side ? AGENT_FILE : HOST_FILE;

		state_put(f, HOST_FILE, "{\"a\":1}");
		synced(f);
		assert_return_code(unlink(deleted), errno);
		/* It may be made again in a moment. */
		assert_int_equal(state_sync(&f->files, &(StateSyncOptions){ 0 }, &f->warnings), 1);
		state_holds(f, other, "{\"a\":1}");
		assert_return_code(sync_as(f, false), 0);
		assert_null(f->warnings);
		state_lists(f, ".claude", "");
		state_lists(f, ".", ".claude .local");
		state_lists(f, RECORD, "");

		state_put(f, HOST_FILE, "{\"a\":1}");
		synced(f);
		assert_return_code(unlink(deleted), errno);
		state_put(f, other, "{\"a\":2}");
		assert_return_code(sync_as(f, false), 0);
		both_hold(f, "{\"a\":2}");
	}
}

/* Before an agent runs, its directory may be a new one: nothing was deleted there. */
static void a_new_directory_deletes_nothing(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *host = state_path(f, HOST_FILE), *agent = state_path(f, AGENT_FILE);

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	assert_return_code(unlink(agent), errno);
	synced(f);
	both_hold(f, "{\"a\":1}");
	/* But what the person deleted stays so. */
	assert_return_code(unlink(host), errno);
	synced(f);
	state_lists(f, ".claude", "");
	state_lists(f, ".", ".claude .local");
}

static void both_are_merged(void **state)
{
	StateFixture *f = *state;

	state_put(f, HOST_FILE, "{\"a\":1,\"b\":1}");
	synced(f);
	state_put(f, HOST_FILE, "{\"a\":2,\"b\":1}");
	state_put(f, AGENT_FILE, "{\"a\":1,\"b\":2}");
	synced(f);
	both_hold(f, "{\n  \"a\": 2,\n  \"b\": 2\n}");
	/* Nobody lost. */
	state_lists(f, ".claude", ".claude.json");
}

static void loser_is_kept(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *command = NULL, *backups = state_path(f, ".claude/backups");

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	state_put(f, HOST_FILE, "{\"a\":2}");
	state_put(f, AGENT_FILE, "{\"a\":3}");
	synced(f);
	both_hold(f, "{\"a\":2}");
	assert_true(asprintf(&command, "grep -lF '{\"a\":3}' %s/.claude.json.replaced.* >/dev/null",
			     backups) > 0);
	assert_int_equal(system(command), 0);
}

static void losers_do_not_pile_up(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *command = NULL, *backups = state_path(f, ".claude/backups");

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	state_put(f, ".claude/other", "");
	for (unsigned i = 0; i < 2 * STATE_BACKUPS_MAX; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "{\"a\":%u}", 100 + i);
		state_put(f, AGENT_FILE, text);
		state_put(f, HOST_FILE, "{\"a\":2}");
		synced(f);
		(void)snprintf(text, sizeof(text), "{\"a\":%u,\"b\":1}", 200 + i);
		state_put(f, HOST_FILE, text);
		synced(f);
	}
	/* The newest are there. */
	assert_true(asprintf(&command,
			     "test $(ls -A %s | wc -l) = %u && grep -qF '{\"a\":119}' %s/.claude.json.*",
			     backups, STATE_BACKUPS_MAX, backups) > 0);
	assert_int_equal(system(command), 0);
}

static void settled_files_cost_a_look(void **state)
{
	StateFixture *f = *state;
	time_t end = time(NULL) + 5;

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	/* Right after a change another one might look the same. */
	while (!state_files_unchanged(&f->files) && time(NULL) < end) {
		(void)poll(NULL, 0, 10);
		synced(f);
	}
	assert_true(state_files_unchanged(&f->files));
	const struct stat before = stat_of(f, HOST_FILE), home = stat_of(f, ".");
	synced(f);
	const struct stat after = stat_of(f, HOST_FILE), home_after = stat_of(f, ".");
	assert_int_equal(before.st_ino, after.st_ino);
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
	assert_memory_equal(&home.st_mtim, &home_after.st_mtim, sizeof(home.st_mtim));
	state_put(f, AGENT_FILE, "{\"a\":1}");
	assert_false(state_files_unchanged(&f->files));
}

/* ---- links of the person's ---- */

static void link_into_dotfiles_is_kept(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *dotfiles = state_path(f, "dotfiles"), *link = state_path(f, HOST_FILE);

	assert_return_code(mkdir(dotfiles, 0700), errno);
	state_put(f, "dotfiles/claude.json", "{\"a\":1}");
	assert_return_code(symlink("dotfiles/claude.json", link), errno);
	synced(f);
	state_put(f, AGENT_FILE, "{\"a\":2}");
	synced(f);
	assert_true(S_ISLNK(stat_of(f, HOST_FILE).st_mode));
	state_holds(f, "dotfiles/claude.json", "{\"a\":2}");
	state_lists(f, "dotfiles", "claude.json");
}

static void dangling_link_is_followed(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *dotfiles = state_path(f, "dotfiles"), *link = state_path(f, HOST_FILE);

	assert_return_code(mkdir(dotfiles, 0700), errno);
	assert_return_code(symlink("dotfiles/claude.json", link), errno);
	state_put(f, AGENT_FILE, "{\"a\":2}");
	synced(f);
	assert_true(S_ISLNK(stat_of(f, HOST_FILE).st_mode));
	state_holds(f, "dotfiles/claude.json", "{\"a\":2}");
}

static void missing_directory_is_told(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *link = state_path(f, HOST_FILE);

	assert_return_code(symlink("nowhere/claude.json", link), errno);
	state_put(f, AGENT_FILE, "{\"a\":2}");
	assert_int_equal(sync_as(f, true), -ENOLINK);
	warned(f, "nowhere");
	state_holds(f, AGENT_FILE, "{\"a\":2}");
}

/* ---- what is no state ---- */

typedef void (*Spoil)(const StateFixture *f, const char *path);

static void spoil_text(const StateFixture *f, const char *path)
{
	state_put(f, AGENT_FILE, "{\"a\":");
}

static void spoil_zeros(const StateFixture *f, const char *path)
{
	state_put(f, AGENT_FILE, "");
	assert_return_code(truncate(path, 4096), errno);
}

static void spoil_size(const StateFixture *f, const char *path)
{
	state_put(f, AGENT_FILE, "{}");
	assert_return_code(truncate(path, 1l << 30), errno);
}

static void spoil_fifo(const StateFixture *f, const char *path)
{
	assert_return_code(mkfifo(path, 0600), errno);
}

static void spoil_directory(const StateFixture *f, const char *path)
{
	assert_return_code(mkdir(path, 0700), errno);
	state_put(f, AGENT_FILE "/x", "");
}

static void spoil_device(const StateFixture *f, const char *path)
{
	/* /dev/zero: reading it would not end. */
	assert_return_code(mknod(path, S_IFCHR | 0600, (dev_t)(1 << 8 | 5)), errno);
}

static const Spoil spoils[] = {
	spoil_text, spoil_zeros, spoil_size, spoil_fifo, spoil_directory, spoil_device
};

static void no_state_is_never_published(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *path = state_path(f, AGENT_FILE);

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	for (size_t i = 0; i < ELEMENTSOF(spoils); i++) {
		if (spoils[i] == spoil_device && getuid() != 0)
			continue;
		assert_return_code(unlink(path), errno);
		spoils[i](f, path);
		/* While an agent runs it stays; the person's is as it was. */
		assert_return_code(sync_as(f, false), 0);
		warned(f, "is not brought to");
		state_holds(f, HOST_FILE, "{\"a\":1}");
		/* The next launch begins with what there was. */
		synced(f);
		both_hold(f, "{\"a\":1}");
	}
	state_lists(f, ".claude", ".claude.json backups");
}

static void agents_link_is_never_followed(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *path = state_path(f, AGENT_FILE);

	state_put(f, HOST_FILE, "{\"a\":1}");
	state_put(f, "secret", "{\"token\":1}");
	assert_return_code(symlink("../secret", path), errno);
	for (int launch = 0; launch < 2; launch++) {
		assert_return_code(sync_as(f, launch), 0);
		warned(f, "not a file of yours");
		state_holds(f, HOST_FILE, "{\"a\":1}");
		state_holds(f, "secret", "{\"token\":1}");
	}
}

static void persons_spoilt_file_is_left(void **state)
{
	StateFixture *f = *state;

	state_put(f, HOST_FILE, "{\"a\":");
	state_put(f, AGENT_FILE, "{\"a\":1}");
	assert_return_code(sync_as(f, true), 0);
	warned(f, "not a JSON object");
	state_holds(f, HOST_FILE, "{\"a\":");
	state_holds(f, AGENT_FILE, "{\"a\":1}");
}

static void hostile_directory_loses_nothing(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *backups = state_path(f, ".claude/backups"),
			    *successor = state_path(f, AGENT_FILE STATE_SUCCESSOR_SUFFIX);

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	state_put(f, HOST_FILE, "{\"a\":2}");
	state_put(f, AGENT_FILE, "{\"a\":3}");
	assert_return_code(symlink("/", backups), errno);
	assert_true(sync_as(f, true) < 0);
	warned(f, "not brought together");
	state_holds(f, HOST_FILE, "{\"a\":2}");
	state_holds(f, AGENT_FILE, "{\"a\":3}");
	assert_return_code(unlink(backups), errno);
	assert_return_code(mkdir(successor, 0700), errno);
	assert_true(sync_as(f, true) < 0);
	state_holds(f, HOST_FILE, "{\"a\":2}");
	state_holds(f, AGENT_FILE, "{\"a\":3}");
	assert_return_code(rmdir(successor), errno);
	synced(f);
	both_hold(f, "{\"a\":2}");
}

/* ---- others at the files ---- */

static void locks_of_claude_are_respected(void **state)
{
	StateFixture *f = *state;
	static const char *const locks[] = { HOST_FILE STATE_LOCK_SUFFIX, AGENT_FILE STATE_LOCK_SUFFIX };
	static const char *const changed[] = { AGENT_FILE, HOST_FILE };

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	for (size_t i = 0; i < ELEMENTSOF(locks); i++) {
		_cleanup_free_ char *lock = state_path(f, locks[i]), *old = state_get(f, locks[1 - i]);
		const struct timespec past[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
		_cleanup_free_ char *text = NULL;

		assert_null(old);
		assert_true(asprintf(&text, "{\"a\":%zu}", i + 2) > 0);
		state_put(f, changed[i], text);
		assert_return_code(mkdir(lock, 0700), errno);
		assert_int_equal(sync_as(f, true), -EAGAIN);
		assert_null(f->warnings);
		/* Its holder is dead for long. */
		assert_return_code(utimensat(AT_FDCWD, lock, past, 0), errno);
		synced(f);
		both_hold(f, text);
		assert_true(access(lock, F_OK) < 0);
	}
}

static void lease_is_not_waited_for(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *path = state_path(f, AGENT_FILE);
	_cleanup_close_ int fd = FD_NONE;

	state_put(f, AGENT_FILE, "{\"a\":1}");
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_return_code(fd, errno);
	assert_return_code(fcntl(fd, F_SETSIG, SIGURG), errno);
	assert_return_code(fcntl(fd, F_SETLEASE, F_WRLCK), errno);
	assert_int_equal(sync_as(f, false), -EAGAIN);
	close_fdp(&fd);
	synced(f);
	state_holds(f, HOST_FILE, "{\"a\":1}");
}

#define SAVES 100

static void save_all(const StateFixture *f, const char *directory, char who)
{
	for (unsigned i = 0; i < SAVES; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "%c%u", who, i);
		while (!state_save(f, directory, key))
			(void)poll(NULL, 0, 1);
	}
	_exit(0);
}

static void sync_until_killed(const StateFixture *f)
{
	StateFiles files = f->files;

	/* A session of its own, as far as the lock goes. */
	files.lock_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (;;) {
		char **warnings = NULL;
		int r = state_sync(&files, &(StateSyncOptions){ .deletions = true }, &warnings);

		if ((r < 0 && r != -EAGAIN) || warnings) {
			(void)fprintf(stderr, "sync: %d, %s\n", r, warnings ? warnings[0] : "");
			_exit(1);
		}
		(void)poll(NULL, 0, 2);
	}
}

static void saves_of_three_are_never_lost(void **state)
{
	StateFixture *f = *state;
	pid_t writers[3], syncers[2];
	int status;

	state_put(f, HOST_FILE, "{}");
	synced(f);
	for (size_t i = 0; i < ELEMENTSOF(syncers); i++)
		if ((syncers[i] = fork()) == 0)
			sync_until_killed(f);
	for (size_t i = 0; i < ELEMENTSOF(writers); i++)
		if ((writers[i] = fork()) == 0)
			save_all(f, i < 2 ? ".claude" : ".", (char)('x' + i));
	for (size_t i = 0; i < ELEMENTSOF(writers); i++) {
		assert_return_code(waitpid(writers[i], &status, 0), errno);
		assert_int_equal(status, 0);
	}
	for (size_t i = 0; i < ELEMENTSOF(syncers); i++) {
		assert_return_code(kill(syncers[i], SIGKILL), errno);
		assert_return_code(waitpid(syncers[i], &status, 0), errno);
		assert_true(WIFSIGNALED(status));
	}
	synced(f);
	_cleanup_free_ char *host = state_get(f, HOST_FILE);
	both_hold(f, host);
	for (size_t i = 0; i < ELEMENTSOF(writers); i++)
		for (unsigned j = 0; j < SAVES; j++) {
			char key[16];

			(void)snprintf(key, sizeof(key), "\"%c%u\"", (char)('x' + i), j);
			if (!strstr(host, key))
				fail_msg("%s is lost", key);
		}
	state_lists(f, ".", ".claude .claude.json .local");
}

/* ---- what replaces the link inside ---- */

static void taken_file_comes_out(void **state)
{
	StateFixture *f = *state;
	_cleanup_free_ char *jail = state_path(f, "jail"), *link = state_path(f, "jail/" HOST_FILE);
	_cleanup_close_ int fd = FD_NONE;
	char text[64] = "";

	state_put(f, HOST_FILE, "{\"a\":1}");
	synced(f);
	assert_return_code(mkdir(jail, 0700), errno);
	fd = open(jail, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_return_code(symlink(AGENT_FILE, link), errno);
	assert_int_equal(state_take(&f->files, fd, &f->warnings), 0);
	state_put(f, "jail/" HOST_FILE, "{\"a\":2}");
	assert_int_equal(state_take(&f->files, fd, &f->warnings), 1);
	assert_null(f->warnings);
	state_holds(f, AGENT_FILE, "{\"a\":2}");
	assert_true(readlink(link, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, AGENT_FILE);
	state_lists(f, "jail", HOST_FILE);
	synced(f);
	both_hold(f, "{\"a\":2}");

	/* What is no state stays where it is, and costs nothing but a warning. */
	state_put(f, "jail/" HOST_FILE, "{\"a\":");
	assert_int_equal(state_take(&f->files, fd, &f->warnings), 0);
	warned(f, "was not kept");
	state_holds(f, "jail/" HOST_FILE, "{\"a\":");
	both_hold(f, "{\"a\":2}");
}

#define WITH_HOME(name) cmocka_unit_test_setup_teardown(name, state_fixture_make, state_fixture_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_HOME(first_launch_imports),
		WITH_HOME(nothing_comes_from_nothing),
		WITH_HOME(each_side_is_followed),
		WITH_HOME(mode_is_kept),
		WITH_HOME(deletions_are_followed),
		WITH_HOME(a_new_directory_deletes_nothing),
		WITH_HOME(both_are_merged),
		WITH_HOME(loser_is_kept),
		WITH_HOME(losers_do_not_pile_up),
		WITH_HOME(settled_files_cost_a_look),
		WITH_HOME(link_into_dotfiles_is_kept),
		WITH_HOME(dangling_link_is_followed),
		WITH_HOME(missing_directory_is_told),
		WITH_HOME(no_state_is_never_published),
		WITH_HOME(agents_link_is_never_followed),
		WITH_HOME(persons_spoilt_file_is_left),
		WITH_HOME(hostile_directory_loses_nothing),
		WITH_HOME(locks_of_claude_are_respected),
		WITH_HOME(lease_is_not_waited_for),
		WITH_HOME(saves_of_three_are_never_lost),
		WITH_HOME(taken_file_comes_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
