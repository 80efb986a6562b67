/* SPDX-License-Identifier: MIT */

/* The configuration file edited, with a kill at each of its system calls and with others at the file. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/daemon/allow-ip-file.h"

#define OLD "# ours\n\nallow-ip = 10.0.0.1   # kept\ngpu\n"
#define NEW "# ours\n\nallow-ip = 10.0.0.1   # kept\nallow-ip = 10.1.2.3   # new\ngpu\n"
#define CALLS_MAX 400u

static char directory[] = "/tmp/allow-ip-file-test.XXXXXX";
static char path[128], lock_path[128], temporary[128];

static const AllowIpEdit edit_add = { .address = "10.1.2.3", .comment = "new" };

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd;

	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* "" for a file that is not there. */
static char *read_file(const char *name)
{
	char *text = calloc(1, 4096);
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	assert_non_null(text);
	if (fd >= 0) {
		assert_true(read(fd, text, 4095) >= 0);
		close(fd);
	}
	return text;
}

static void assert_file(const char *expected)
{
	_cleanup_free_ char *text = read_file(path);

	assert_string_equal(text, expected);
}

/* A child that edits, killed at its number-th stop for a system call. Return: was it killed? */
static bool edit_and_kill(unsigned number)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(2);
		raise(SIGSTOP);
		_exit(allow_ip_file_edit(path, lock_path, &edit_add, NULL) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	for (unsigned i = 0; i < CALLS_MAX; i++) {
		if (i == number)
			kill(pid, SIGKILL);
		else
			assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFSIGNALED(status))
			return true;
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
	}
	fail_msg("more than %u stops", CALLS_MAX);
	return false;
}

/* Before and after each call: the old file or the new one, whole; and the next edit finds nothing in its way.
 */
static void test_killed_anywhere(void **state)
{
	unsigned n_old = 0, n_new = 0;

	for (unsigned i = 0;; i++) {
		_cleanup_free_ char *text = NULL, *problem = NULL;
		bool killed;
		struct stat st;

		write_file(path, OLD, 0640);
		assert_int_equal(chown(path, 0, 7), 0);
		killed = edit_and_kill(i);
		text = read_file(path);
		if (streq(text, OLD))
			n_old++;
		else
			n_new++;
		if (!streq(text, OLD))
			assert_string_equal(text, NEW);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_gid, 7);
		if (!killed)
			break;
		if (allow_ip_file_edit(path, lock_path, &edit_add, &problem) < 0)
			fail_msg("after a kill at %u: %s", i, problem);
		assert_file(NEW);
		assert_int_equal(access(temporary, F_OK), -1);
	}
	print_message("killed with the old file %u times, with the new one %u times\n", n_old, n_new);
	assert_true(n_old > 20 && n_new > 2);
}

static void test_results(void **state)
{
	const AllowIpEdit check = { .address = "10.1.2.3", .comment = "new", .check = true },
			  removal = { .address = "10.1.2.3", .remove = true };
	_cleanup_free_ char *problem = NULL;
	struct stat st;

	(void)unlink(path);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &check, &problem), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &removal, &problem), -ENOENT);
	assert_non_null(problem);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &edit_add, &problem), 1);
	assert_file("allow-ip = 10.1.2.3  # new\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &edit_add, &problem), 0);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &removal, &problem), 1);
	assert_file("");
}

/* Whoever holds the lock is not waited for, and nothing is changed. */
static void test_lock(void **state)
{
	_cleanup_free_ char *problem = NULL;
	int fd;

	write_file(path, OLD, 0644);
	fd = open(lock_path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &edit_add, &problem), -EAGAIN);
	assert_non_null(strstr(problem, "another program edits it"));
	assert_file(OLD);
	close(fd);
	assert_int_equal(allow_ip_file_edit(path, lock_path, &edit_add, &problem), 1);
	assert_file(NEW);
}

static int group_setup(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/claude-sandbox.conf", directory);
	snprintf(lock_path, sizeof(lock_path), "%s/lock", directory);
	snprintf(temporary, sizeof(temporary), "%s/.claude-sandbox.conf.new", directory);
	return 0;
}

static int group_teardown(void **state)
{
	(void)unlink(path);
	(void)unlink(lock_path);
	(void)unlink(temporary);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_anywhere),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_lock),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "this test makes files of root's: it needs root\n");
		return getenv("CHECK_MUST_RUN") ? 1 : 77;
	}
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
