/* SPDX-License-Identifier: MIT */

/* Rows of mounts and of what private directories hold, on real mounts in a mount namespace of the test's own.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/inside/battery.h"
#include "service/inside/checks.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"

#define BASE "/tmp/checks-mounts"
#define BIND_FLAGS (MS_NOSUID | MS_NODEV)

enum { ENTRY_ROOT, ENTRY_OPEN, ENTRY_CLOSED, ENTRY_HOME, ENTRY_MASK, ENTRY_TEXT, ENTRY_ALIAS, N_ENTRIES };

static ExpectedEntry entries[N_ENTRIES];
static Expectations e;
static size_t found; /* findings of the last run */

/* Return: a line's number, or 0. */
#define CHECK(condition)                               \
	do {                                           \
		if (!(condition))                      \
			return (__LINE__ & 0xff) ?: 1; \
	} while (0)

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	bool done =
		fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, 0444) == 0;

	(void)close(fd);
	return done ? 0 : -1;
}

static int bind_on(const char *source, const char *place, unsigned long flags)
{
	return mount(source, place, NULL, MS_BIND, NULL) < 0
		       ? -1
		       : mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
}

static int make_places(void)
{
	static const char *const directories[] = { BASE "/source", BASE "/other", BASE "/open",
						   BASE "/closed", BASE "/home",  BASE "/mask" };

	(void)mkdir(BASE, 0755);
	if (mount("tmpfs", BASE, "tmpfs", BIND_FLAGS, "mode=0755") < 0)
		return -1;
	for (size_t i = 0; i < ELEMENTSOF(directories); i++)
		if (mkdir(directories[i], 0755) < 0)
			return -1;
	return write_file(BASE "/source/file", "source") | write_file(BASE "/text", "text") |
	       write_file(BASE "/made", "made");
}

static int make_mounts(void)
{
	if (bind_on(BASE "/source", BASE "/open", BIND_FLAGS) < 0 ||
	    bind_on(BASE "/source", BASE "/closed", BIND_FLAGS | MS_RDONLY) < 0 ||
	    mount("tmpfs", BASE "/home", "tmpfs", BIND_FLAGS, "mode=0755") < 0 ||
	    mount("tmpfs", BASE "/mask", "tmpfs", BIND_FLAGS, "mode=0700") < 0 ||
	    bind_on(BASE "/made", BASE "/text", BIND_FLAGS | MS_RDONLY) < 0)
		return -1;
	return symlink("open/file", BASE "/home/alias");
}

static void expect_all(void)
{
	char *host = measure_text("/proc/self/mountinfo", 1 << 22, NULL);

	entries[ENTRY_ROOT] =
		(ExpectedEntry){ .kind = ENTRY_BIND, .path = (char *)"/", .source = (char *)"/" };
	entries[ENTRY_OPEN] = (ExpectedEntry){ .kind = ENTRY_BIND,
					       .mode = ENTRY_RW,
					       .path = (char *)BASE "/open",
					       .source = (char *)BASE "/source" };
	entries[ENTRY_CLOSED] = (ExpectedEntry){ .kind = ENTRY_BIND,
						 .path = (char *)BASE "/closed",
						 .source = (char *)BASE "/source" };
	entries[ENTRY_HOME] = (ExpectedEntry){
		.kind = ENTRY_TMPFS, .mode = ENTRY_PRIVATE, .permissions = 0755, .path = (char *)BASE "/home"
	};
	entries[ENTRY_MASK] = (ExpectedEntry){
		.kind = ENTRY_TMPFS, .mode = ENTRY_PRIVATE, .permissions = 0700, .path = (char *)BASE "/mask"
	};
	entries[ENTRY_TEXT] = (ExpectedEntry){ .kind = ENTRY_FILE,
					       .permissions = 0444,
					       .path = (char *)BASE "/text",
					       .data = (void *)"made",
					       .data_size = 4 };
	entries[ENTRY_ALIAS] = (ExpectedEntry){ .kind = ENTRY_LINK,
						.mode = ENTRY_PRIVATE,
						.path = (char *)BASE "/home/alias",
						.data = (void *)"open/file",
						.data_size = 9 };
	for (size_t i = 0; i < N_ENTRIES; i++) {
		entries[i].origin = (char *)"test";
		if (entries[i].source)
			entries[i].object = measure_object(entries[i].source);
	}
	e = (Expectations){
		.entries = entries, .n_entries = N_ENTRIES, .program = (char *)"/bin/sh", .uid = getuid()
	};
	/* "/" is the machine's, with all its mounts; what the row of scope says of it is not asked. */
	e.host_mounts = host;
	entries[ENTRY_ROOT].covers_listener = true;
}

