/* SPDX-License-Identifier: MIT */

/* Other users' ids, and capabilities: taken directly, kept, or come by through a program. */

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define NOBODY 65534u

static void attempt_ids(Probing *p)
{
	uid_t uid = geteuid() == 0 ? NOBODY : 0;
	gid_t gid = getegid() == 0 ? NOBODY : 0;

	/* Libc's own would ask every thread; the file system's id last, since it goes with the others. */
	probing_result(p, syscall(SYS_setgroups, 1, &gid), "setgroups");
	probing_result(p, syscall(SYS_setresgid, gid, gid, gid), "setresgid");
	probing_result(p, syscall(SYS_setgid, gid), "setgid");
	(void)syscall(SYS_setfsuid, uid);
	if ((uid_t)syscall(SYS_setfsuid, (uid_t)-1) == uid)
		probing_escaped(p, "setfsuid succeeded");
	else
		probing_blocked(p, "setfsuid changed nothing");
	probing_result(p, syscall(SYS_setreuid, uid, uid), "setreuid");
	probing_result(p, syscall(SYS_setresuid, uid, uid, uid), "setresuid");
	probing_result(p, syscall(SYS_setuid, uid), "setuid");
}

static void attempt_capset(Probing *p)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	static const unsigned wanted[] = { CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_SYS_PTRACE };

	for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
		uint32_t bit = 1u << wanted[i];

		memset(data, 0, sizeof(data));
		data[0].effective = data[0].permitted = bit;
		probing_result(p, syscall(SYS_capset, &header, data), "capset of capability %u", wanted[i]);
		memset(data, 0, sizeof(data));
		data[0].inheritable = bit;
		probing_result(p, syscall(SYS_capset, &header, data), "capset of the inheritable %u",
			       wanted[i]);
	}
}

static void attempt_ambient(Probing *p)
{
	for (unsigned long capability = 0; capability < 64; capability++) {
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) < 0)
			break;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0)
			probing_escaped(p, "ambient capability %lu was raised", capability);
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1)
			probing_escaped(p, "ambient capability %lu is set", capability);
	}
	if (probing_outcome(p) != PROBE_ESCAPED)
		probing_blocked(p, "no ambient capability can be raised");
	probing_result(p,
		       prctl(PR_SET_SECUREBITS,
			     (unsigned long)(SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT), 0, 0,
			     0),
		       "the secure bits");
	probing_result(p, prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0), "the bounding set");
}

/* Without capabilities there is nothing to keep; with them there must not be. */
static void attempt_keep(Probing *p)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uid_t uid = geteuid() == 0 ? NOBODY : 0;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		probing_refused(p, errno, "PR_SET_KEEPCAPS");
	probing_result(p, syscall(SYS_setresuid, uid, uid, uid), "setresuid with capabilities kept");
	if (syscall(SYS_capget, &header, data) < 0)
		probing_unclear(p, "capget: %s", probing_error(errno));
	else if (data[0].permitted | data[1].permitted | data[0].inheritable | data[1].inheritable)
		probing_escaped(p, "capabilities %08x%08x are permitted, %08x%08x inheritable",
				data[1].permitted, data[0].permitted, data[1].inheritable,
				data[0].inheritable);
	else
		probing_blocked(p, "no capability is left to keep");
}

/* cap_sys_admin=ep, revision 2; and the same for the root of some user namespace, revision 3 (capability.h).
 */
static void attempt_file_capability(Probing *p)
{
	struct vfs_ns_cap_data data = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1u << CAP_SYS_ADMIN,
	};
	static const char name[] = "security.capability";
	char place[PROBE_PLACE_MAX], path[PROBE_PLACE_MAX + 8];
	int r = probe_place_make(place);
	_cleanup_close_ int fd = FD_NONE;

	if (r < 0) {
		probing_unclear(p, "no private file can be made: %s", probing_error(r));
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/file", place);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	probing_result(p, fd < 0 ? -1 : fsetxattr(fd, name, &data, XATTR_CAPS_SZ_2, 0),
		       "a capability on a file");
	data.magic_etc = VFS_CAP_REVISION_3 | VFS_CAP_FLAGS_EFFECTIVE;
	data.rootid = geteuid() == 0 ? NOBODY : 0;
	probing_result(p, fd < 0 ? -1 : fsetxattr(fd, name, &data, XATTR_CAPS_SZ_3, 0),
		       "a capability on a file for another root");
	probe_place_remove(place);
}

static bool differs(const ProbeIdentity *identity)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	for (size_t i = 0; i < 4; i++)
		if (identity->uid[i] != uid || identity->gid[i] != gid)
			return true;
	return identity->permitted != 0;
}

