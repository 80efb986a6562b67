/* SPDX-License-Identifier: MIT */

/* Files that are switches of the machine: /proc/sys, the rest of /proc, /sys, control groups. */

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-mounts.h"
#include "service/inside/probe-tables.h"

#define FILES_MAX 3000u

/* The tree is the machine's, and large: what is writable is found by looking at all of it, up to a limit. */
typedef struct Walk {
	Probing *p;
	unsigned files;
} Walk;

static Walk *walk; /* nftw(3) hands nothing on */

/* Settings of the IPC, pid and user namespaces are their owner's, and those are the jail's own. */
static bool is_of_a_namespace(const char *path)
{
	static const char *const beginnings[] = {
		"/proc/sys/fs/mqueue/",     "/proc/sys/kernel/msg",         "/proc/sys/kernel/sem",
		"/proc/sys/kernel/shm",     "/proc/sys/kernel/auto_msgmni", "/proc/sys/kernel/ns_last_pid",
		"/proc/sys/kernel/pid_max", "/proc/sys/user/max_",
	};

	for (size_t i = 0; i < ELEMENTSOF(beginnings); i++)
		if (starts_with(path, beginnings[i]))
			return true;
	return false;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
	if (type == FTW_F && S_ISREG(st->st_mode)) {
		walk->files++;
		if (!is_of_a_namespace(path) && access(path, W_OK) == 0)
			probing_escaped(walk->p, "%s can be written", path);
	}
	return walk->files >= FILES_MAX || walk->p->n_escaped > 8;
}

static void walk_tree(Probing *p, const char *path)
{
	Walk here = { .p = p };
	int r;

	walk = &here;
	errno = 0;
	r = nftw(path, visit, 16, FTW_PHYS | FTW_MOUNT);
	walk = NULL;
	if (r < 0)
		probing_unclear(p, "%s: %s", path, probing_error(errno));
	else
		probing_blocked(p, "of %u files of %s none can be written", here.files, path);
}

static const char *const sysctl_files[] = { "/proc/sys/kernel/core_pattern",
					    "/proc/sys/kernel/modprobe",
					    "/proc/sys/kernel/hotplug",
					    "/proc/sys/kernel/sysrq",
					    "/proc/sys/kernel/yama/ptrace_scope",
					    "/proc/sys/kernel/unprivileged_bpf_disabled",
					    "/proc/sys/kernel/kptr_restrict",
					    "/proc/sys/fs/suid_dumpable",
					    "/proc/sys/fs/protected_symlinks",
					    "/proc/sys/vm/mmap_min_addr",
					    "/proc/sys/vm/swappiness",
					    "/proc/sys/net/ipv4/ip_forward",
					    "/proc/sys/net/ipv4/ping_group_range",
					    "/proc/sys/net/ipv4/conf/all/rp_filter",
					    "/proc/sys/net/ipv4/conf/all/route_localnet",
					    "/proc/sys/net/ipv4/conf/jail0/rp_filter",
					    "/proc/sys/net/ipv6/conf/all/disable_ipv6",
					    "/proc/sys/net/ipv6/conf/jail0/disable_ipv6",
					    "/proc/sys/net/core/bpf_jit_enable",
					    NULL };

static void attempt_sysctl(Probing *p)
{
	static const char *const formats[] = { "/proc/sys/fs/binfmt_misc/register", NULL };

	/* In the machine's own /proc it may be mounted, and its module loaded, by whoever looks (automount). */
	if (probe_has_file_system("binfmt_misc"))
		probing_files(p, formats);
	walk_tree(p, "/proc/sys");
}

static const char *const proc_files[] = {
	"/proc/sysrq-trigger",   "/proc/kcore",           "/proc/mtrr",
	"/proc/scsi/scsi",       "/proc/acpi/wakeup",     "/proc/irq/default_smp_affinity",
	"/proc/timer_stats",     "/proc/fs/nfsd/exports", "/proc/sched_debug",
	"/proc/bus/pci/00/00.0", "/proc/asound/card0/id", NULL,
};

