/* SPDX-License-Identifier: MIT */
#include "shim/install-use.h"

#include <dirent.h>
#include <fcntl.h>

bool install_mounts_name(FILE *mountinfo, const char *entry)
{
	_cleanup_free_ char *line = NULL, *needle = NULL;
	size_t allocated = 0;

	if (asprintf(&needle, "/.versions/%s/", entry) < 0) {
		needle = NULL;
		return true;
	}
	while (getline(&line, &allocated, mountinfo) > 0)
		if (strstr(line, needle))
			return true;
	return false;
}

/*
 * A process that we may not look at: root in a container has not every right. All of a jail have NoNewPrivs
 * (proc_pid_status(5), for everybody to read), so only such a one may be of a session.
 */
static int may_be_jailed(int process_fd)
{
	_cleanup_fclose_ FILE *status = NULL;
	_cleanup_free_ char *line = NULL;
	size_t allocated = 0;
	int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC);

	status = fd < 0 ? NULL : fdopen(fd, "re");
	if (!status) {
		(void)close_fd(fd);
		return -errno;
	}
	while (getline(&line, &allocated, status) > 0)
		if (streq(line, "NoNewPrivs:\t1\n"))
			return 1;
	return 0;
}

static int process_uses(int process_fd, const char *entry, const char *own_mounts)
{
	_cleanup_fclose_ FILE *mountinfo = NULL;
	char link[64]; /* "mnt:[NUMBER]" */
	ssize_t n;
	int fd;

	n = readlinkat(process_fd, "ns/mnt", link, sizeof(link) - 1);
	if (n < 0)
		return errno == EACCES || errno == EPERM ? may_be_jailed(process_fd) : -errno;
	link[n] = '\0';
	if (streq(link, own_mounts))
		return 0;
	fd = openat(process_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? may_be_jailed(process_fd) : -errno;
	mountinfo = fdopen(fd, "re");
	if (!mountinfo) {
		(void)close_fd(fd);
		return -ENOMEM;
	}
	return install_mounts_name(mountinfo, entry);
}

int install_is_used(const char *entry)
{
	char own_mounts[64];
	struct dirent *process;
	int result = 0;
	ssize_t n;
	DIR *proc;

	n = readlink("/proc/self/ns/mnt", own_mounts, sizeof(own_mounts) - 1);
	if (n < 0)
		return -errno;
	own_mounts[n] = '\0';
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while (result == 0 && (process = readdir(proc))) {
		_cleanup_close_ int fd = FD_NONE;

		if (process->d_name[0] < '1' || process->d_name[0] > '9')
			continue;
		fd = openat(dirfd(proc), process->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* One that ended meanwhile, or that has no mounts any more, has nothing. */
		result = process_uses(fd, entry, own_mounts);
		if (result == -ENOENT || result == -ESRCH || result == -EINVAL)
			result = 0;
	}
	(void)closedir(proc);
	return result;
}
