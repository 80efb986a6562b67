/* SPDX-License-Identifier: MIT */
#include "service/session/project-names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define TRIES_MAX 8u /* somebody who keeps replacing a name gets no more of them */

/* The one that is there, with a mode that lets its owner in. */
static int open_one(int directory_fd, const char *name, uid_t uid)
{
	_cleanup_close_ int held_fd =
		openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[32];
	struct stat st;
	int fd;

	if (held_fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstat(held_fd, &st) < 0)
		return -errno;
	if (st.st_uid != uid)
		return -EPERM;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", held_fd);
	if ((st.st_mode & 0700) != 0700 && chmod(path, (st.st_mode & 07777) | 0700) < 0)
		return -errno;
	fd = openat(held_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_one(int directory_fd, const char *name, uid_t uid)
{
	int fd = -EAGAIN;

	for (unsigned i = 0; i < TRIES_MAX; i++) {
		fd = open_one(directory_fd, name, uid);
		if (fd == -ENOTDIR && unlinkat(directory_fd, name, 0) < 0 && errno != ENOENT &&
		    errno != EISDIR)
			return -errno;
		if (fd != -ENOTDIR && fd != -ENOENT)
			return fd;
		if (mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return fd;
}

int project_directory_open(int directory_fd, const char *path, uid_t uid, bool make)
{
	_cleanup_close_ int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	while (*path) {
		_cleanup_free_ char *name = strndup(path, strcspn(path, "/"));
		int next_fd;

		if (!name)
			return -ENOMEM;
		next_fd = make ? make_one(fd, name, uid) : open_one(fd, name, uid);
		if (next_fd < 0)
			return next_fd;
		close_fdp(&fd);
		fd = next_fd;
		path += strlen(name);
		path += *path == '/';
	}
	return TAKE_FD(fd);
}

int project_parent_open(int directory_fd, const char *path, uid_t uid, bool make, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = strndup(path, slash ? (size_t)(slash - path) : 0);

	if (!parent)
		return -ENOMEM;
	*ret_name = slash ? slash + 1 : path;
	return project_directory_open(directory_fd, parent, uid, make);
}

int project_file_make(int directory_fd, const char *path, uid_t uid)
{
	const char *name;
	_cleanup_close_ int fd = project_parent_open(directory_fd, path, uid, true, &name);

	if (fd < 0)
		return fd;
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		_cleanup_close_ int file_fd = FD_NONE;
		struct stat st;

		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			if (S_ISREG(st.st_mode))
				return 0;
			if (unlinkat(fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 &&
			    errno != ENOENT && errno != EISDIR && errno != ENOTDIR)
				return -errno;
		} else if (errno != ENOENT)
			return -errno;
		file_fd = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file_fd >= 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EAGAIN;
}

void project_file_remove(int directory_fd, const char *path, uid_t uid)
{
	const char *name;
	_cleanup_close_ int fd = project_parent_open(directory_fd, path, uid, false, &name);
	struct stat st;

	if (fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size == 0)
		(void)unlinkat(fd, name, 0);
}

int project_link_make(int directory_fd, const char *path, uid_t uid, const char *text)
{
	const char *name;
	_cleanup_close_ int fd = project_parent_open(directory_fd, path, uid, true, &name);
	_cleanup_free_ char *there = malloc(strlen(text) + 2);
	ssize_t n;

	if (fd < 0 || !there)
		return fd < 0 ? fd : -ENOMEM;
	n = readlinkat(fd, name, there, strlen(text) + 1);
	if (n == (ssize_t)strlen(text) && memcmp(there, text, (size_t)n) == 0)
		return 0;
	if (unlinkat(fd, name, 0) < 0 && errno == EISDIR)
		(void)unlinkat(fd, name, AT_REMOVEDIR);
	return symlinkat(text, fd, name) < 0 ? -errno : 0;
}

void project_name_remove(int directory_fd, const char *path, uid_t uid)
{
	const char *name;
	_cleanup_close_ int fd = project_parent_open(directory_fd, path, uid, false, &name);

	if (fd >= 0 && unlinkat(fd, name, 0) < 0 && errno == EISDIR)
		(void)unlinkat(fd, name, AT_REMOVEDIR);
}

bool project_directory_remove(int directory_fd, const char *path, uid_t uid)
{
	const char *name;
	_cleanup_close_ int fd = project_parent_open(directory_fd, path, uid, false, &name);

	return fd >= 0 && unlinkat(fd, name, AT_REMOVEDIR) == 0;
}

int project_directory_count(int fd)
{
	int copy_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *directory = copy_fd < 0 ? NULL : fdopendir(copy_fd);

	if (!directory) {
		r = -errno;
		(void)close_fd(copy_fd);
		return r;
	}
	for (const struct dirent *entry; r < 2 && (entry = readdir(directory));)
		r += !streq(entry->d_name, ".") && !streq(entry->d_name, "..");
	(void)closedir(directory);
	return r;
}
