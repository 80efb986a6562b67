/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const struct {
	const char *name;
	unsigned long flag;
} flag_names[] = {
	{ "ro", MS_RDONLY },         { "nosuid", MS_NOSUID },   { "nodev", MS_NODEV },
	{ "noexec", MS_NOEXEC },     { "noatime", MS_NOATIME }, { "nodiratime", MS_NODIRATIME },
	{ "relatime", MS_RELATIME },
};

/* Octal escapes of blanks and the like (proc(5)), in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

static unsigned long read_flags(char *options)
{
	unsigned long flags = 0;
	char *rest = NULL;

	for (char *option = strtok_r(options, ",", &rest); option; option = strtok_r(NULL, ",", &rest))
		for (size_t i = 0; i < ELEMENTSOF(flag_names); i++)
			if (streq(option, flag_names[i].name))
				flags |= flag_names[i].flag;
	return flags;
}

/* Several may be mounted at one path, and others lie under what covers a directory above them. */
static bool is_in_sight(const char *path, unsigned long id)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_MNT_ID,
		     &st) == 0 &&
	       st.stx_mnt_id == id;
}

/*
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw" (proc(5)). Return: 1, 0 for one that is
 * not in sight, or a negative errno.
 */
static int parse(char *line, ProbeMount *ret)
{
	char *fields[6], *rest = NULL, *type = strstr(line, " - ");

	if (!type)
		return -EBADMSG;
	*type = '\0';
	type += 3;
	type[strcspn(type, " \n")] = '\0';
	for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
		fields[i] = strtok_r(i == 0 ? line : NULL, " ", &rest);
		if (!fields[i])
			return -EBADMSG;
	}
	unescape(fields[4]);
	if (!is_in_sight(fields[4], strtoul(fields[0], NULL, 10)))
		return 0;
	*ret = (ProbeMount){ .path = strdup(fields[4]),
			     .type = strdup(type),
			     .flags = read_flags(fields[5]) };
	return ret->path && ret->type ? 1 : -ENOMEM;
}

void probe_mounts_done(ProbeMounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		free(mounts->mounts[i].path);
		free(mounts->mounts[i].type);
	}
	free(mounts->mounts);
	*mounts = (ProbeMounts){ 0 };
}

int probe_mounts_read(ProbeMounts *ret)
{
	_cleanup_(probe_mounts_done) ProbeMounts mounts = { 0 };
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!file)
		return -errno;
	mounts.mounts = calloc(PROBE_MOUNTS_MAX, sizeof(*mounts.mounts));
	if (!mounts.mounts)
		return -ENOMEM;
	while (mounts.n < PROBE_MOUNTS_MAX && getline(&line, &size, file) > 0) {
		int r = parse(line, &mounts.mounts[mounts.n]);

		mounts.n += r != 0;
		if (r < 0)
			return r;
	}
	*ret = mounts;
	mounts = (ProbeMounts){ 0 };
	return 0;
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