/* Programs that are set-uid or set-gid on most machines, with arguments that do nothing. */
static void attempt_set_uid_programs(Probing *p)
{
	static const char *const programs[][2] = {
		{ "/usr/bin/mount", "--version" },     { "/usr/bin/umount", "--version" },
		{ "/usr/bin/su", "--version" },        { "/usr/bin/sudo", "--version" },
		{ "/usr/bin/passwd", "--help" },       { "/usr/bin/chage", "--help" },
		{ "/usr/bin/newgrp", "--version" },    { "/usr/bin/gpasswd", "--help" },
		{ "/usr/bin/pkexec", "--version" },    { "/usr/bin/fusermount3", "--version" },
		{ "/usr/bin/newuidmap", "--version" }, { "/usr/bin/crontab", "-V" },
	};
	unsigned tried = 0;

	for (size_t i = 0; i < ELEMENTSOF(programs) && tried < 4; i++) {
		char *const argv[] = { (char *)programs[i][0], (char *)programs[i][1], NULL };
		ProbeIdentity identity = { 0 };
		struct stat st;
		int r;

		if (stat(argv[0], &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
			continue;
		/* One of our own ids shows nothing. */
		if (st.st_mode & S_ISUID ? st.st_uid == getuid() : st.st_gid == getgid())
			continue;
		r = probe_execute(argv, &identity);
		tried++;
		if (r < 0)
			probing_unclear(p, "%s: %s", argv[0], probing_error(r));
		else if (differs(&identity))
			probing_escaped(p, "%s ran with uid %u, gid %u", argv[0], identity.uid[1],
					identity.gid[1]);
		else
			probing_blocked(p, "%s kept our ids", argv[0]);
	}
	if (tried == 0)
		probing_unclear(p, "no program here is set-uid to another user");
}

/* Root's programs get back at execve(2) what the bounding set has (capabilities(7)). */
static void attempt_execute(Probing *p)
{
	static const char *const programs[] = { "/usr/bin/true", "/bin/true", "/usr/bin/id" };
	unsigned long long bounding = 0;
	int r = -ENOENT;

	for (size_t i = 0; r < 0 && i < ELEMENTSOF(programs); i++) {
		char *const argv[] = { (char *)programs[i], NULL };
		ProbeIdentity identity = { 0 };

		r = probe_execute(argv, &identity);
		if (r == 0 && differs(&identity))
			probing_escaped(p, "%s had capabilities %lx, uid %u", argv[0], identity.permitted,
					identity.uid[1]);
		else if (r == 0)
			probing_blocked(p, "%s had no capability", argv[0]);
	}
	if (r < 0)
		probing_unclear(p, "no program could be run: %s", probing_error(r));
	for (unsigned capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1)
			bounding |= 1ull << capability;
	if (bounding)
		probing_escaped(p, "capabilities %llx are in the bounding set", bounding);
}

/* Sender's credentials that are not ours (unix(7)). */
static void attempt_credentials(Probing *p)
{
	static const struct {
		const char *name;
		int pid, uid, gid; /* 0: ours, 1: another */
	} claims[] = { { "another pid", 1, 0, 0 }, { "another uid", 0, 1, 0 }, { "another gid", 0, 0, 1 } };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0) {
		probing_unclear(p, "no socket: %s", probing_error(errno));
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(claims); i++) {
		struct ucred credentials = {
			.pid = claims[i].pid ? 1 : getpid(),
			.uid = claims[i].uid ? (getuid() == 0 ? NOBODY : 0) : getuid(),
			.gid = claims[i].gid ? (getgid() == 0 ? NOBODY : 0) : getgid(),
		};
		union {
			struct cmsghdr header;
			char bytes[CMSG_SPACE(sizeof(struct ucred))];
		} control = { 0 };
		char byte = 0;
		struct iovec part = { .iov_base = &byte, .iov_len = 1 };
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };

		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(credentials)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_CREDENTIALS };
		memcpy(CMSG_DATA(&control.header), &credentials, sizeof(credentials));
		if (claims[i].pid && getpid() == 1)
			continue;
		probing_result(p, sendmsg(ends[0], &message, MSG_NOSIGNAL | MSG_DONTWAIT), "%s",
			       claims[i].name);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
}

const Probe probes_identity[] = {
	{ "p01", "no other user's ids", "the files and processes of root or of another user", attempt_ids },
	{ "p02", "no capabilities by capset", "the rights of root, piece by piece", attempt_capset },
	{ "p03", "no ambient capabilities, no other secure bits",
	  "capabilities that survive the start of a program", attempt_ambient },
	{ "p04", "no capabilities kept over a change of user",
	  "what was held before it was dropped, in another user's name", attempt_keep },
	{ "p05", "no file with capabilities", "a program that has them for whoever runs it",
	  attempt_file_capability },
	{ "p06", "set-uid programs have no more rights", "root's rights inside, and a way to misuse them",
	  attempt_set_uid_programs },
	{ "p07", "programs that root runs get no capabilities back",
	  "all that was dropped, in root's sessions", attempt_execute },
	{ "p08", "no other process's credentials on a socket",
	  "requests in the name of root to whoever trusts the kernel's word", attempt_credentials },
};
const size_t probes_identity_count = ELEMENTSOF(probes_identity);
