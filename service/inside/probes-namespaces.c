/* SPDX-License-Identifier: MIT */

/* Namespaces: new ones for the rights in them, and the way up into those of the machine. */

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "service/inside/measure.h"
#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

/* include/uapi/linux/mount.h and sched.h of Linux 7.1; the headers that we build with are older. */
#define FLAG_TREE_NAMESPACE 0x2u
#define FLAG_MOUNT_NAMESPACE 0x2u
#define FLAG_CLONE_EMPTY (1ull << 37)
#define FLAG_UNSHARE_EMPTY 0x00100000ul
#define NUMBER_OPEN_TREE_ATTR 467

static bool forbidden(const Probing *p)
{
	return p->expectations && p->expectations->forbid_namespaces;
}

/* clone3(2) has its flags in memory, where no filter sees them, so it is refused everywhere. */
static void attempt_user_namespace(Probing *p)
{
	probing_result(p, probe_clone(PROBE_CLONE3, CLONE_NEWUSER), "clone3");
	if (!forbidden(p)) {
		probing_unclear(p, "the others, which are allowed here");
		return;
	}
	probing_result(p, probe_clone(PROBE_CLONE, CLONE_NEWUSER), "clone");
	probing_result(p, syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS),
		       "unshare with a mount namespace");
	probing_result(p, syscall(SYS_unshare, CLONE_NEWUSER), "unshare");
}

/* Without a user namespace the others need a capability. */
static const ProbeCall plain_namespaces[] = {
	PROBE_CALL("a new mount namespace", SYS_unshare, NULL, CLONE_NEWNS),
	PROBE_CALL("a new network namespace", SYS_unshare, NULL, CLONE_NEWNET),
	PROBE_CALL("a new pid namespace", SYS_unshare, NULL, CLONE_NEWPID),
	PROBE_CALL("a new IPC namespace", SYS_unshare, NULL, CLONE_NEWIPC),
	PROBE_CALL("a new UTS namespace", SYS_unshare, NULL, CLONE_NEWUTS),
	PROBE_CALL("a new control group namespace", SYS_unshare, NULL, CLONE_NEWCGROUP),
	PROBE_CALL("a new time namespace", SYS_unshare, NULL, 0x80),
	{ 0 },
};

static void map_others(Probing *p, void *userdata)
{
	uid_t uid = geteuid();
	char text[64];
	int r;

	if (!probing_unshare(p, 0, PROBE_UNMAPPED))
		return;
	(void)snprintf(text, sizeof(text), "0 %u 1\n", uid == 0 ? 65534u : 0u);
	r = probe_write("/proc/self/uid_map", text);
	errno = -r;
	probing_result(p, r, "a mapping of another uid");
	r = probe_write("/proc/self/uid_map", "0 0 4294967295\n");
	errno = -r;
	probing_result(p, r, "a mapping of all uids");
	r = probe_write("/proc/self/gid_map", "0 0 4294967295\n");
	errno = -r;
	probing_result(p, r, "a mapping of all gids");
}

