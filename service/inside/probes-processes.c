/* SPDX-License-Identifier: MIT */

/* Other processes: the jail's init, which reports to the session, and those outside. */

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "service/inside/measure.h"
#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define PROCESSES_MAX 400u
#define COMMAND_STAT_ANY 15 /* SHM_STAT_ANY, include/uapi/linux/shm.h: asks for no permission to read */
#define NUMBERS_MAX 33u     /* levels of pid namespaces, and the first */

static void attempt_trace(Probing *p)
{
	const pid_t targets[] = { 1, getppid() };

	for (size_t i = 0; i < ELEMENTSOF(targets); i++) {
		/* What waits for us is ours. */
		if (targets[i] <= 0 || (i == 1 && targets[i] == 1))
			continue;
		if (ptrace(PTRACE_SEIZE, targets[i], NULL, NULL) == 0) {
			/* The end of a tracer lets go (ptrace(2)). */
			probing_escaped(p, "process %d can be traced", (int)targets[i]);
			continue;
		}
		probing_refused(p, errno, "PTRACE_SEIZE of %s", i == 0 ? "process 1" : "our parent");
		probing_result(p, ptrace(PTRACE_ATTACH, targets[i], NULL, NULL), "PTRACE_ATTACH of %s",
			       i == 0 ? "process 1" : "our parent");
	}
}

static void look_into(Probing *p, pid_t pid, const char *who)
{
	_cleanup_close_ int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)(uintptr_t)0x400000, 1 };
	static const int refusals[] = { EPERM, EACCES, ESRCH, ENOSYS, 0 };

	probing_rights(p, process_vm_readv(pid, &local, 1, &remote, 1, 0), refusals,
		       "reading the memory of %s", who);
	probing_rights(p, syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0), refusals, "comparing with %s",
		       who);
	if (pid_fd < 0)
		probing_refused(p, errno, "a pidfd of %s", who);
	for (int fd = 0; pid_fd >= 0 && fd < 3; fd++) {
		int got = (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);

		probing_rights(p, got, refusals, "descriptor %d of %s", fd, who);
		(void)close_fd(got);
	}
	if (pid_fd >= 0)
		probing_rights(p, syscall(SYS_process_madvise, pid_fd, &remote, 1, 20, 0), refusals,
			       "advising the memory of %s", who);
}

static void open_files_of(Probing *p, const char *process)
{
	static const struct {
		const char *name;
		int flags;
	} files[] = { { "mem", O_RDONLY }, { "environ", O_RDONLY }, { "maps", O_RDONLY },
		      { "root", O_PATH },  { "cwd", O_PATH },       { "exe", O_RDONLY },
		      { "fd/0", O_PATH },  { "auxv", O_RDONLY },    { "syscall", O_RDONLY } };

	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		char path[64];
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%s/%s", process, files[i].name);
		fd = open(path, files[i].flags | O_CLOEXEC);
		/* A link or a list of a process without rights opens, and then says nothing. */
		if (fd >= 0 && (streq(files[i].name, "environ") || streq(files[i].name, "maps") ||
				streq(files[i].name, "auxv") || streq(files[i].name, "syscall"))) {
			char byte;

			if (read(fd, &byte, 1) <= 0) {
				fd = close_fd(fd);
				errno = EACCES;
			}
		}
		probing_result(p, fd, "%s", path);
		(void)close_fd(fd);
	}
}

/* A process with our own id that is not dumpable has files that are root's (proc(5)). */
static void attempt_init(Probing *p)
{
	const Expectations *e = p->expectations;

	look_into(p, 1, "process 1");
	/* Where /proc is the machine's its process 1 is not ours, and one of those outside. */
	open_files_of(p, "1");
	if (e && e->joined && getppid() > 1)
		look_into(p, getppid(), "our parent");
}

static bool is_outside(const Expectations *e, NamespaceKind kind)
{
	return e && e->namespaces[kind] && measure_namespace("self", kind) == e->namespaces[kind];
}

/* Is /proc of our pid namespace? Then nobody outside is in it. */
static bool proc_is_ours(void)
{
	char number[32];
	ssize_t n = readlink("/proc/self", number, sizeof(number) - 1);

	if (n <= 0)
		return false;
	number[n] = '\0';
	return atoi(number) == (int)getpid();
}