/* Those of the test lie below /tmp: one row. */
static void run_own(Battery *b)
{
	mounts_judge(b, "11");
	check_contents(b, "11");
	found = battery_failures(b);
}

static void run_others(Battery *b)
{
	mounts_judge_others(b);
	found = battery_failures(b);
}

static size_t findings(void (*run)(Battery *b))
{
	const Check check = { "11", "test", run };
	_cleanup_(battery_freep) Battery *b = NULL;
	int pair[2];

	found = SIZE_MAX;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    !(b = battery_new(&e, pair[1])))
		return SIZE_MAX;
	battery_run(b, &check, 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return found;
}

static int write_map(const char *path, unsigned id)
{
	char text[64];
	int fd = open(path, O_WRONLY | O_CLOEXEC), n = snprintf(text, sizeof(text), "%u %u 1", id, id);
	bool done = fd >= 0 && write(fd, text, (size_t)n) == n;

	(void)close(fd);
	return done ? 0 : -1;
}

static int enter(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -1;
	fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "deny", 4) != 4 || close(fd) < 0)
		return -1;
	return write_map("/proc/self/uid_map", uid) < 0 || write_map("/proc/self/gid_map", gid) < 0 ||
			       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		       ? -1
		       : 0;
}

static int in_namespace(int (*function)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (enter() < 0 || make_places() < 0)
			_exit(250);
		expect_all();
		if (make_mounts() < 0)
			_exit(251);
		_exit(function());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int each_difference_is_found(void)
{
	mode_t mode = entries[ENTRY_HOME].permissions;

	CHECK(findings(run_own) == 0);

	/* missing */
	CHECK(umount2(BASE "/mask", MNT_DETACH) == 0 && findings(run_own) == 1);
	CHECK(mount("tmpfs", BASE "/mask", "tmpfs", BIND_FLAGS, "mode=0700") == 0 && findings(run_own) == 0);
	/* covered by something else, which is not seen by the number of mounts */
	CHECK(mount("tmpfs", BASE "/closed", "tmpfs", BIND_FLAGS, "mode=0755") == 0 && findings(run_own) > 0);
	CHECK(umount2(BASE "/closed", MNT_DETACH) == 0 && findings(run_own) == 0);
	/* flags */
	CHECK(mount(NULL, BASE "/closed", NULL, MS_REMOUNT | MS_BIND | BIND_FLAGS, NULL) == 0);
	CHECK(findings(run_own) == 1);
	CHECK(mount(NULL, BASE "/closed", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
	CHECK(findings(run_own) == 2);
	CHECK(mount(NULL, BASE "/closed", NULL, MS_REMOUNT | MS_BIND | BIND_FLAGS | MS_RDONLY, NULL) == 0);
	CHECK(findings(run_own) == 0);
	/* another thing */
	CHECK(umount2(BASE "/open", MNT_DETACH) == 0 &&
	      bind_on(BASE "/other", BASE "/open", BIND_FLAGS) == 0);
	CHECK(findings(run_own) == 1);
	CHECK(umount2(BASE "/open", MNT_DETACH) == 0 &&
	      bind_on(BASE "/source", BASE "/open", BIND_FLAGS) == 0);
	/* mode, owner */
	entries[ENTRY_HOME].permissions = 0700;
	CHECK(findings(run_own) == 1);
	entries[ENTRY_HOME].permissions = mode;
	e.uid++;
	CHECK(findings(run_own) == 2);
	e.uid--;
	/* content */
	entries[ENTRY_TEXT].data = (void *)"mode";
	CHECK(findings(run_own) == 1);
	entries[ENTRY_TEXT].data = (void *)"made";
	/* links */
	entries[ENTRY_ALIAS].data = (void *)"open/fild";
	CHECK(findings(run_own) == 1);
	entries[ENTRY_ALIAS].data = (void *)"open/file";
	CHECK(findings(run_own) == 0);
	/* a file system of the machine's */
	CHECK(umount2(BASE "/home", MNT_DETACH) == 0 &&
	      bind_on(BASE "/other", BASE "/home", BIND_FLAGS) == 0);
	CHECK(findings(run_own) > 0);
	return 0;
}

static void test_differences(void **state)
{
	assert_int_equal(in_namespace(each_difference_is_found), 0);
}

static int what_is_too_much_is_found(void)
{
	CHECK(findings(run_own) == 0);
	CHECK(mkdir(BASE "/home/more", 0755) == 0 && findings(run_own) == 1);
	/* An agent that runs may have made it; its mounts are those that were seen from outside. */
	e.joined = true;
	CHECK(findings(run_own) > 0);
	e.jail_mounts = measure_text("/proc/self/mountinfo", 1 << 22, NULL);
	CHECK(findings(run_own) == 0);
	e.joined = false;
	/* On the way to something that is planned it is none. */
	entries[ENTRY_ALIAS].path = (char *)BASE "/home/more/alias";
	CHECK(symlink("open/file", BASE "/home/more/alias") == 0 && unlink(BASE "/home/alias") == 0);
	CHECK(findings(run_own) == 0);
	CHECK(write_file(BASE "/home/more/file", "x") == 0 && findings(run_own) == 1);
	/* A directory of the plan's, such as a home, begins empty. */
	entries[ENTRY_ALIAS].kind = ENTRY_DIRECTORY;
	entries[ENTRY_ALIAS].path = (char *)BASE "/home/more";
	entries[ENTRY_ALIAS].permissions = 0755;
	CHECK(findings(run_own) == 2);
	CHECK(unlink(BASE "/home/more/file") == 0 && unlink(BASE "/home/more/alias") == 0);
	CHECK(findings(run_own) == 0);
	return 0;
}

static void test_contents(void **state)
{
	assert_int_equal(in_namespace(what_is_too_much_is_found), 0);
}

/* Nothing is measured against an expectation that is empty. */
static int what_was_not_told_fails(void)
{
	char *host = e.host_mounts;
	size_t before = findings(run_others);

	e.host_mounts = NULL;
	CHECK(findings(run_others) == before + 1);
	e.host_mounts = host;
	e.n_entries = 0;
	CHECK(findings(run_own) == 1);
	return 0;
}

static void test_untold(void **state)
{
	assert_int_equal(in_namespace(what_was_not_told_fails), 0);
}

static int mounts_beside_the_plan_are_found(void)
{
	size_t before = findings(run_others);

	CHECK(before != SIZE_MAX);
	CHECK(mkdir(BASE "/open/later", 0755) == 0);
	CHECK(mount("tmpfs", BASE "/open/later", "tmpfs", BIND_FLAGS, NULL) == 0);
	CHECK(findings(run_others) == before + 1);
	/* The machine has one there as well, but another file system. */
	CHECK(mkdir(BASE "/source/later", 0755) == 0 || errno == EEXIST);
	CHECK(mount("tmpfs", BASE "/source/later", "tmpfs", BIND_FLAGS, NULL) == 0);
	e.host_mounts = measure_text("/proc/self/mountinfo", 1 << 22, NULL);
	CHECK(findings(run_others) > before);
	/* The very one. */
	CHECK(umount2(BASE "/open/later", MNT_DETACH) == 0);
	CHECK(bind_on(BASE "/source/later", BASE "/open/later", BIND_FLAGS) == 0);
	e.host_mounts = measure_text("/proc/self/mountinfo", 1 << 22, NULL);
	CHECK(findings(run_others) <= before + 1);
	/* Another directory of that file system. */
	before = findings(run_others);
	CHECK(mkdir(BASE "/source/later/part", 0755) == 0 && umount2(BASE "/open/later", MNT_DETACH) == 0);
	CHECK(bind_on(BASE "/source/later/part", BASE "/open/later", BIND_FLAGS) == 0);
	CHECK(findings(run_others) == before + 1);
	return 0;
}

static void test_others(void **state)
{
	assert_int_equal(in_namespace(mounts_beside_the_plan_are_found), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_untold),
		cmocka_unit_test(test_others),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	(void)rmdir(BASE);
	return r;
}
