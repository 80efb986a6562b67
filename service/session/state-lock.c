/* SPDX-License-Identifier: MIT */
#include "service/session/state-lock.h"

#include <fcntl.h>
#include <time.h>

bool state_lock_has_mode(const struct stat *st, mode_t mode)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & 07777) == mode && st->st_uid == geteuid();
}

/* A time in the future, from a clock that jumped, would hold for long. */
bool state_lock_is_old(const struct stat *st)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return llabs((long long)now.tv_sec - (long long)st->st_mtim.tv_sec) > STATE_LOCK_SECONDS;
}

int state_lock_take(StateLock *lock, int directory_fd, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	*lock = (StateLock){ .directory_fd = directory_fd };
	if (asprintf(&path, "%s" STATE_LOCK_SUFFIX, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (mkdirat(directory_fd, path, STATE_LOCK_MODE) == 0) {
			lock->name = TAKE_PTR(path);
			return 0;
		}
		if (errno != EEXIST)
			return 0;
		if (fstatat(directory_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -EAGAIN;
		if (state_lock_has_mode(&st, STATE_MIRROR_MODE) && !state_lock_is_old(&st))
			return 0;
		if (!state_lock_has_mode(&st, STATE_LOCK_MODE) && !state_lock_is_old(&st))
			return -EAGAIN;
		if (unlinkat(directory_fd, path, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 &&
		    errno != ENOENT)
			return 0;
	}
	return -EAGAIN;
}

void state_lock_drop(StateLock *lock)
{
	if (lock->name)
		(void)unlinkat(lock->directory_fd, lock->name, AT_REMOVEDIR);
	freep(&lock->name);
}

void state_lock_sweep(int directory_fd, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s" STATE_LOCK_SUFFIX, name) < 0) {
		path = NULL;
		return;
	}
	if (fstatat(directory_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    state_lock_has_mode(&st, STATE_LOCK_MODE))
		(void)unlinkat(directory_fd, path, AT_REMOVEDIR);
}
