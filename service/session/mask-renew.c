/* SPDX-License-Identifier: MIT */
#include "service/session/mask-renew.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/session/jail-file.h"
#include "service/session/jail-join.h"
#include "service/session/jail-processes.h"

/* ---- the child, in the jail's mount namespace ---- */

/* As the plan's masks of directories. Return: a mount that lies nowhere yet, or a negative errno. */
static int make_directory(void)
{
	_cleanup_close_ int fs_fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs_fd < 0 || syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 ||
	    syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? -errno : fd;
}

static int cover_directory(int place_fd)
{
	_cleanup_close_ int fd = make_directory();

	if (fd < 0)
		return fd;
	return syscall(SYS_move_mount, fd, "", place_fd, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int cover_file(int place_fd)
{
	_cleanup_close_ int run_fd = open("/run", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			    file_fd = FD_NONE;
	_cleanup_free_ char *name = NULL;
	int r;

	if (run_fd < 0)
		return -errno;
	r = file_fd = jail_file_make(run_fd, &name);
	if (r < 0)
		return r;
	r = jail_file_mount(file_fd, place_fd);
	(void)unlinkat(run_fd, name, 0);
	return r;
}

static int cover(void *userdata)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	const Entry *entry = userdata;

	for (;;) {
		_cleanup_close_ int fd =
			(int)syscall(SYS_openat2, AT_FDCWD, entry->destination, &how, sizeof(how));
		struct stat st;
		int r;

		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (entry->kind == ENTRY_TMPFS && S_ISDIR(st.st_mode))
			r = cover_directory(fd);
		else if (entry->kind == ENTRY_FILE && S_ISREG(st.st_mode))
			r = cover_file(fd);
		else
			return -EINVAL;
		/* It was replaced once more since it was opened; the session waits for a time only. */
		if (r != -ENOENT)
			return r;
	}
}

/* ---- the session's side ---- */

/* After the mask is on: what makes mounts of its own now takes the mask along. */
static int is_all_in_one(pid_t leader)
{
	_cleanup_(jail_processes_done) JailProcesses processes = { 0 };
	int r = jail_processes_read(leader, &processes);

	for (size_t i = 0; r == 0 && i < processes.n; i++) {
		uint64_t mounts = processes.items[i].namespaces[NAMESPACE_MNT];

		if (mounts == 0 || mounts != processes.items[0].namespaces[NAMESPACE_MNT])
			r = -EXDEV;
	}
	return r;
}

int mask_renew(pid_t leader, int mounts_fd, const Entry *entry)
{
	int r = jail_join(mounts_fd, cover, (void *)(uintptr_t)entry);

	return r < 0 ? r : is_all_in_one(leader);
}
