/* SPDX-License-Identifier: MIT */
#include "service/session/placeholders.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "service/session/placeholder-file.h"
#include "service/session/state-directory.h"

/*
 * Two locks: flock(2) on the guard, shared, is held for life and counts the sessions; whoever has it
 * exclusively is alone. An open-file-description lock (fcntl(2)) on the record is held for moments, around
 * every change of what it lists.
 *
 * A path is in the record before its placeholder is made, so that one that was made is never forgotten. Where
 * the record cannot be written they are made all the same: a trace is less than a hole.
 */

#define RECORD_NAME "placeholders"
#define RECORD_BYTES_MAX 65536u

static int record_open(const Placeholders *placeholders, bool make)
{
	_cleanup_(plan_node_done) PlanNode state = PLAN_NODE_INIT;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	int r;

	r = state_directory_open(&placeholders->view, placeholders->home, placeholders->uid, make, &state);
	if (r < 0)
		return r;
	fd = openat(state.fd, RECORD_NAME,
		    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (make ? O_CREAT : 0), 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != placeholders->uid)
		return -EPERM;
	while (fcntl(fd, F_OFD_SETLKW, &lock) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

/* Return: the size, or a negative errno. *ret ends with a NUL that does not count. */
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

static bool record_lists(int fd, const char *path)
{
	_cleanup_free_ char *text = NULL;
	ssize_t size = record_read(fd, &text);

	return size > 0 && record_has(text, (size_t)size, path);
}

static int make_one(const Placeholders *placeholders, const PlanNode *directory, const char *name)
{
	_cleanup_close_ int record_fd = FD_NONE;
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (fstatat(directory->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	/* The plan finds that out as well, and shows nothing of it. */
	if (errno == EACCES)
		return 0;
	if (errno != ENOENT)
		return -errno;
	if (asprintf(&path, "%s/%s", directory->path, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	record_fd = record_open(placeholders, true);
	(void)record_add(record_fd, path);
	return mkdirat(directory->fd, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int placeholders_make(Placeholders *placeholders, const char *directory, const char *const *names,
		      char **ret_problem)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = own_directory_open(&placeholders->view, directory, placeholders->uid, &node);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; names[i]; i++) {
		r = make_one(placeholders, &node, names[i]);
		/* The directory is the caller's: the agent can change a mode that is in the way. */
		if (r == -EACCES)
			return refuse(ret_problem, r,
				      "%s/%s cannot be made, to be hidden from the agent; chmod u+rwx %s",
				      node.path, names[i], node.path);
		/* Then the agent cannot either. */
		if (r < 0 && r != -EROFS)
			return refuse(ret_problem, r, "%s/%s cannot be made, to be hidden from the agent: %s",
				      node.path, names[i], strerror(-r));
	}
	return 0;
}

static int hold_file(Placeholders *placeholders, int directory_fd, const char *name)
{
	_cleanup_close_ int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
	struct PlaceholderFile *grown;
	char *copy;

	if (fd < 0)
		return -errno;
	grown = reallocarray(placeholders->files, placeholders->n_files + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	placeholders->files = grown;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	grown[placeholders->n_files++] =
		(struct PlaceholderFile){ .directory_fd = TAKE_FD(fd), .name = copy };
	return 0;
}

int placeholders_make_file(Placeholders *placeholders, int directory_fd, const char *directory,
			   const char *name)
{
	_cleanup_close_ int record_fd = FD_NONE;
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int r;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* While it is locked no other session is making one. */
	record_fd = record_open(placeholders, true);
	/* What is no placeholder is never in the record. One that is there may have been left by a version or
	 * a home that the record does not know; half made, by a session that was killed. */
	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = errno == ENOENT ? 0 : -errno;
	else
		r = placeholder_file_make(directory_fd, name, placeholders->uid);
	if (r == -EEXIST && record_lists(record_fd, path)) {
		placeholder_file_remove(directory_fd, name, placeholders->uid);
		r = 0;
	}
	if (r < 0)
		return r;
	(void)record_add(record_fd, path);
	r = hold_file(placeholders, directory_fd, name);
	return r < 0 ? r : placeholder_file_make(directory_fd, name, placeholders->uid);
}

/* Never through a link that somebody put on the way since; only an empty directory goes, or a file of ours.
 */
static void remove_one(const char *path, uid_t uid)
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
	if (fd < 0)
		return;
	if (unlinkat(fd, slash + 1, AT_REMOVEDIR) < 0 && errno == ENOTDIR)
		placeholder_file_remove(fd, slash + 1, uid);
}

static void remove_all(const Placeholders *placeholders)
{
	_cleanup_(plan_node_done) PlanNode state = PLAN_NODE_INIT;
	_cleanup_close_ int record_fd = record_open(placeholders, false);
	_cleanup_free_ char *text = NULL;
	ssize_t size;

	for (size_t i = 0; i < placeholders->n_files; i++)
		placeholder_file_remove(placeholders->files[i].directory_fd, placeholders->files[i].name,
					placeholders->uid);
	if (record_fd < 0)
		return;
	size = record_read(record_fd, &text);
	for (const char *p = text; size > 0 && p < text + size; p += strlen(p) + 1)
		remove_one(p, placeholders->uid);
	if (state_directory_open(&placeholders->view, placeholders->home, placeholders->uid, false, &state) ==
	    0)
		(void)unlinkat(state.fd, RECORD_NAME, 0);
}

int placeholders_begin(Placeholders *placeholders, const PlanView *view, const char *home, uid_t uid,
		       char **ret_problem)
{
	if (placeholders->guard_fd < 0)
		return refuse(ret_problem, -EBADF,
			      "the service passed no lock file; are all parts of one version? restart "
			      "claude-sandboxd");
	placeholders->home = strdup(home);
	if (!placeholders->home)
		return -ENOMEM;
	placeholders->view = *view;
	placeholders->uid = uid;
	/* Nobody else counts: what is in the record was left by sessions that were killed. */
	if (flock(placeholders->guard_fd, LOCK_EX | LOCK_NB) == 0)
		remove_all(placeholders);
	/* It waits only for one that is removing, which is done in a moment. */
	while (flock(placeholders->guard_fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return refuse(ret_problem, -errno,
				      "the lock of this user's sessions cannot be had: %s", strerror(errno));
	placeholders->counted = true;
	return 0;
}

void placeholders_close(Placeholders *placeholders)
{
	if (placeholders->counted) {
		/* Refused while another session counts. */
		if (flock(placeholders->guard_fd, LOCK_EX | LOCK_NB) == 0)
			remove_all(placeholders);
		(void)flock(placeholders->guard_fd, LOCK_UN);
	}
	for (size_t i = 0; i < placeholders->n_files; i++) {
		(void)close_fd(placeholders->files[i].directory_fd);
		free(placeholders->files[i].name);
	}
	free(placeholders->files);
	free(placeholders->home);
	*placeholders = PLACEHOLDERS_INIT;
}
