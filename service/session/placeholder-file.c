/* SPDX-License-Identifier: MIT */
#include "service/session/placeholder-file.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_MODE 0444
#define FILE_TEXT "# Kept free by claude-sandbox while a session runs; goes when the last one ends.\n"
#define FILE_BYTES (sizeof(FILE_TEXT) - 1)

/* A second name of it could be kept writable, and the text changed by that. begun: some bits may be missing yet. */
static bool has_mode(const struct stat *st, uid_t uid, bool begun)
{
	mode_t mode = st->st_mode & 07777;

	return S_ISREG(st->st_mode) && st->st_uid == uid && st->st_nlink == 1 &&
	       (begun ? (mode & ~(mode_t)FILE_MODE) == 0 : mode == FILE_MODE);
}

/*
 * begun: also what a session leaves that is killed between making it and giving it its mode. *ret: what was looked
 * at. Return: 1 it is one, 0 it is something else, or a negative errno.
 */
static int look(int directory_fd, const char *name, uid_t uid, bool begun, struct stat *ret)
{
	_cleanup_close_ int fd = FD_NONE;
	char text[FILE_BYTES + 1];
	ssize_t n;

	if (fstatat(directory_fd, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!has_mode(ret, uid, begun))
		return 0;
	if (begun && ret->st_size == 0)
		return 1;
	if (ret->st_size != (off_t)FILE_BYTES)
		return 0;
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? 0 : -errno;
	if (fstat(fd, ret) < 0)
		return -errno;
	n = pread(fd, text, sizeof(text), 0);
	if (n < 0)
		return -errno;
	return has_mode(ret, uid, begun) && (size_t)n == FILE_BYTES &&
	       memcmp(text, FILE_TEXT, FILE_BYTES) == 0;
}

static int fill(int fd)
{
	ssize_t n = write(fd, FILE_TEXT, FILE_BYTES);

	if (n < 0)
		return -errno;
	if ((size_t)n != FILE_BYTES)
		return -ENOSPC;
	/* Whatever umask and access lists have made of the mode. */
	return fchmod(fd, FILE_MODE) < 0 ? -errno : 0;
}

bool placeholder_file_stands(int directory_fd, const char *name, uid_t uid)
{
	struct stat st;

	return look(directory_fd, name, uid, false, &st) > 0;
}

int placeholder_file_make(int directory_fd, const char *name, uid_t uid)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	int r;

	fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0 && errno != EEXIST)
		return -errno;
	if (fd < 0) {
		r = look(directory_fd, name, uid, false, &st);
		return r < 0 ? r : r > 0 ? 0 : -EEXIST;
	}
	r = fill(fd);
	if (r == 0 && !placeholder_file_stands(directory_fd, name, uid))
		r = -EOPNOTSUPP;
	if (r < 0) {
		(void)unlinkat(directory_fd, name, 0);
		return r;
	}
	return 1;
}

void placeholder_file_remove(int directory_fd, const char *name, uid_t uid)
{
	struct stat looked, now;

	if (look(directory_fd, name, uid, true, &looked) <= 0)
		return;
	if (fstatat(directory_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == looked.st_dev &&
	    now.st_ino == looked.st_ino)
		(void)unlinkat(directory_fd, name, 0);
}
