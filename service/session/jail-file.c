/* SPDX-License-Identifier: MIT */
#include "service/session/jail-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/session/jail-join.h"

static int open_of(pid_t leader, const char *name, int flags)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "/proc/%d/%s", (int)leader, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_seen(int root_fd, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int jail_file_write(int fd, const char *text)
{
	size_t size = strlen(text);

	/* Readers see it short for a moment, never mixed. */
	if (ftruncate(fd, 0) < 0)
		return -errno;
	for (size_t at = 0; at < size;) {
		ssize_t n = pwrite(fd, text + at, size - at, (off_t)at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

bool jail_file_is_seen(pid_t leader, const char *path, int fd)
{
	_cleanup_close_ int root_fd = open_of(leader, "root", O_PATH | O_DIRECTORY), seen_fd = FD_NONE;
	struct stat ours, seen;

	if (root_fd < 0 || fd < 0)
		return false;
	seen_fd = open_seen(root_fd, path);
	return seen_fd >= 0 && fstat(fd, &ours) == 0 && fstat(seen_fd, &seen) == 0 &&
	       ours.st_dev == seen.st_dev && ours.st_ino == seen.st_ino;
}

/* seen_fd: O_PATH, perhaps to a thing of the agent's: nothing that could block is opened. */
static bool reads(int seen_fd, const char *text)
{
	size_t size = strlen(text), n = 0;
	_cleanup_free_ char *found = malloc(size + 1), *again = NULL;
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (!found || fstat(seen_fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != size)
		return false;
	if (asprintf(&again, "/proc/self/fd/%d", seen_fd) < 0)
		again = NULL;
	if (again)
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	while (fd >= 0 && n < size) {
		ssize_t r = read(fd, found + n, size - n);

		if (r <= 0)
			return false;
		n += (size_t)r;
	}
	return fd >= 0 && memcmp(found, text, size) == 0;
}

bool jail_file_reads(pid_t leader, const char *path, const char *text)
{
	_cleanup_close_ int root_fd = open_of(leader, "root", O_PATH | O_DIRECTORY), seen_fd = FD_NONE;

	seen_fd = root_fd < 0 ? root_fd : open_seen(root_fd, path);
	return seen_fd >= 0 && reads(seen_fd, text);
}

/*
 * A place to mount on, with the directories on the way to it. Only in the jail's own /run: everywhere else
 * what is made would be on the host. Return: a descriptor of the empty file or a negative errno.
 */
static int make_place(int root_fd, const char *path)
{
	_cleanup_close_ int run_fd = open_seen(root_fd, "/run"), parent_fd = open_seen(root_fd, "/");
	struct stat run, parent;

	if (run_fd < 0 || fstat(run_fd, &run) < 0)
		return -ENOENT;
	for (size_t begin = 1, end;; begin = end + 1) {
		end = begin + strcspn(path + begin, "/");

		_cleanup_free_ char *above = strndup(path, end);
		const char *name = above ? above + begin : NULL;
		int fd;

		if (!above)
			return -ENOMEM;
		fd = open_seen(root_fd, above);
		if (fd == -ENOENT && fstat(parent_fd, &parent) == 0 && parent.st_dev == run.st_dev) {
			if (path[end] == '/')
				(void)mkdirat(parent_fd, name, 0755);
			else
				(void)mknodat(parent_fd, name, S_IFREG | 0444, 0);
			fd = open_seen(root_fd, above);
		}
		if (fd < 0 || path[end] == '\0')
			return fd;
		close_fd(parent_fd);
		parent_fd = fd;
	}
}

int jail_file_mount(int file_fd, int place_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC };
	_cleanup_close_ int tree_fd = (int)syscall(
		SYS_open_tree, file_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned)AT_EMPTY_PATH);

	if (tree_fd < 0 ||
	    syscall(SYS_mount_setattr, tree_fd, "", (unsigned)AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
	    syscall(SYS_move_mount, tree_fd, "", place_fd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* What is put into a jail. */
typedef struct Put {
	int file_fd;
	const char *path, *old; /* old: the last name of the mount that makes room, or NULL */
	const char *last_name;  /* where the place is made when it is not there */
} Put;

/* In the child, which is alone with its namespaces. */
static int put(void *userdata)
{
	_cleanup_close_ int root_fd = FD_NONE, place_fd = FD_NONE;
	const Put *put = userdata;
	struct stat st;

	/* Not through a last link, which might be the agent's and lead to a mask: those have other names. */
	if (put->old && umount2(put->old, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return -errno;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place_fd = open_seen(root_fd, put->path);
	if (place_fd == -ENOENT && put->last_name && make_place(root_fd, put->last_name) >= 0)
		place_fd = open_seen(root_fd, put->path);
	if (place_fd < 0)
		return place_fd;
	if (fstat(place_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	return jail_file_mount(put->file_fd, place_fd);
}

int jail_file_make(int directory_fd, char **ret_name)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = FD_NONE;
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (asprintf(&name, ".%016" PRIx64, random) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0444) < 0) {
		int r = -errno;

		(void)unlinkat(directory_fd, name, 0);
		return r;
	}
	*ret_name = TAKE_PTR(name);
	return TAKE_FD(fd);
}

/* A mount whose file has no name any more cannot be mounted on. */
static bool must_make_room(pid_t leader, const char *path, const char *before)
{
	_cleanup_close_ int root_fd = open_of(leader, "root", O_PATH | O_DIRECTORY), seen_fd = FD_NONE;
	struct stat st;

	seen_fd = root_fd < 0 ? root_fd : open_seen(root_fd, path);
	return seen_fd >= 0 && fstat(seen_fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 &&
	       reads(seen_fd, before);
}

int jail_file_put(pid_t leader, const JailFilePlace *place, const char *text, int *ret_fd)
{
	_cleanup_close_ int run_fd = open_of(leader, "root/run", O_RDONLY | O_DIRECTORY), file_fd = FD_NONE,
			    mounts_fd = jail_mounts_open(leader);
	_cleanup_free_ char *name = NULL;
	int r;

	if (run_fd < 0 || mounts_fd < 0)
		return run_fd < 0 ? run_fd : mounts_fd;
	/* A file without a name cannot be mounted (d_set_mounted() of the kernel); it loses it at once. */
	r = file_fd = jail_file_make(run_fd, &name);
	if (r < 0)
		return r;
	r = jail_file_write(file_fd, text);
	if (r == 0)
		r = jail_join(mounts_fd, put,
			      &(Put){ .file_fd = file_fd,
				      .path = place->path,
				      .last_name = place->last_name,
				      .old = must_make_room(leader, place->path, place->before)
						     ? place->last_name
						     : NULL });
	(void)unlinkat(run_fd, name, 0);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(file_fd);
	return 0;
}