/* What root of a namespace still may not do to the machine. */
static void use_root(Probing *p, void *userdata)
{
	char place[PROBE_PLACE_MAX], path[PROBE_PLACE_MAX + 8];
	gid_t group = 0;

	if (probe_place_make(place) < 0)
		*place = '\0';
	if (!probing_unshare(p, CLONE_NEWNS, PROBE_AS_ROOT)) {
		probe_place_remove(place);
		return;
	}
	probing_result(p, syscall(SYS_setgroups, 1, &group), "setgroups as its root");
	probing_result(p, syscall(SYS_setresuid, 1, 1, 1), "an unmapped uid as its root");
	if (*place) {
		(void)snprintf(path, sizeof(path), "%s/file", place);
		(void)close_fd(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		probing_result(p, chown(path, 1, 1), "giving a file away as its root");
		(void)snprintf(path, sizeof(path), "%s/node", place);
		probing_result(p, mknod(path, S_IFCHR | 0600, 1 << 8 | 1), "a device node as its root");
		probe_place_remove(place);
	}
}

static void attempt_root_of_namespace(Probing *p)
{
	probing_apart(p, map_others, NULL);
	probing_apart(p, use_root, NULL);
}

/* Kinds whose contents belong to a namespace that is not ours, or to a disk; of those that the kernel would
 * load a module for, only what is loaded. */
static void attempt_file_systems(Probing *p)
{
	static const char *const types[] = { "proc",       "sysfs",    "cgroup2",   "cgroup",    "mqueue",
					     "debugfs",    "tracefs",  "pstore",    "configfs",  "efivarfs",
					     "securityfs", "devtmpfs", "ext4",      "btrfs",     "nfs",
					     "9p",         "autofs",   "hugetlbfs", "rpc_pipefs" };
	char place[PROBE_PLACE_MAX];
	bool has[ELEMENTSOF(types)];
	unsigned absent = 0;

	if (probe_place_make(place) < 0) {
		probing_unclear(p, "there is no place to mount something");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		has[i] = probe_has_file_system(types[i]);
		absent += !has[i];
	}
	if (absent > 0)
		probing_unclear(p, "%u kinds that this kernel has not, or not loaded", absent);
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		long r;

		if (!has[i])
			continue;
		r = mount("none", place, types[i], MS_NOSUID | MS_NOEXEC, NULL);

		if (r == 0)
			(void)umount2(place, MNT_DETACH);
		probing_rights(p, r, (const int[]){ EPERM, EACCES, 0 }, "mounting %s", types[i]);
	}
	if (!probing_unshare(p, CLONE_NEWNS, PROBE_UNMAPPED)) {
		probe_place_remove(place);
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		if (has[i])
			probing_result(p, mount("none", place, types[i], MS_NOSUID | MS_NOEXEC, NULL),
				       "mounting %s in a namespace", types[i]);
	/* Its parent's mount namespace is not this one. */
	(void)umount2(place, MNT_DETACH);
	probe_place_remove(place);
}

/* Linux 7 has flags for mount namespaces that do not hold what ours has locked. */
static const ProbeCall other_copies[] = {
	PROBE_CALL("a namespace from open_tree", SYS_open_tree, NULL, AT_FDCWD, PROBE_AT("/"),
		   FLAG_TREE_NAMESPACE | AT_RECURSIVE),
	PROBE_CALL("a namespace from open_tree_attr", NUMBER_OPEN_TREE_ATTR, NULL, AT_FDCWD, PROBE_AT("/"),
		   FLAG_TREE_NAMESPACE | AT_RECURSIVE),
	PROBE_CALL("a namespace from fsmount", SYS_fsmount, NULL, -1, FLAG_MOUNT_NAMESPACE),
	PROBE_CALL("an empty one from unshare", SYS_unshare, NULL, CLONE_NEWNS | FLAG_UNSHARE_EMPTY),
	PROBE_CALL("an empty one with a user namespace", SYS_unshare, NULL,
		   CLONE_NEWUSER | CLONE_NEWNS | FLAG_UNSHARE_EMPTY),
	{ 0 },
};

static void attempt_other_copies(Probing *p)
{
	probing_result(p, probe_clone(PROBE_CLONE3, CLONE_NEWUSER | CLONE_NEWNS | FLAG_CLONE_EMPTY),
		       "clone3 with an empty mount namespace");
	probing_calls(p, other_copies, "");
}

static uint64_t identity(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* The parents and the owners of our own namespaces (ioctl_ns(2)). */
static void attempt_climb(Probing *p)
{
	static const char *const names[] = { "user", "pid", "net", "mnt", "ipc", "uts", "cgroup" };
	uint64_t own = measure_namespace("self", NAMESPACE_USER);

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_close_ int fd = FD_NONE, above = FD_NONE, owner = FD_NONE;
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			probing_unclear(p, "%s: %s", path, probing_error(errno));
			continue;
		}
		if (i < 2)
			above = (int)probing_result(p, ioctl(fd, NS_GET_PARENT),
						    "the parent of the %s namespace", names[i]);
		owner = ioctl(fd, NS_GET_USERNS);
		if (owner < 0)
			probing_refused(p, errno, "the owner of the %s namespace", names[i]);
		else if (identity(owner) != own)
			probing_escaped(p, "the owner of the %s namespace was opened", names[i]);
		/* Ours to own, the network would be an agent's to change once it has a capability there. */
		else if (streq(names[i], "net") && p->expectations && p->expectations->jailed)
			probing_escaped(p, "the network belongs to the jail's own user namespace");
	}
}

