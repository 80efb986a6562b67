/* SPDX-License-Identifier: MIT */
#include "shim/install-tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static inline void closedirp(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

/* A stream over the directory that fd is; fd stays the caller's. */
static DIR *open_stream(int fd)
{
	int own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = own_fd < 0 ? NULL : fdopendir(own_fd);

	if (!stream)
		(void)close_fd(own_fd);
	return stream;
}

/* The next entry but "." and ".."; NULL at the end with errno 0. */
static struct dirent *next_entry(DIR *stream)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(stream);
	} while (entry && (streq(entry->d_name, ".") || streq(entry->d_name, "..")));
	return entry;
}

#define RESOLVE_TRIES 10000u

typedef struct Walk {
	int root_fd;
	dev_t device;
	unsigned entries;
	char **reterr;
} Walk;

static int refuse_errno(Walk *walk, int error, const char *path)
{
	return refuse(walk->reterr, error, "%s: %s", path, strerrordesc_np(-error));
}

static int settle_link(Walk *walk, int directory_fd, const char *name, const char *path)
{
	/* The kernel itself follows it and stops where it would leave (openat2(2)). */
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int fd = FD_NONE;

	/* Where something is mounted or renamed anywhere meanwhile, it does not vouch for a ".."
	 * (openat2(2)). */
	for (unsigned i = 0; i < RESOLVE_TRIES; i++) {
		fd = (int)syscall(SYS_openat2, walk->root_fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0 && errno == EAGAIN)
		return refuse_errno(walk, -EAGAIN, path);
	if (fd < 0)
		return refuse(walk->reterr, -EBADMSG, "the link %s leads out of the package or nowhere",
			      path);
	if (fchownat(directory_fd, name, 0, 0, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse_errno(walk, -errno, path);
	return 0;
}

static int settle_file(Walk *walk, int directory_fd, const char *name, const char *path,
		       const struct stat *st)
{
	_cleanup_close_ int fd = FD_NONE;

	if (st->st_nlink != 1)
		return refuse(walk->reterr, -EBADMSG, "the file %s has a second name", path);
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* The owner first: a change of it takes set-id bits and capabilities away (chown(2)). */
	if (fd < 0 || fchown(fd, 0, 0) < 0 || fchmod(fd, st->st_mode & S_IXUSR ? 0755 : 0644) < 0)
		return refuse_errno(walk, -errno, path);
	return 0;
}

static int settle_directory(Walk *walk, int fd, const char *path, unsigned depth);

static int settle_entry(Walk *walk, int directory_fd, const char *name, const char *path, unsigned depth)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (++walk->entries > INSTALL_TREE_ENTRIES_MAX)
		return refuse(walk->reterr, -EBADMSG, "more than %u files", INSTALL_TREE_ENTRIES_MAX);
	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse_errno(walk, -errno, path);
	if (st.st_dev != walk->device && S_ISDIR(st.st_mode))
		return refuse(walk->reterr, -EBADMSG, "something is mounted at %s", path);
	if (S_ISLNK(st.st_mode))
		return settle_link(walk, directory_fd, name, path);
	if (S_ISREG(st.st_mode))
		return settle_file(walk, directory_fd, name, path, &st);
	if (!S_ISDIR(st.st_mode))
		return refuse(walk->reterr, -EBADMSG, "%s is neither file nor directory", path);

	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? refuse_errno(walk, -errno, path) : settle_directory(walk, fd, path, depth + 1);
}

static int settle_directory(Walk *walk, int fd, const char *path, unsigned depth)
{
	_cleanup_(closedirp) DIR *stream = NULL;
	struct dirent *entry;

	if (depth > INSTALL_TREE_DEPTH_MAX)
		return refuse(walk->reterr, -EBADMSG, "%s is deeper than %u directories", path,
			      INSTALL_TREE_DEPTH_MAX);
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0755) < 0 || !(stream = open_stream(fd)))
		return refuse_errno(walk, -errno, path);
	while ((entry = next_entry(stream))) {
		_cleanup_free_ char *below = NULL;

		if (asprintf(&below, "%s%s%s", path, *path ? "/" : "", entry->d_name) < 0) {
			below = NULL;
			return refuse(walk->reterr, -ENOMEM, "not enough memory");
		}
		int r = settle_entry(walk, fd, entry->d_name, below, depth);
		if (r < 0)
			return r;
	}
	return errno ? refuse_errno(walk, -errno, path) : 0;
}

int install_tree_settle(int directory_fd, char **reterr)
{
	Walk walk = { .root_fd = directory_fd, .reterr = reterr };
	struct stat st;

	if (fstat(directory_fd, &st) < 0)
		return refuse_errno(&walk, -errno, "the package");
	walk.device = st.st_dev;
	return settle_directory(&walk, directory_fd, "", 0);
}

typedef struct Removal {
	int top_fd;
	unsigned moved;
} Removal;

static int remove_entry(Removal *removal, int directory_fd, const char *name, unsigned depth);

static int empty_directory(Removal *removal, int fd, unsigned depth)
{
	_cleanup_(closedirp) DIR *stream = open_stream(fd);
	struct dirent *entry;

	if (!stream)
		return -errno;
	while ((entry = next_entry(stream))) {
		int r = remove_entry(removal, fd, entry->d_name, depth + 1);
		if (r < 0)
			return r;
	}
	return -errno;
}

/* What lies too deep for one descriptor each is moved to the top, where the next round finds it. */
static int move_up(Removal *removal, int directory_fd, const char *name)
{
	_cleanup_free_ char *above = NULL;

	if (asprintf(&above, ".moved-%u", removal->moved++) < 0) {
		above = NULL;
		return -ENOMEM;
	}
	return renameat(directory_fd, name, removal->top_fd, above) < 0 ? -errno : 0;
}

static int remove_entry(Removal *removal, int directory_fd, const char *name, unsigned depth)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	if (unlinkat(directory_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > INSTALL_TREE_DEPTH_MAX)
		return move_up(removal, directory_fd, name);
	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = empty_directory(removal, fd, depth);
	if (r < 0)
		return r;
	return unlinkat(directory_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int install_tree_remove(int directory_fd, const char *name)
{
	_cleanup_close_ int top_fd = FD_NONE;
	Removal removal = { 0 };
	unsigned moved;

	if (unlinkat(directory_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	top_fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top_fd < 0)
		return -errno;
	removal.top_fd = top_fd;
	do {
		moved = removal.moved;
		int r = empty_directory(&removal, top_fd, 0);
		if (r < 0)
			return r;
	} while (removal.moved != moved);
	return unlinkat(directory_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}
