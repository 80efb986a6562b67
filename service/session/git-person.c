/* SPDX-License-Identifier: MIT */
#include "service/session/git-person.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/paths.h"
#include "service/session/git-discovery.h"

static int open_plain(int directory_fd, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	int fd = (int)syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Agents write at the home's top level in no session, whatever its workspace: a link there is the person's. */
static bool is_at_top(const char *path, const char *home)
{
	const char *rest = starts_with(path, home);

	return rest && *rest == '/' && !strchr(rest + 1, '/');
}

/* Read by one descriptor of the directory that holds the link. */
static int open_by_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = strndup(path, (size_t)(slash - path) + 1);
	_cleanup_close_ int fd = FD_NONE;
	char target[4096]; /* PATH_MAX */
	ssize_t n;

	if (!directory)
		return -ENOMEM;
	fd = open_plain(AT_FDCWD, directory, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	n = readlinkat(fd, slash + 1, target, sizeof(target));
	if (n < 0 || (size_t)n >= sizeof(target))
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	return open_plain(fd, target, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

int git_person_read(const SessionRequest *request, const char *home, const char *path, char **ret)
{
	const char *below = path_is_within(path, request->home) ? path + strlen(request->home) : NULL;
	_cleanup_free_ char *canonical = NULL;
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	size_t size;

	if (path[0] != '/')
		return -EBADMSG;
	if (asprintf(&canonical, "%s%s", below && home ? home : "", below && home ? below : path) < 0) {
		canonical = NULL;
		return -ENOMEM;
	}
	fd = open_plain(AT_FDCWD, canonical, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd == -ELOOP && is_at_top(canonical, home ?: request->home))
		fd = open_by_link(canonical);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (st.st_uid != request->uid && st.st_uid != 0))
		return -EBADMSG;
	return git_places_read(fd, GIT_PERSON_BYTES_MAX, ret, &size);
}
