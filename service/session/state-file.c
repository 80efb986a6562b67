/* SPDX-License-Identifier: MIT */
#include "service/session/state-file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "service/session/state-json.h"

#define NSEC_PER_SEC 1000000000

void state_text_done(StateText *text)
{
	free(text->text);
	*text = (StateText){ 0 };
}

bool state_stamp_equal(const StateStamp *a, const StateStamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified_nsec == b->modified_nsec && a->changed_nsec == b->changed_nsec;
}

static StateStamp stamp_of(const struct stat *st)
{
	return (StateStamp){ .device = st->st_dev,
			     .inode = st->st_ino,
			     .size = (uint64_t)st->st_size,
			     .modified_nsec = st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec,
			     .changed_nsec = st->st_ctim.tv_sec * NSEC_PER_SEC + st->st_ctim.tv_nsec };
}

int state_file_stamp(int directory_fd, const char *name, StateStamp *ret)
{
	struct stat st;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return -errno;
		*ret = (StateStamp){ 0 };
		return 0;
	}
	*ret = stamp_of(&st);
	return 0;
}

/* Return: 0; -EAGAIN when it was another size than promised. */
static int read_whole(int fd, size_t size, char **ret)
{
	_cleanup_free_ char *text = malloc(size + 1);
	size_t n = 0;

	if (!text)
		return -ENOMEM;
	/* One byte more, so that one that grew is noticed. */
	while (n <= size) {
		ssize_t got = read(fd, text + n, size + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	if (n != size)
		return -EAGAIN;
	text[n] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

/* Only a regular file is ever opened for reading: opening a FIFO or a device may act on it. */
static int open_regular(int path_fd)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_text(int path_fd, const struct stat *st, bool json, StateText *text)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat after;
	int r;

	if (st->st_size > (off_t)(json ? STATE_BYTES_MAX : STATE_BYTES_MAX + STATE_HEADER_MAX)) {
		text->condition = STATE_UNREADABLE;
		return 0;
	}
	fd = open_regular(path_fd);
	if (fd == -EACCES || fd == -EPERM) {
		text->condition = STATE_UNREADABLE;
		return 0;
	}
	if (fd < 0)
		return fd;
	text->size = (size_t)st->st_size;
	r = read_whole(fd, text->size, &text->text);
	if (r < 0)
		return r;
	if (fstat(fd, &after) < 0)
		return -errno;
	if (after.st_size != st->st_size || after.st_mtim.tv_sec != st->st_mtim.tv_sec ||
	    after.st_mtim.tv_nsec != st->st_mtim.tv_nsec)
		return -EAGAIN;
	text->condition = STATE_VALID;
	r = json ? state_json_check(text->text, text->size) : 0;
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		text->condition = STATE_UNREADABLE;
		freep(&text->text);
		text->size = 0;
	}
	return 0;
}

int state_file_read(int directory_fd, const char *name, uid_t uid, bool json, StateText *ret)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	_cleanup_(state_text_done) StateText text = { 0 };
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	int r = 0;

	fd = (int)syscall(SYS_openat2, directory_fd, name, &how, sizeof(how));
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		if (fstat(fd, &st) < 0)
			return -errno;
		text.mode = st.st_mode;
		text.stamp = stamp_of(&st);
		if (!S_ISREG(st.st_mode) || st.st_uid != uid)
			text.condition = STATE_FOREIGN;
		else
			r = read_text(fd, &st, json, &text);
	}
	if (r < 0)
		return r;
	*ret = text;
	text = (StateText){ 0 };
	return 0;
}

/* ---- writing ---- */

static char *beside(const char *name, const char *suffix)
{
	char *text;

	return asprintf(&text, "%s%s", name, suffix) < 0 ? NULL : text;
}

