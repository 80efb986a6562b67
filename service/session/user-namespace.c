/* SPDX-License-Identifier: MIT */
#include "service/session/user-namespace.h"

#include <fcntl.h>
#include <sched.h>

#include "dbus/causes.h"

#define SYSCTL_CLONE "/proc/sys/kernel/unprivileged_userns_clone"
#define SYSCTL_APPARMOR "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
#define SYSCTL_USER_MAX "/proc/sys/user/max_user_namespaces"
#define SYSCTL_NET_MAX "/proc/sys/user/max_net_namespaces"

/* Return: the number in a file of /proc/sys, or fallback when there is none. */
static long long sysctl_number(const char *path, long long fallback)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n;

	if (fd < 0)
		return fallback;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return fallback;
	text[n] = 0;
	return strtoll(text, NULL, 10);
}

bool seccomp_is_on(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		const char *value = starts_with(line, "Seccomp:");

		if (value)
			return strtol(value, NULL, 10) == 2;
	}
	return false;
}

bool user_namespaces_are_restricted(void)
{
	return sysctl_number(SYSCTL_APPARMOR, 0) == 1;
}

/* The limits of the namespace that is left; inside the new one the same files tell of its own. */
typedef struct Limits {
	long long user, net;
} Limits;

static int explain(const Limits *limits, int error, const char *what, char **ret_problem)
{
	if (limits->user == 0)
		return refuse(ret_problem, error, BECAUSE(USERNS_NONE));
	if (error == -ENOSPC && limits->net == 0)
		return refuse(ret_problem, error, BECAUSE(NETNS_NONE));
	if (error == -ENOSPC || error == -EUSERS)
		return refuse(ret_problem, error, BECAUSE(USERNS_LIMIT));
	if (error == -EINVAL || error == -ENOSYS)
		return refuse(ret_problem, error, BECAUSE(USERNS_KERNEL), what, strerror(-error));
	if (geteuid() != 0 && sysctl_number(SYSCTL_CLONE, 1) == 0)
		return refuse(ret_problem, error, BECAUSE(USERNS_ROOT_ONLY));
	if (user_namespaces_are_restricted())
		return refuse(ret_problem, error, BECAUSE(USERNS_APPARMOR), what, strerror(-error));
	if (seccomp_is_on())
		return refuse(ret_problem, error, BECAUSE(USERNS_SECCOMP), what, strerror(-error));
	return refuse(ret_problem, error, BECAUSE(USERNS_OTHER), what, strerror(-error));
}

static int proc_write(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int user_namespace_map(uid_t uid, gid_t gid)
{
	_cleanup_free_ char *uids = NULL, *gids = NULL;
	int r;

	if (asprintf(&uids, "%u %u 1\n", (unsigned)uid, (unsigned)uid) < 0) {
		uids = NULL;
		return -ENOMEM;
	}
	if (asprintf(&gids, "%u %u 1\n", (unsigned)gid, (unsigned)gid) < 0) {
		gids = NULL;
		return -ENOMEM;
	}
	/* gid_map may be written without privilege only when setgroups(2) is off for good. */
	r = proc_write("/proc/self/setgroups", "deny");
	if (r == 0)
		r = proc_write("/proc/self/uid_map", uids);
	if (r == 0)
		r = proc_write("/proc/self/gid_map", gids);
	return r;
}

int user_namespace_enter(uid_t uid, gid_t gid, bool network, char **ret_problem)
{
	const Limits limits = { .user = sysctl_number(SYSCTL_USER_MAX, 1),
				.net = sysctl_number(SYSCTL_NET_MAX, 1) };
	int r;

	/* One after the other, so that the errno says which of the two is refused. */
	if (unshare(CLONE_NEWUSER) < 0)
		return explain(&limits, -errno, "unshare of the user namespace", ret_problem);
	r = user_namespace_map(uid, gid);
	if (r < 0)
		return explain(&limits, r, "writing the id maps", ret_problem);
	if (network && unshare(CLONE_NEWNET) < 0)
		return explain(&limits, -errno, "unshare of the network namespace", ret_problem);
	return 0;
}
