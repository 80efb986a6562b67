/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "service/daemon/caller.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/proc.h"
#include "service/daemon/users.h"

static const char status_text[] =
	"Name:\tUid:\t7\t7\nUmask:\t0027\nState:\tS\nUid:\t1\t1000\t3\t4\nGid:\t5\t1001\t6\t7\n"
	"CapPrm:\t000001ffffffffff\nCapBnd:\t00000000000000ff\nNoNewPrivs:\t1\nSeccomp:\t2\nSigIgn:"
	"\t8000000000001002\n";

static void status_is_parsed(void **state)
{
	ProcStatus status;

	assert_int_equal(proc_parse_status(status_text, &status), 0);
	assert_int_equal(status.uid, 1000);
	assert_int_equal(status.gid, 1001);
	assert_int_equal(status.umask, 027);
	assert_true(status.no_new_privs);
	assert_int_equal(status.seccomp, 2);
	assert_true(status.capabilities == 0x1ffffffffff && status.bounding_set == 0xff);
	assert_true(status.ignored_signals == 0x8000000000001002);
	assert_int_equal(proc_parse_status("", &status), -EBADMSG);
	assert_int_equal(proc_parse_status("Uid:\t1 2\n", &status), -EBADMSG);
}

static void stat_is_parsed_behind_any_name(void **state)
{
	ProcStat stat;

	assert_int_equal(
		proc_parse_stat("12 (a) b) (c)) S 1 2 3 34817 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 19",
				&stat),
		0);
	assert_int_equal(stat.start_ticks, 777);
	assert_int_equal(major(stat.terminal), 136);
	assert_int_equal(minor(stat.terminal), 1);
	assert_int_equal(proc_parse_stat("12 (a) S 1 2 3 0 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1 19", &stat),
			 0);
	assert_int_equal(stat.terminal, 0);
	assert_int_equal(proc_parse_stat("12 (a", &stat), -EBADMSG);
	assert_int_equal(proc_parse_stat("12 (a) S 1 2", &stat), -EBADMSG);
}

static void own_process_is_read(void **state)
{
	struct rlimit limits[RLIM_NLIMITS], files;
	ProcStatus status;
	ProcStat stat;

	assert_int_equal(proc_status(getpid(), &status), 0);
	assert_int_equal(status.uid, geteuid());
	assert_int_equal(proc_stat(getpid(), &stat), 0);
	assert_true(stat.start_ticks > 0);
	assert_int_equal(proc_limits(getpid(), limits), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_true(limits[RLIMIT_NOFILE].rlim_cur == files.rlim_cur &&
		    limits[RLIMIT_NOFILE].rlim_max == files.rlim_max);
}

static Client client_of_process(pid_t pid, int pidfd)
{
	return (Client){ .known = true, .uid = geteuid(), .pid = pid, .pidfd = pidfd };
}

/* Reads a child that has done prepare() as a caller. */
static int read_child(void (*prepare)(void), char **ret_problem)
{
	_cleanup_(caller_facts_done) CallerFacts facts = { 0 };
	_cleanup_close_ int pidfd = FD_NONE;
	int ready[2], r;
	Client client;
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prepare();
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	pidfd = pidfd_of(child);
	assert_true(pidfd >= 0 && pidfd_alive(pidfd));
	client = client_of_process(child, pidfd);
	r = caller_read(&client, &facts, ret_problem);
	assert_int_equal(pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(pidfd_alive(pidfd));
	return r;
}

static void nothing(void)
{
}

static void no_new_privs(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void callers_like_ourselves_are_read(void **state)
{
	_cleanup_free_ char *problem = NULL;

	assert_int_equal(read_child(nothing, &problem), 0);
	assert_null(problem);
}

static void confined_callers_are_refused(void **state)
{
	_cleanup_free_ char *problem = NULL;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
		skip(); /* then we are no less confined */
	assert_int_equal(read_child(no_new_privs, &problem), -EPERM);
	assert_non_null(strstr(problem, "no_new_privs"));
}

static void callers_that_have_gone_are_refused(void **state)
{
	_cleanup_free_ char *problem = NULL;
	CallerFacts facts = { 0 };
	Client client;
	pid_t child;
	int pidfd;

	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	pidfd = pidfd_of(child);
	assert_true(pidfd >= 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	client = client_of_process(getpid(), pidfd); /* the number names another process now */
	assert_int_equal(caller_read(&client, &facts, &problem), -EPERM);
	assert_non_null(strstr(problem, "has ended"));
	assert_null(facts.oom_score_adj);

	client.problem = "the bus does not know";
	assert_int_equal(caller_read(&client, &facts, &problem), -EPERM);
	assert_non_null(strstr(problem, "the bus does not know"));
	close(pidfd);
}

static void login_shells(void **state)
{
	assert_true(shell_is_login("/bin/bash"));
	assert_true(shell_is_login("/home/u/.local/bin/fish"));
	assert_true(shell_is_login(""));
	assert_false(shell_is_login("/usr/sbin/nologin"));
	assert_false(shell_is_login("/sbin/nologin"));
	assert_false(shell_is_login("/bin/false"));
	assert_false(shell_is_login("nologin"));
}

static void users_are_found(void **state)
{
	Users *users = NULL;
	const User *user = NULL, *again = NULL;
	gid_t gid = 7;

	assert_int_equal(users_new(&users), 0);
	assert_int_equal(users_find(users, 0, &user), 0);
	assert_string_equal(user->name, "root");
	assert_int_equal(users_find(users, 0, &again), 0);
	assert_ptr_equal(user, again);
	assert_int_equal(users_find(users, 3999999999, &user), -ENOENT);
	assert_int_equal(users_group(users, "root", &gid), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(users_group(users, "no such group", &gid), -ENOENT);
	assert_int_equal(users_group(users, "no such group", &gid), -ENOENT);
	users_free(users);
}

static void hierarchies_are_found(void **state)
{
	char *found;

	found = cgroup_find_mount(
		"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		"41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw shared:5 master:2 - cgroup2 cgroup2 rw\n");
	assert_string_equal(found, "/sys/fs/cgroup/uni fied");
	free(found);
	assert_null(cgroup_find_mount(""));
	assert_null(cgroup_find_mount("41 31 0:38 / /x rw - tmpfs cgroup2 rw\n"));
	assert_null(cgroup_find_mount("41 31 - cgroup2 cgroup2 rw\n"));

	found = cgroup_find_own("9:name=systemd:/a\n0::/system.slice/x\n");
	assert_string_equal(found, "/system.slice/x");
	free(found);
	assert_null(cgroup_find_own("9:name=systemd:/a\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_is_parsed),
		cmocka_unit_test(stat_is_parsed_behind_any_name),
		cmocka_unit_test(own_process_is_read),
		cmocka_unit_test(callers_like_ourselves_are_read),
		cmocka_unit_test(confined_callers_are_refused),
		cmocka_unit_test(callers_that_have_gone_are_refused),
		cmocka_unit_test(login_shells),
		cmocka_unit_test(users_are_found),
		cmocka_unit_test(hierarchies_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
