/* SPDX-License-Identifier: MIT */
#include "service/session/covers.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#define BWRAP_FILE_MODE 0444 /* bubblewrap, setup_newroot(): ensure_file (dest, 0444) */

/* Return: the directory of path, held, with *ret_name the rest; or a negative errno. */
static int open_directory_of(const char *path, const char **ret_name)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = NULL;
	int fd;

	if (!slash)
		return -EINVAL;
	directory = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	if (!directory)
		return -ENOMEM;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, directory, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	*ret_name = slash + 1;
	return fd;
}

/* Return: 0, or a negative errno: -ENOENT when nothing is there. */
static int look(const char *path, int *ret_directory_fd, const char **ret_name, struct stat *ret)
{
	_cleanup_close_ int fd = open_directory_of(path, ret_name);

	if (fd < 0) {
		int r = fd;

		fd = FD_NONE;
		return r;
	}
	if (fstatat(fd, *ret_name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_directory_fd = TAKE_FD(fd);
	return 0;
}

bool covers_are_stale(const Plan *plan)
{
	for (size_t i = 0; i < plan->n_entries; i++) {
		_cleanup_close_ int fd = FD_NONE;
		const char *name;
		struct stat st;

		if (!plan->entries[i].covers_listener)
			continue;
		if (look(plan->entries[i].destination, &fd, &name, &st) < 0 ||
		    !(S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)))
			return true;
	}
	return false;
}

void covers_clear(const Plan *plan, uid_t uid)
{
	for (size_t i = 0; i < plan->n_entries; i++) {
		_cleanup_close_ int fd = FD_NONE;
		const char *name;
		struct stat st;

		if (!plan->entries[i].covers_listener ||
		    look(plan->entries[i].destination, &fd, &name, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 1 && st.st_uid == uid &&
		    (st.st_mode & 07777) == BWRAP_FILE_MODE)
			(void)unlinkat(fd, name, 0);
	}
}
