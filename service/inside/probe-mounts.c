/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Several may be mounted at one path, and others lie under what covers a directory above them. */
static bool is_in_sight(const char *path, uint64_t id)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_MNT_ID,
		     &st) == 0 &&
	       st.stx_mnt_id == id;
}

bool probing_mounts(Probing *p, Mounts *ret)
{
	size_t n = 0;
	int r = mounts_read(ret);

	if (r < 0) {
		probing_unclear(p, "the mounts cannot be read: %s", probing_error(r));
		return false;
	}
	for (size_t i = 0; i < ret->n; i++)
		if (is_in_sight(ret->rows[i].place, ret->rows[i].id))
			ret->rows[n++] = ret->rows[i];
	ret->n = n;
	return true;
}

const char *probing_sees_outside(const Probing *p, int root_fd)
{
	static const char *const places[] = { "/run/dbus/system_bus_socket", "/run/systemd/private",
					      "/run/docker.sock", "/run/claude-sandbox/sessions",
					      "/run/udev/data" };
	const ExpectedBait *bait = probing_bait(p, BAIT_PATH);

	if (bait &&
	    faccessat(root_fd, bait->name + (root_fd == AT_FDCWD ? 0 : 1), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return bait->name;
	for (size_t i = 0; i < ELEMENTSOF(places); i++)
		if (faccessat(root_fd, places[i] + (root_fd == AT_FDCWD ? 0 : 1), F_OK,
			      AT_SYMLINK_NOFOLLOW) == 0)
			return places[i];
	return NULL;
}

int probe_leave_root(void)
{
	/* What programs that make sandboxes do (pivot_root(2)). */
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0 || mkdir("old", 0700) < 0 ||
	    syscall(SYS_pivot_root, ".", "old") < 0 || umount2("old", MNT_DETACH) < 0)
		return -errno;
	return 0;
}
