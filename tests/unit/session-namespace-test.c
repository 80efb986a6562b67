/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/wait.h>

#include "service/session/user-namespace.h"

/* What is forbidden in a child, before it tries. */
typedef int (*Forbid)(void);

static int write_number(const char *path, const char *number)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, number, strlen(number)) < 0 ? -errno : 0;
}

/* A user namespace of our own, whose limits can be set without touching the machine's. */
static int own_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return user_namespace_map(uid, gid);
}

static int forbid_nothing(void)
{
	return 0;
}

static int forbid_user(void)
{
	int r = own_namespace();

	return r < 0 ? r : write_number("/proc/sys/user/max_user_namespaces", "0");
}

static int forbid_network(void)
{
	int r = own_namespace();

	return r < 0 ? r : write_number("/proc/sys/user/max_net_namespaces", "0");
}

static int limit_user(void)
{
	int r = own_namespace();

	if (r == 0)
		r = write_number("/proc/sys/user/max_user_namespaces", "1");
	return r < 0 ? r : own_namespace();
}

static int filter(int error)
{
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!context)
		return -ENOMEM;
	r = seccomp_rule_add(context, SCMP_ACT_ERRNO((uint32_t)error), SCMP_SYS(unshare), 0);
	if (r == 0)
		r = seccomp_load(context);
	seccomp_release(context);
	return r;
}

static int forbid_by_filter(void)
{
	return filter(EPERM);
}

static int forbid_by_old_filter(void)
{
	return filter(ENOSYS);
}

/* Return: what user_namespace_enter() says in a child in which forbid was done; NULL when that cannot be done
 * here. */
static char *try(Forbid forbid, int *ret_error)
{
	char *text = calloc(1, 4096);
	int fds[2], status;
	size_t size = 0;
	pid_t pid;

	assert_non_null(text);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *problem = NULL;
		int r;

		(void)close(fds[0]);
		if (forbid() < 0)
			_exit(255);
		r = user_namespace_enter(geteuid(), getegid(), true, &problem);
		if (problem && write(fds[1], problem, strlen(problem)) < 0)
			_exit(254);
		_exit(r < 0 ? -r : 0);
	}
	(void)close(fds[1]);
	for (ssize_t n; size < 4095 && (n = read(fds[0], text + size, 4095 - size)) > 0;)
		size += (size_t)n;
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	*ret_error = WEXITSTATUS(status);
	if (WEXITSTATUS(status) == 255) {
		free(text);
		skip();
	}
	return text;
}

static void check(Forbid forbid, int error, const char *cause, const char *fix)
{
	int found;
	_cleanup_free_ char *text = try(forbid, &found);

	assert_int_equal(found, error);
	assert_non_null(strstr(text, cause));
	assert_non_null(strstr(text, fix));
}

static void where_nothing_forbids_it_is_made(void **state)
{
	check(forbid_nothing, 0, "", "");
}

static void switched_off(void **state)
{
	check(forbid_user, ENOSPC, "max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=");
}

static void networks_switched_off(void **state)
{
	check(forbid_network, ENOSPC, "max_net_namespaces is 0", "sysctl -w user.max_net_namespaces=");
}

static void the_limit_is_reached(void **state)
{
	check(limit_user, ENOSPC, "limit", "raise user.max_user_namespaces");
}

static void forbidden_by_a_container(void **state)
{
	check(forbid_by_filter, EPERM, "seccomp filter", "start the container");
}

static void not_known_to_the_kernel(void **state)
{
	check(forbid_by_old_filter, ENOSYS, "no user namespaces", "CONFIG_USER_NS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_nothing_forbids_it_is_made),
		cmocka_unit_test(switched_off),
		cmocka_unit_test(networks_switched_off),
		cmocka_unit_test(the_limit_is_reached),
		cmocka_unit_test(forbidden_by_a_container),
		cmocka_unit_test(not_known_to_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
