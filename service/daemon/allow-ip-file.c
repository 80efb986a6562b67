/* SPDX-License-Identifier: MIT */

/*
 * THE ORDER, so that no moment has half a file: the new text into a temporary file beside the old one, its
 * owner and mode, fsync of it, rename over the old one, fsync of the directory. What a kill leaves of the
 * temporary file (one name, so that there is never more than one) the next edit removes.
 */

#include "service/daemon/allow-ip-file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "service/daemon/config-file.h"
#include "service/daemon/log.h"
#include "service/plan/config-edit.h"

#define NEW_MODE 0644
/* Of one attribute; a list of 200 names takes less than two kilobytes. */
#define ATTRIBUTE_MAX 16384u
/* So often may somebody else have written between reading and replacing. */
#define ATTEMPTS_MAX 3u

typedef struct File {
	const char *path, *name; /* name: its last component */
	int directory_fd, fd;    /* fd: FD_NONE for a file that is missing */
	char *temporary;
	struct stat st;
	char *text;
	size_t size;
} File;

static void file_close(File *file)
{
	file->fd = close_fd(file->fd);
	freep(&file->text);
	file->size = 0;
}

static void file_done(File *file)
{
	file_close(file);
	file->directory_fd = close_fd(file->directory_fd);
	free(file->temporary);
}

static int file_fail(const File *file, const char *what, int error, char **ret_problem)
{
	return refuse(ret_problem, error, "%s: %s: %s", file->path, what, strerror(-error));
}

static int file_init(File *file, const char *path, char **ret_problem)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = strndup(path, (size_t)(slash - path) + 1);

	*file = (File){ .path = path, .name = slash + 1, .directory_fd = FD_NONE, .fd = FD_NONE };
	if (!directory || asprintf(&file->temporary, ".%s.new", file->name) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	file->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return file->directory_fd < 0 ? file_fail(file, "its directory cannot be opened", -errno, ret_problem)
				      : 0;
}

static int file_read(File *file, char **ret_problem)
{
	int r;

	file_close(file);
	r = config_file_open(file->path, &file->fd, &file->st, &file->text, &file->size, ret_problem);
	return r == -ENOENT ? 0 : r;
}

/* Is what was read still what is there? */
static bool file_is_current(const File *file)
{
	struct stat now;

	if (fstatat(file->directory_fd, file->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && file->fd < 0;
	return file->fd >= 0 && now.st_dev == file->st.st_dev && now.st_ino == file->st.st_ino &&
	       now.st_size == file->st.st_size && now.st_mtim.tv_sec == file->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == file->st.st_mtim.tv_nsec;
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Where the file system or a security module keeps them; one that cannot be kept refuses. */
static int copy_attributes(int from_fd, int to_fd)
{
	static const char *const names[] = { "system.posix_acl_access", "security.selinux" };
	_cleanup_free_ char *value = malloc(ATTRIBUTE_MAX);

	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		ssize_t n = fgetxattr(from_fd, names[i], value, ATTRIBUTE_MAX);

		if (n < 0 && (errno == ENODATA || errno == EOPNOTSUPP))
			continue;
		if (n < 0 || fsetxattr(to_fd, names[i], value, (size_t)n, 0) < 0)
			return -errno;
	}
	return 0;
}

static int settle_temporary(const File *file, int fd, const char *text, size_t size)
{
	bool exists = file->fd >= 0;
	int r;

	r = write_all(fd, text, size);
	if (r < 0)
		return r;
	/* The owner first: a change of it may take bits of the mode away. */
	if (fchown(fd, exists ? file->st.st_uid : 0, exists ? file->st.st_gid : 0) < 0 ||
	    fchmod(fd, exists ? file->st.st_mode & 07777 : NEW_MODE) < 0)
		return -errno;
	r = exists ? copy_attributes(file->fd, fd) : 0;
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

static int file_replace(const File *file, const char *text, size_t size, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	if (unlinkat(file->directory_fd, file->temporary, 0) < 0 && errno != ENOENT)
		return file_fail(file, "what an earlier edit left beside it cannot be removed", -errno,
				 ret_problem);
	fd = openat(file->directory_fd, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return file_fail(file, "no new file can be made beside it", -errno, ret_problem);
	r = settle_temporary(file, fd, text, size);
	if (r == 0 && !file_is_current(file))
		r = -ESTALE;
	if (r == 0 && renameat(file->directory_fd, file->temporary, file->directory_fd, file->name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(file->directory_fd, file->temporary, 0);
		return r == -ESTALE ? r : file_fail(file, "it cannot be replaced", r, ret_problem);
	}
	/* It is replaced for everybody who looks; a loss of power now may still bring the old one back. */
	if (fsync(file->directory_fd) < 0)
		log_line("%s: the change may not survive a loss of power: %s", file->path, strerror(errno));
	return 0;
}

/* Return: 0 with *ret_text, NULL where nothing is to be done; a negative errno. */
static int edit_text(const char *path, const char *text, size_t size, const AllowIpEdit *edit,
		     char **ret_text, size_t *ret_size, char **ret_problem)
{
	int r = edit->remove
			? config_edit_remove(path, text, size, edit->address, ret_text, ret_size, ret_problem)
			: config_edit_add(path, text, size, edit->address, edit->comment, ret_text, ret_size,
					  ret_problem);

	return r == -EALREADY ? 0 : r == -E2BIG ? -EINVAL : r;
}

static int edit_once(File *file, const AllowIpEdit *edit, char **ret_problem)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r;

	r = file_read(file, ret_problem);
	if (r >= 0)
		r = edit_text(file->path, file->text ?: "", file->size, edit, &text, &size, ret_problem);
	if (r < 0 || !text)
		return r;
	r = file_replace(file, text, size, ret_problem);
	if (r < 0)
		return r;
	config_file_written(file->path, text, size);
	return 1;
}

static int edit_check(const char *path, const AllowIpEdit *edit, char **ret_problem)
{
	_cleanup_free_ char *edited = NULL;
	const char *text;
	size_t size;
	int r;

	r = config_file_last_text(path, &text, &size, ret_problem);
	return r < 0 ? r : edit_text(path, text, size, edit, &edited, &size, ret_problem);
}

/* Nobody waits for it here: whoever holds it is another service, about to end, or an administrator. */
static int take_lock(const File *file, const char *lock_path, int *ret_fd, char **ret_problem)
{
	_cleanup_close_ int fd = open(lock_path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return refuse(ret_problem, -errno, "%s: cannot be opened: %s", lock_path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? refuse(ret_problem, -EAGAIN,
					"%s: another program edits it (it holds the lock %s); try "
					"again",
					file->path, lock_path)
			       : refuse(ret_problem, -errno, "%s: cannot be locked: %s", lock_path,
					strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int allow_ip_file_edit(const char *path, const char *lock_path, const AllowIpEdit *edit, char **ret_problem)
{
	_cleanup_(file_done) File file = { .directory_fd = FD_NONE, .fd = FD_NONE };
	_cleanup_close_ int lock_fd = FD_NONE;
	int r;

	if (edit->check)
		return edit_check(path, edit, ret_problem);
	r = file_init(&file, path, ret_problem);
	if (r == 0)
		r = take_lock(&file, lock_path, &lock_fd, ret_problem);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		r = edit_once(&file, edit, ret_problem);
		if (r != -ESTALE)
			return r;
	}
	return refuse(ret_problem, -EAGAIN, "%s: somebody else changes it all the time; try again", path);
}
