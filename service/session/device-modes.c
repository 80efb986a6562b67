/* SPDX-License-Identifier: MIT */
#include "service/session/device-modes.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#define DEVICES "/dev"

/* Containers mount single nodes into their /dev. */
static int make_read_only(void)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };

	if (syscall(SYS_mount_setattr, AT_FDCWD, DEVICES, AT_RECURSIVE | AT_SYMLINK_NOFOLLOW, &attributes,
		    sizeof(attributes)) < 0)
		return -errno;
	return 0;
}

int device_modes_keep(char **ret_problem)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return refuse(ret_problem, -errno, "no mount namespace can be made: %s", strerror(errno));
	r = make_read_only();
	/* It is part of the root's file system. */
	if (r == -EINVAL)
		r = mount(DEVICES, DEVICES, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : make_read_only();
	if (r == -ENOSYS)
		return refuse(ret_problem, r,
			      "root's agents could change the modes of the machine's devices: that takes a "
			      "kernel from 5.12 on to prevent");
	return r < 0 ? refuse(ret_problem, r,
			      "the modes of the machine's devices cannot be kept from root's agents: %s",
			      strerror(-r))
		     : 0;
}
