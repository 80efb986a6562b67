/* SPDX-License-Identifier: MIT */
#include "shim/install-store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "shim/install-agent.h"
#include "shim/install-tree.h"
#include "shim/install-use.h"

#define VERSIONS ".versions"
#define LOCK ".lock"
#define NEW ".new"
#define SAME_VERSION_MAX 1000u

void install_store_done(InstallStore *store)
{
	free(store->path);
	close_fdp(&store->fd);
	close_fdp(&store->versions_fd);
	close_fdp(&store->lock_fd);
	*store = INSTALL_STORE_INIT;
}

/* A directory that only root changes, made if it is not there. Return: a descriptor, or -errno. */
static int open_directory(int above_fd, const char *path)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;

	if (mkdirat(above_fd, path, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(above_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	/* Whatever the caller's umask was: sessions of every user look in here. */
	if ((st.st_mode & 07777) != 0755 && fchmod(fd, 0755) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int install_store_open(const char *path, InstallStore *ret, char **reterr)
{
	_cleanup_(install_store_done) InstallStore store = INSTALL_STORE_INIT;
	int r;

	store.path = strdup(path);
	if (!store.path)
		return refuse(reterr, -ENOMEM, "not enough memory");
	store.fd = r = open_directory(AT_FDCWD, path);
	if (r >= 0)
		store.versions_fd = r = open_directory(store.fd, VERSIONS);
	if (r == -EPERM)
		return refuse(reterr, r, "%s can be changed by others than root; remove it or mend its mode",
			      path);
	if (r >= 0) {
		store.lock_fd = openat(store.fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = store.lock_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return refuse(reterr, r, "%s cannot be used: %s", path, strerrordesc_np(-r));
	if (flock(store.lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? refuse(reterr, -EBUSY,
						     "another 'claude-sandbox install' is at work; wait for "
						     "its end")
					    : refuse(reterr, -errno, "%s/%s cannot be locked: %s", path, LOCK,
						     strerrordesc_np(errno));
	*ret = store;
	store = INSTALL_STORE_INIT;
	return 0;
}

/* The text of the link name in fd, or NULL with errno. */
static char *read_link(int fd, const char *name)
{
	char *text = calloc(1, PATH_MAX);

	if (text && readlinkat(fd, name, text, PATH_MAX - 1) < 0) {
		int saved = errno;

		free(text);
		errno = saved;
		return NULL;
	}
	return text;
}

static int is_installed(const InstallStore *store, const char *entry)
{
	for (size_t i = 0; install_agent_at(i); i++) {
		_cleanup_free_ char *text = read_link(store->fd, install_agent_at(i)->name);
		const char *current = text ? starts_with(text, VERSIONS "/") : NULL;

		if (!text && errno == ENOMEM)
			return -ENOMEM;
		if (current && streq(current, entry))
			return 1;
	}
	return 0;
}

int install_store_sweep(InstallStore *store)
{
	struct dirent *entry;
	int used = 0, r, fd;
	DIR *versions;

	r = install_tree_remove(store->fd, INSTALL_STAGING);
	if (r == 0)
		r = install_tree_remove(store->fd, NEW);
	if (r < 0)
		return r;
	fd = openat(store->versions_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	versions = fd < 0 ? NULL : fdopendir(fd);
	if (!versions) {
		r = -errno;
		(void)close_fd(fd);
		return r;
	}
	while (r >= 0 && (errno = 0, entry = readdir(versions))) {
		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		r = is_installed(store, entry->d_name);
		if (r != 0)
			continue;
		r = install_is_used(entry->d_name);
		if (r == 0)
			r = install_tree_remove(store->versions_fd, entry->d_name);
		else if (r > 0)
			used++;
	}
	if (r >= 0 && errno)
		r = -errno;
	(void)closedir(versions);
	return r < 0 ? r : used;
}

int install_store_stage(InstallStore *store, char **reterr)
{
	int fd;

	if (mkdirat(store->fd, INSTALL_STAGING, 0700) < 0)
		fd = -errno;
	else if ((fd = openat(store->fd, INSTALL_STAGING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
		 0)
		fd = -errno;
	return fd < 0 ? refuse(reterr, fd, "%s/%s cannot be made: %s", store->path, INSTALL_STAGING,
			       strerrordesc_np(-fd))
		      : fd;
}

int install_store_choose(InstallStore *store, const char *name, const char *version, char **ret_entry)
{
	for (unsigned i = 0; i < SAME_VERSION_MAX; i++) {
		_cleanup_free_ char *entry = NULL;
		int n = i == 0 ? asprintf(&entry, "%s-%s", name, version)
			       : asprintf(&entry, "%s-%s+%u", name, version, i);

		if (n < 0) {
			entry = NULL;
			return -ENOMEM;
		}
		if (faccessat(store->versions_fd, entry, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return -errno;
			*ret_entry = TAKE_PTR(entry);
			return 0;
		}
	}
	return -EEXIST;
}

static int exchange_link(InstallStore *store, const char *name, const char *entry)
{
	_cleanup_free_ char *target = NULL;
	struct stat st;

	if (asprintf(&target, VERSIONS "/%s", entry) < 0) {
		target = NULL;
		return -ENOMEM;
	}
	if (unlinkat(store->fd, NEW, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(target, store->fd, NEW) < 0)
		return -errno;
	/* A directory that somebody put here by hand becomes the leftover. */
	if (fstatat(store->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return renameat2(store->fd, NEW, store->fd, name, RENAME_EXCHANGE) < 0 ? -errno : 0;
	return renameat(store->fd, NEW, store->fd, name) < 0 ? -errno : 0;
}

int install_store_publish(InstallStore *store, int source_fd, const char *source, const char *name,
			  const char *entry, char **reterr)
{
	int r = 0;

	/* The files before the link that makes them count. */
	if (renameat2(source_fd, source, store->versions_fd, entry, RENAME_NOREPLACE) < 0 ||
	    syncfs(store->fd) < 0)
		r = -errno;
	if (r == 0)
		r = exchange_link(store, name, entry);
	if (r < 0)
		return refuse(reterr, r, "%s/" VERSIONS "/%s cannot be put in place: %s", store->path, entry,
			      strerrordesc_np(-r));
	(void)fsync(store->fd);
	return 0;
}

int install_store_withdraw(InstallStore *store, const char *name)
{
	if (unlinkat(store->fd, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	return renameat(store->fd, name, store->fd, NEW) < 0 ? -errno : 0;
}

int install_store_version(const char *path, const char *name, char **ret_version)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	const char *version;
	char *copy;

	if (fd < 0)
		return -errno;
	text = read_link(fd, name);
	if (!text)
		return errno == EINVAL ? -EBADMSG : -errno;
	version = starts_with(text, VERSIONS "/");
	version = version ? starts_with(version, name) : NULL;
	if (!version || *version != '-' || strchr(version, '/'))
		return -EBADMSG;
	version++;
	copy = strndup(version, strcspn(version, "+"));
	if (!copy)
		return -ENOMEM;
	*ret_version = copy;
	return 0;
}