static bool is_number(const char *name)
{
	return *name && strspn(name, "0123456789") == strlen(name);
}

/* "NSpid: 1118 5": its numbers from the namespace of that /proc down to its own. Return: how many. */
static size_t read_numbers(const char *process, int numbers[static NUMBERS_MAX])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], line[512];

	(void)snprintf(path, sizeof(path), "/proc/%s/status", process);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *word, *rest = line + strlen("NSpid:");
		size_t n = 0;

		if (!starts_with(line, "NSpid:"))
			continue;
		while (n < NUMBERS_MAX && (word = strsep(&rest, "\t \n")))
			if (*word)
				numbers[n++] = atoi(word);
		return n;
	}
	return 0;
}

/*
 * Has that process of /proc a number in our pid namespace, and is it that process? A pidfd by the number
 * tells: its entry in /proc names the process as that /proc does.
 */
static bool is_inside(const char *process)
{
	_cleanup_close_ int pid_fd = FD_NONE;
	_cleanup_fclose_ FILE *file = NULL;
	int own[NUMBERS_MAX], numbers[NUMBERS_MAX];
	size_t depth = read_numbers("self", own), n = read_numbers(process, numbers);
	char path[64], line[256];

	if (depth == 0 || n < depth)
		return false;
	pid_fd = (int)syscall(SYS_pidfd_open, numbers[depth - 1], 0);
	if (pid_fd < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (starts_with(line, "Pid:"))
			return atoi(line + strlen("Pid:")) == atoi(process);
	return false;
}

/* Return: a /proc in which others than ours are, or NULL: then there is none, or that is what was found. */
static DIR *open_strange_proc(Probing *p)
{
	DIR *d;

	if (proc_is_ours() && !is_outside(p->expectations, NAMESPACE_PID)) {
		probing_blocked(p, "no process of outside is in /proc");
		return NULL;
	}
	d = opendir("/proc");
	if (!d)
		probing_unclear(p, "/proc: %s", probing_error(errno));
	return d;
}

/* The next process of d that is not ours. Return: a descriptor of its directory with *ret_name; FD_NONE at
 * the end. */
static int next_outsider(Probing *p, DIR *d, const char **ret_name)
{
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		int fd;

		if (!is_number(entry->d_name))
			continue;
		fd = openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && probing_is_starved(errno)) {
			probing_unclear(p, "process %s: %s", entry->d_name, probing_error(errno));
			break;
		}
		if (fd >= 0 && !is_inside(entry->d_name)) {
			*ret_name = entry->d_name;
			return fd;
		}
		(void)close_fd(fd);
	}
	return FD_NONE;
}

static void attempt_outsiders(Probing *p)
{
	static const char *const files[] = { "root/etc", "cwd", "exe", "fd/0", "ns/net", "ns/mnt" };
	static const char *const readable[] = { "mem", "environ", "maps", "auxv" };
	const Expectations *e = p->expectations;
	DIR *d = open_strange_proc(p);
	unsigned refused = 0;
	const char *name;

	for (unsigned seen = 0; seen < PROCESSES_MAX; seen++) {
		_cleanup_close_ int fd = next_outsider(p, d, &name);
		bool opened = false;

		if (fd < 0)
			break;
		for (size_t i = 0; i < ELEMENTSOF(files); i++) {
			_cleanup_close_ int file_fd = openat(fd, files[i], O_PATH | O_CLOEXEC);

			opened = opened || file_fd >= 0;
		}
		for (size_t i = 0; i < ELEMENTSOF(readable); i++) {
			_cleanup_close_ int file_fd = openat(fd, readable[i], O_RDONLY | O_CLOEXEC);
			char byte;

			opened = opened || (file_fd >= 0 && pread(file_fd, &byte, 1, 0) > 0);
		}
		if (opened)
			probing_escaped(p, "process %s of outside can be looked into", name);
		else
			refused++;
	}
	if (d)
		(void)closedir(d);
	if (is_outside(e, NAMESPACE_PID))
		probing_escaped(p, "this is the pid namespace of outside");
	if (refused > 0)
		probing_blocked(p, "%u processes that are not ours show nothing", refused);
}