static void attempt_proc(Probing *p)
{
	static const char *const secrets[] = { "/proc/kcore", "/proc/kmsg" };

	for (size_t i = 0; i < ELEMENTSOF(secrets); i++) {
		int fd = open(secrets[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct stat st;

		/* Where a container has covered it, it is an empty device. */
		if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
			fd = close_fd(fd);
			errno = ENOENT;
		}
		/* What is read from the log is gone from it; of the memory a few bytes are asked for. */
		if (fd >= 0 && !streq(secrets[i], "/proc/kmsg")) {
			char byte[8];

			if (pread(fd, byte, sizeof(byte), 0) <= 0) {
				int error = errno ? errno : EPERM;

				fd = close_fd(fd);
				errno = error;
			}
		}
		probing_result(p, fd, "%s", secrets[i]);
		(void)close_fd(fd);
	}
}

static const char *const sys_files[] = { "/sys/power/state",
					 "/sys/kernel/uevent_helper",
					 "/sys/kernel/mm/ksm/run",
					 "/sys/kernel/profiling",
					 "/sys/kernel/fscaps",
					 "/sys/bus/pci/rescan",
					 "/sys/class/net/jail0/mtu",
					 "/sys/class/net/lo/mtu",
					 "/sys/kernel/kexec_crash_size",
					 "/sys/kernel/debug",
					 "/sys/kernel/tracing/tracing_on",
					 "/sys/fs/selinux/load",
					 "/sys/kernel/security/apparmor/.load",
					 "/sys/firmware/efi/efivars",
					 "/sys/module/kernel/parameters/panic",
					 NULL };

static void attempt_sys(Probing *p)
{
	struct statvfs fs;

	if (statvfs("/sys", &fs) == 0 && !(fs.f_flag & ST_RDONLY))
		probing_escaped(p, "/sys is mounted to be written");
	walk_tree(p, "/sys/kernel");
}

static void try_group(Probing *p, const char *directory, const char *how)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.kill",   "cgroup.freeze",
					     "memory.max",   "pids.max",      "cgroup.subtree_control",
					     "tasks",        "release_agent", "notify_on_release" };
	char *path = NULL;

	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		int fd;

		if (asprintf(&path, "%s/%s", directory, files[i]) < 0)
			return;
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			probing_result(p, fd, "%s%s", how, path);
		(void)close_fd(fd);
		free(path);
	}
	if (asprintf(&path, "%s/made-by-a-probe", directory) < 0)
		return;
	if (mkdir(path, 0700) == 0) {
		(void)rmdir(path);
		probing_escaped(p, "%sa group can be made in %s", how, directory);
	} else if (errno != ENOENT && errno != EEXIST) {
		probing_refused(p, errno, "%sa group in %s", how, directory);
	}
	free(path);
}

static void groups_in_copy(Probing *p, void *userdata)
{
	if (!probing_unshare(p, CLONE_NEWNS | CLONE_NEWCGROUP, PROBE_AS_SELF))
		return;
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || mkdir("/tmp/groups", 0700) < 0) {
		probing_refused(p, errno, "a private place in a copy");
		return;
	}
	if (mount("cgroup2", "/tmp/groups", "cgroup2", 0, NULL) < 0) {
		probing_refused(p, errno, "a mount of control groups");
		return;
	}
	try_group(p, "/tmp/groups", "in a copy: ");
}

static void attempt_groups(Probing *p)
{
	_cleanup_(mounts_done) Mounts mounts = { 0 };

	if (probing_mounts(p, &mounts))
		for (size_t i = 0; i < mounts.n; i++)
			if (starts_with(mounts.rows[i].type, "cgroup"))
				try_group(p, mounts.rows[i].place, "");
	probing_apart(p, groups_in_copy, NULL);
	if (probing_outcome(p) == PROBE_INCONCLUSIVE)
		probing_blocked(p, "no control group is in sight");
}

/* What runs when a program crashes is the machine's; so nothing of ours may name it. */
const Probe probes_control[] = {
	{ "p60", "settings of the kernel stay", "a program that the kernel runs as root; forwarding; IPv6",
	  attempt_sysctl, .files = sysctl_files },
	{ "p61", "switches of /proc stay, and the kernel's memory is not there", "the machine, at a key",
	  attempt_proc, .files = proc_files },
	{ "p62", "/sys stays", "power, devices and tracing of the machine", attempt_sys, .files = sys_files },
	{ "p63", "the control group is not left", "limits, and the end of the session", attempt_groups },
};
const size_t probes_control_count = ELEMENTSOF(probes_control);
