/* SPDX-License-Identifier: MIT */
#include "service/session/placeholders.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "service/link/pack.h"

/*
 * Two locks on one file, which Linux keeps apart: flock(2), shared, is held for life and counts the sessions;
 * an open-file-description lock (fcntl(2)) is held for moments, around every look at the record and every
 * change of what it lists.
 *
 * A path is in the record before its directory is made, so that one that was made is never forgotten.
 */

#define RECORD_BYTES_MAX 65536u

static int record_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	int r;

	do
		r = fcntl(fd, F_OFD_SETLKW, &lock);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int placeholders_open(Placeholders *placeholders, const char *path, uid_t uid, char **ret_problem)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return refuse(ret_problem, -errno, "%s cannot be opened: %s; restart claude-sandboxd", path,
			      strerror(errno));
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != uid || (st.st_mode & 0777) != 0600)
		return refuse(ret_problem, -EPERM, "%s is not a file of user %u with mode 0600; remove it",
			      path, (unsigned)uid);

	/* The exclusive lock is only ever taken under the record's lock, and given back before that is. */
	r = record_lock(fd, F_WRLCK);
	if (r < 0)
		return r;
	r = flock(fd, LOCK_SH) < 0 ? -errno : 0;
	(void)record_lock(fd, F_UNLCK);
	if (r < 0)
		return r;
	placeholders->record_fd = TAKE_FD(fd);
	return 0;
}

/* The caller holds the record's lock. Return: the size, or a negative errno. */
static ssize_t record_read(int fd, char **ret)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > (off_t)RECORD_BYTES_MAX)
		return -E2BIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	*ret = TAKE_PTR(text);
	return (ssize_t)n;
}

/* The record is NUL-separated paths: a path may hold every other byte. */
static bool record_has(const char *text, size_t size, const char *path)
{
	for (const char *p = text; p < text + size; p += strlen(p) + 1)
		if (streq(p, path))
			return true;
	return false;
}

static int record_add(int fd, const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t length = strlen(path) + 1;
	ssize_t size = record_read(fd, &text);

	if (size < 0)
		return (int)size;
	if (record_has(text, (size_t)size, path))
		return 0;
	if ((size_t)size + length > RECORD_BYTES_MAX)
		return -E2BIG;
	return pwrite(fd, path, length, size) == (ssize_t)length ? 0 : -EIO;
}

/* Make one, recorded. The caller holds the record's lock. */
static int make_one(int record_fd, int directory_fd, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int r;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = record_add(record_fd, path);
	if (r < 0)
		return r;
	return mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int placeholders_make(Placeholders *placeholders, const PlanView *view, const char *directory, uid_t uid,
		      const char *const *names, char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r;

	r = view->resolve(view->userdata, directory, &node);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !S_ISDIR(node.mode) || node.uid != uid || node.fd < 0)
		return 0;

	r = record_lock(placeholders->record_fd, F_WRLCK);
	if (r < 0)
		return r;
	for (size_t i = 0; names[i] && r == 0; i++) {
		r = make_one(placeholders->record_fd, node.fd, node.path, names[i]);
		/* Where the caller cannot make it, the agent cannot either. */
		if (r == -EROFS || r == -EACCES)
			r = 0;
		if (r < 0)
			r = refuse(ret_problem, r, "%s/%s cannot be made, to be hidden from the agent: %s",
				   node.path, names[i], strerror(-r));
	}
	(void)record_lock(placeholders->record_fd, F_UNLCK);
	return r;
}

/* Never through a link that somebody put on the way since; only an empty directory goes. */
static void remove_one(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	_cleanup_free_ char *directory = NULL;
	_cleanup_close_ int fd = FD_NONE;
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || slash == path)
		return;
	directory = strndup(path, (size_t)(slash - path));
	if (!directory)
		return;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, directory, &how, sizeof(how));
	if (fd >= 0)
		(void)unlinkat(fd, slash + 1, AT_REMOVEDIR);
}

void placeholders_close(Placeholders *placeholders)
{
	_cleanup_close_ int fd = TAKE_FD(placeholders->record_fd);
	_cleanup_free_ char *text = NULL;
	ssize_t size;

	if (fd < 0 || record_lock(fd, F_WRLCK) < 0)
		return;
	/* Refused while another session counts. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		size = record_read(fd, &text);
		for (const char *p = text; size > 0 && p < text + size; p += strlen(p) + 1)
			remove_one(p);
		(void)!ftruncate(fd, 0);
	}
	/* Both locks go with the description, the counting one not before the record is empty. */
}
