/* SPDX-License-Identifier: MIT */
#include "service/inside/standard-device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dbus/base.h"

#define MAJOR_MEMORY 1u /* Documentation/admin-guide/devices.txt of the kernel */

static const struct {
	unsigned minor;
	const char *path;
} devices[] = {
	{ 3, "/dev/null" },   { 5, "/dev/zero" },    { 7, "/dev/full" },
	{ 8, "/dev/random" }, { 9, "/dev/urandom" },
};

int standard_device_replace(int fd)
{
	_cleanup_close_ int own_fd = FD_NONE;
	const char *path = NULL;
	struct stat st;
	int flags;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != MAJOR_MEMORY)
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(devices); i++)
		if (devices[i].minor == minor(st.st_rdev))
			path = devices[i].path;
	flags = fcntl(fd, F_GETFL);
	if (!path || flags < 0)
		return path ? -errno : 0;
	own_fd = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_CLOEXEC);
	if (own_fd < 0)
		return -errno;
	return dup2(own_fd, fd) < 0 ? -errno : 0;
}