static void enter(Probing *p, const char *process)
{
	static const NamespaceKind kinds[] = { NAMESPACE_USER, NAMESPACE_MNT, NAMESPACE_NET,   NAMESPACE_PID,
					       NAMESPACE_IPC,  NAMESPACE_UTS, NAMESPACE_CGROUP };
	static const char *const names[] = { "user", "mnt", "net", "pid", "ipc", "uts", "cgroup" };

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		_cleanup_close_ int fd = FD_NONE;
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			probing_refused(p, errno, "%s", path);
			continue;
		}
		probing_result(p, setns(fd, 0), "entering %s", path);
	}
}

/* Our parent is the jail's init, or a process outside; a /proc of the machine shows its number 1 too. */
static void attempt_enter(Probing *p)
{
	static const int all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC |
			       CLONE_NEWUTS | CLONE_NEWCGROUP;
	_cleanup_close_ int pid_fd = (int)syscall(SYS_pidfd_open, 1, 0);

	if (pid_fd < 0)
		probing_refused(p, errno, "a pidfd of process 1");
	else {
		probing_result(p, setns(pid_fd, all), "entering all of process 1");
		probing_result(p, setns(pid_fd, CLONE_NEWNS), "entering the mounts of process 1");
		probing_result(p, setns(pid_fd, CLONE_NEWNET), "entering the network of process 1");
	}
	enter(p, "1");
}

static void attempt_hostname(Probing *p)
{
	struct utsname name;

	if (uname(&name) < 0) {
		probing_unclear(p, "uname: %s", probing_error(errno));
		return;
	}
	/* What it is already: nothing changes. */
	probing_result(p, sethostname(name.nodename, strlen(name.nodename)), "sethostname");
	probing_result(p, setdomainname(name.domainname, strlen(name.domainname)), "setdomainname");
	if (!probing_unshare(p, 0, PROBE_UNMAPPED))
		return;
	probing_result(p, sethostname(name.nodename, strlen(name.nodename)),
		       "sethostname as root of a namespace");
}

const Probe probes_namespaces[] = {
	{ "p09", "no user namespace where none is allowed",
	  "set-id files of root's by an overlay, in root's sessions", attempt_user_namespace },
	{ "p10", "no other namespace without a user namespace", "mounts and networks with no rights at all",
	  .calls = plain_namespaces },
	{ "p11", "root of a user namespace has no rights outside of it",
	  "other users' ids, their files, device nodes", attempt_root_of_namespace },
	{ "p12", "no file systems of the kernel or of disks",
	  "the machine's processes, devices, control groups and disks", attempt_file_systems },
	{ "p13", "no mount namespace that is not a copy", "names without the mounts that guard them",
	  attempt_other_copies },
	{ "p14", "no way up to the namespaces that own these",
	  "the namespace in which the network can be changed", attempt_climb },
	{ "p15", "no way into the namespaces of other processes", "the machine itself", attempt_enter },
	{ "p16", "the host's name stays", "the machine's name, for every program outside", attempt_hostname },
};
const size_t probes_namespaces_count = ELEMENTSOF(probes_namespaces);
