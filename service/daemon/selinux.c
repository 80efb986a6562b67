/* SPDX-License-Identifier: MIT */
#include "service/daemon/selinux.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#define SELINUX_PLACE "/sys/fs/selinux"
#define OWN_ATTRIBUTES "/proc/self/attr"
#define CONTEXT_BYTES_MAX 4095u

bool selinux_is_on(void)
{
	struct statfs fs;

	return statfs(SELINUX_PLACE, &fs) == 0 && (uint64_t)fs.f_type == SELINUX_MAGIC;
}

static int open_attribute(const char *attributes, const char *name, int flags)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%s", attributes, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int selinux_read(const char *attributes, char **ret)
{
	_cleanup_close_ int fd = open_attribute(attributes, "current", O_RDONLY);
	char text[CONTEXT_BYTES_MAX + 1];
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	/* The kernel ends it with a zero byte, and some have a line's end there. */
	while (n > 0 && (text[n - 1] == 0 || text[n - 1] == '\n'))
		n--;
	if (n == 0 || (size_t)n > CONTEXT_BYTES_MAX)
		return -EBADMSG;
	for (ssize_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] == 0x7f)
			return -EBADMSG;
	*ret = strndup(text, (size_t)n);
	return *ret ? 0 : -ENOMEM;
}

int selinux_set_exec(const char *attributes, const char *context)
{
	_cleanup_close_ int fd = open_attribute(attributes, "exec", O_WRONLY);
	size_t n = strlen(context) + 1;

	if (fd < 0)
		return fd;
	if (write(fd, context, n) != (ssize_t)n)
		return errno ? -errno : -EIO;
	return 0;
}

int selinux_of_caller(pid_t pid, char **ret)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL;
	char attributes[64];
	int r;

	*ret = NULL;
	if (!selinux_is_on())
		return 0;
	(void)snprintf(attributes, sizeof(attributes), "/proc/%d/attr", (int)pid);
	r = selinux_read(attributes, &theirs);
	if (r >= 0)
		r = selinux_read(OWN_ATTRIBUTES, &ours);
	if (r < 0)
		return r;
	if (!streq(theirs, ours))
		*ret = TAKE_PTR(theirs);
	return 0;
}