/* A directory of /proc is as good as a pidfd for pidfd_send_signal(2). */
static void attempt_signals(Probing *p)
{
	const Expectations *e = p->expectations;
	DIR *d = open_strange_proc(p);
	unsigned refused = 0;
	const char *name;

	if (is_outside(e, NAMESPACE_PID))
		probing_escaped(p, "every process of the machine has a number here");
	else if (e && e->namespaces[NAMESPACE_PID])
		probing_blocked(p, "processes of outside have no number here");
	for (unsigned seen = 0; seen < PROCESSES_MAX; seen++) {
		_cleanup_close_ int fd = next_outsider(p, d, &name);

		if (fd < 0)
			break;
		if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0)
			probing_escaped(p, "process %s can be sent a signal", name);
		else
			refused++;
	}
	if (d)
		(void)closedir(d);
	if (refused > 0)
		probing_blocked(p, "%u processes of /proc cannot be sent one", refused);
}

/* A limit of the account's may permit it, in a jail or not (getrlimit(2)). */
static bool needs_rights(Probing *p, __rlimit_resource_t resource, const char *what)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == 0 && limit.rlim_max == 0)
		return true;
	probing_unclear(p, "%s, which this account may have anyway", what);
	return false;
}

static void attempt_limits(Probing *p)
{
	const Expectations *e = p->expectations;
	struct rlimit64 limit;

	for (size_t i = 0; e && i < e->n_processes && i < 4; i++) {
		/* Seen from outside, these numbers are nobody's here, or another's. */
		pid_t pid = (pid_t)e->processes[i].pid;

		if (kill(pid, 0) == 0)
			continue;
		probing_result(p, syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &limit),
			       "limits of process %d", (int)pid);
	}
	/* Raising what is ours takes rights over the machine. */
	if (getrlimit(RLIMIT_NOFILE, (struct rlimit *)&limit) == 0 && limit.rlim_max < 1u << 30) {
		struct rlimit more = { limit.rlim_cur, limit.rlim_max + 1 };

		probing_result(p, setrlimit(RLIMIT_NOFILE, &more), "a higher hard limit");
	}
	if (needs_rights(p, RLIMIT_NICE, "a higher priority"))
		probing_result(p, setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1),
			       "a higher priority");
	if (needs_rights(p, RLIMIT_RTPRIO, "real-time scheduling"))
		probing_result(
			p, sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }),
			"real-time scheduling");
	probing_result(p, syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 4), "real-time disk access");
}

/* Segments and queues belong to the IPC namespace (ipc_namespaces(7)). */
static void attempt_ipc(Probing *p)
{
	const Expectations *e = p->expectations;
	struct shm_info info;
	unsigned foreign = 0;
	/* Return: the highest index in use. */
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	if (is_outside(e, NAMESPACE_IPC))
		probing_escaped(p, "this is the IPC namespace of outside");
	else if (e && e->namespaces[NAMESPACE_IPC])
		probing_blocked(p, "this is not the IPC namespace of outside");
	if (last < 0)
		probing_unclear(p, "shared memory: %s", probing_error(errno));
	for (int i = 0; i <= last && i < 1024; i++) {
		struct shmid_ds segment;

		/* Nobody else has an id in the jail. */
		if (shmctl(i, COMMAND_STAT_ANY, &segment) >= 0 && segment.shm_perm.cuid != getuid())
			foreign++;
	}
	if (foreign > 0)
		probing_escaped(p, "%u shared memory segments are other users'", foreign);
	else if (last >= 0)
		probing_blocked(p, "no shared memory of other users");
}

const Probe probes_processes[] = {
	{ "p43", "the jail's init, and what started this, cannot be traced",
	  "reports to the session that the agent wrote", attempt_trace },
	{ "p44", "memory, descriptors and files of the jail's init stay closed",
	  "the same, and its descriptors", attempt_init },
	{ "p45", "processes outside stay closed",
	  "their files, variables and memory, and their view of the machine", attempt_outsiders },
	{ "p46", "no signal to processes outside", "stopping or ending the person's programs",
	  attempt_signals },
	{ "p47", "limits and priorities are not raised", "starving everything else", attempt_limits },
	{ "p48", "no shared memory or queues of outside", "what other programs exchange there", attempt_ipc },
};
const size_t probes_processes_count = ELEMENTSOF(probes_processes);
