/* SPDX-License-Identifier: MIT */
#include "service/session/project-copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <time.h>

#include "base/clock.h"
#include "service/session/state-file.h"

#define COPY_USEC USEC_PER_SEC
#define DEPTH_MAX 16u
#define NAMES_MAX 4096u

CopyBudget copy_budget(void)
{
	return (CopyBudget){ .n_files = COPY_FILES_MAX,
			     .n_bytes = COPY_BYTES_MAX,
			     .until_usec = clock_usec(CLOCK_MONOTONIC) + COPY_USEC };
}

bool copy_budget_lasts(CopyBudget *budget)
{
	bool lasts = clock_usec(CLOCK_MONOTONIC) < budget->until_usec;

	budget->spent |= !lasts;
	return lasts;
}

bool copy_budget_take(CopyBudget *budget, uint64_t size)
{
	if (budget->n_files == 0 || budget->n_bytes < size) {
		budget->spent = true;
		return false;
	}
	budget->n_files--;
	budget->n_bytes -= size;
	return true;
}

int copy_open(int directory_fd, const char *name, uid_t uid, struct stat *ret)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) && ret->st_uid == uid ? TAKE_FD(fd) : -ENOENT;
}

int copy_directory_open(int directory_fd, const char *name, uid_t uid, bool make)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (make && mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == uid ? TAKE_FD(fd) : -EPERM;
}

static int fill(int fd, const struct stat *st, int to_fd, bool durable)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	off_t offset = 0;

	while (offset < st->st_size) {
		ssize_t n = sendfile(to_fd, fd, &offset, (size_t)(st->st_size - offset));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EAGAIN;
	}
	return futimens(to_fd, times) < 0 || (durable && fsync(to_fd) < 0) ? -errno : 0;
}

int copy_file(int fd, const struct stat *st, int directory_fd, const char *name, bool replace, bool durable)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_close_ int to_fd = FD_NONE;
	int r;

	if (asprintf(&beside, "%s" STATE_SUCCESSOR_SUFFIX, name) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	/* Of one that was killed. */
	(void)unlinkat(directory_fd, beside, 0);
	to_fd = openat(directory_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to_fd < 0)
		return -errno;
	r = fill(fd, st, to_fd, durable);
	if (r == 0 && (st->st_mode & 0100) && fchmod(to_fd, 0700) < 0)
		r = -errno;
	if (r == 0 && renameat2(directory_fd, beside, directory_fd, name, replace ? 0 : RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory_fd, beside, 0);
	return r;
}

/* ---- to another file system ---- */

static void move_link(int from_fd, int to_fd, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(from_fd, name, text, sizeof(text));

	if (n <= 0 || (size_t)n >= sizeof(text))
		return;
	text[n] = 0;
	if (symlinkat(text, to_fd, name) == 0)
		(void)unlinkat(from_fd, name, 0);
}

static void move_file(int from_fd, int to_fd, const char *name, uid_t uid, CopyBudget *budget)
{
	struct stat st, there;
	_cleanup_close_ int fd = copy_open(from_fd, name, uid, &st);

	if (fd < 0 || fstatat(to_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (copy_budget_take(budget, (uint64_t)st.st_size) &&
	    copy_file(fd, &st, to_fd, name, false, true) == 0)
		(void)unlinkat(from_fd, name, 0);
}

static void move_one(int from_fd, int to_fd, const char *name, uid_t uid, unsigned depth, CopyBudget *budget);

static void move_directory(int from_fd, int to_fd, const char *name, uid_t uid, unsigned depth,
			   CopyBudget *budget)
{
	_cleanup_close_ int own_fd = copy_directory_open(from_fd, name, uid, false);
	_cleanup_close_ int there_fd = own_fd < 0 ? own_fd : copy_directory_open(to_fd, name, uid, true);
	int copy_fd = there_fd < 0 ? there_fd : openat(own_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy_fd < 0 ? NULL : fdopendir(copy_fd);
	unsigned n = 0;

	if (!directory) {
		(void)close_fd(copy_fd);
		return;
	}
	for (const struct dirent *entry; n < NAMES_MAX && (entry = readdir(directory)); n++)
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			move_one(own_fd, there_fd, entry->d_name, uid, depth - 1, budget);
	(void)closedir(directory);
	(void)unlinkat(from_fd, name, AT_REMOVEDIR);
}

static void move_one(int from_fd, int to_fd, const char *name, uid_t uid, unsigned depth, CopyBudget *budget)
{
	struct stat st;

	if (depth == 0 || !copy_budget_lasts(budget) ||
	    fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		budget->spent |= depth == 0;
		return;
	}
	if (S_ISDIR(st.st_mode))
		move_directory(from_fd, to_fd, name, uid, depth, budget);
	else if (S_ISLNK(st.st_mode))
		move_link(from_fd, to_fd, name);
	else
		move_file(from_fd, to_fd, name, uid, budget);
}

void copy_move(int from_fd, int to_fd, const char *name, uid_t uid, CopyBudget *budget)
{
	move_one(from_fd, to_fd, name, uid, DEPTH_MAX, budget);
}