/* A name that is taken stays what it is. Return: 0, -EEXIST, another negative errno. */
static int move(int directory_fd, const char *from, const char *to)
{
	if (renameat2(directory_fd, from, directory_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* Where that cannot be had: link(2) does not replace either. */
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(directory_fd, from, directory_fd, to, 0) < 0)
		return -errno;
	return unlinkat(directory_fd, from, 0) < 0 ? -errno : 0;
}

void state_file_sweep(int directory_fd, const char *name)
{
	_cleanup_free_ char *successor = beside(name, STATE_SUCCESSOR_SUFFIX),
			    *removed = beside(name, STATE_REMOVED_SUFFIX);

	if (successor)
		(void)unlinkat(directory_fd, successor, 0);
	if (removed && move(directory_fd, removed, name) == -EEXIST)
		(void)unlinkat(directory_fd, removed, 0);
}

static int write_successor(int directory_fd, const char *successor, mode_t mode, const char *text,
			   size_t size, bool durable)
{
	_cleanup_close_ int fd = FD_NONE;

	if (unlinkat(directory_fd, successor, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(directory_fd, successor, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t n = 0; n < size;) {
		ssize_t put = write(fd, text + n, size - n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		n += (size_t)put;
	}
	if (fchmod(fd, mode & 0777) < 0 || (durable && fsync(fd) < 0))
		return -errno;
	return 0;
}

/*
 * The two change places, so that what was replaced can be looked at: a program that takes no lock may have
 * put another one there since it was read.
 */
static int exchange(int directory_fd, const char *successor, const char *name, const StateStamp *expected)
{
	StateStamp found;
	int r;

	if (renameat2(directory_fd, successor, directory_fd, name, RENAME_EXCHANGE) < 0) {
		/* File systems that cannot (rename(2)): a moment stays in which another writer loses. */
		if (errno != EINVAL && errno != ENOSYS)
			return errno == ENOENT ? -EAGAIN : -errno;
		r = state_file_stamp(directory_fd, name, &found);
		if (r == 0 && !state_stamp_equal(&found, expected))
			r = -EAGAIN;
		if (r == 0 && renameat(directory_fd, successor, directory_fd, name) < 0)
			r = -errno;
		return r;
	}
	r = state_file_stamp(directory_fd, successor, &found);
	/* A rename is a change of its own. */
	found.changed_nsec = expected->changed_nsec;
	if (r == 0 && !state_stamp_equal(&found, expected))
		r = -EAGAIN;
	if (r < 0)
		(void)renameat2(directory_fd, successor, directory_fd, name, RENAME_EXCHANGE);
	return r;
}

/* A directory that cannot be synchronised (some network file systems) is no reason to say it failed. */
static int finish(int directory_fd, const char *successor, bool durable, int r)
{
	(void)unlinkat(directory_fd, successor, 0);
	if (r == 0 && durable)
		(void)fsync(directory_fd);
	return r;
}

int state_file_put(int directory_fd, const char *name, const char *text, size_t size, bool durable)
{
	_cleanup_free_ char *successor = beside(name, STATE_SUCCESSOR_SUFFIX);
	int r;

	if (!successor)
		return -ENOMEM;
	r = write_successor(directory_fd, successor, 0600, text, size, durable);
	if (r == 0 && renameat(directory_fd, successor, directory_fd, name) < 0)
		r = -errno;
	return finish(directory_fd, successor, durable, r);
}

/* Where nothing was. */
static int appear(int directory_fd, const char *successor, const char *name)
{
	int r = move(directory_fd, successor, name);

	return r == -EEXIST ? -EAGAIN : r;
}

int state_file_replace(int directory_fd, const char *name, mode_t mode, const char *text, size_t size,
		       const StateStamp *expected)
{
	_cleanup_free_ char *successor = beside(name, STATE_SUCCESSOR_SUFFIX);
	int r;

	if (!successor)
		return -ENOMEM;
	r = write_successor(directory_fd, successor, mode, text, size, true);
	if (r == 0)
		r = expected->inode == 0 ? appear(directory_fd, successor, name)
					 : exchange(directory_fd, successor, name, expected);
	return finish(directory_fd, successor, true, r);
}

int state_file_remove(int directory_fd, const char *name, const StateStamp *expected)
{
	_cleanup_free_ char *removed = beside(name, STATE_REMOVED_SUFFIX);
	StateStamp found;
	int r;

	if (!removed)
		return -ENOMEM;
	r = move(directory_fd, name, removed);
	if (r < 0)
		return r == -ENOENT ? -EAGAIN : r;
	r = state_file_stamp(directory_fd, removed, &found);
	/* A rename is a change of its own. */
	found.changed_nsec = expected->changed_nsec;
	if (r == 0 && !state_stamp_equal(&found, expected))
		r = -EAGAIN;
	if (r < 0) {
		state_file_sweep(directory_fd, name);
		return r;
	}
	if (unlinkat(directory_fd, removed, 0) < 0)
		return -errno;
	(void)fsync(directory_fd);
	return 0;
}
