/* SPDX-License-Identifier: MIT */
/*
 * ORDER IS SECURITY, in the child:
 *  1. what needs root's power: control group, oom_score_adj, login uid;
 *  2. descriptors, before the caller's limit of them holds; everything that service/link/spawn.h does not
 *     name is closed by number;
 *  3. limits, while a hard limit may still rise;
 *  4. the bounding set, which takes root's power too: what the caller can never have, its session cannot;
 *  5. groups before gid before uid, since each needs the power that the next one drops; then it is read back;
 *  6. the keyring after the uid, so that it is the caller's; without it the session would hold root's;
 *  7. what may make us wait for the caller's own file systems, when we are the caller;
 *  8. the caller's SELinux context, in which the program is executed;
 *  9. no new privileges: from execve(2) on its user may trace it and make it execute a set-uid program.
 *
 * From 5 on the child cannot be traced by its user, who shares its uid: the kernel made it undumpable with
 * the change (ptrace(2)), and execve(2) replaces all that it holds of the service.
 */
#include "service/daemon/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "dbus/errors.h"
#include "dbus/names.h"
#include "service/daemon/cgroup.h"
#include "service/daemon/proc.h"
#include "service/daemon/selinux.h"
#include "service/link/pack.h"
#include "service/link/spawn.h"

/* Above all numbers that spawn.h gives, so that placing one never covers another. */
#define PARKED_FD_FIRST 64

STATIC_ASSERT((int)SPAWN_FD_MAX < PARKED_FD_FIRST);

int sealed_memfd(const char *name, const void *data, size_t size)
{
	_cleanup_close_ int fd = FD_NONE;
	const uint8_t *from = data;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	while (size > 0) {
		ssize_t n = write(fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		size -= (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return TAKE_FD(fd);
}

_noreturn_ static void child_fail(int pipe_fd, SpawnStage stage, int error)
{
	SpawnFailure failure = { .stage = stage, .error = error };
	ssize_t n = write(pipe_fd, &failure, sizeof(failure));

	(void)n;
	_exit(CS_EXIT_REFUSED);
}

static int write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);

	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n ? 0 : -errno;
}

static void reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	/* SIGKILL, SIGSTOP and the C library's own numbers refuse; they are at their default anyway. */
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &action, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_priority(const CallerFacts *facts)
{
	int r = write_file("/proc/self/oom_score_adj", facts->oom_score_adj);

	/* In a container the service may lower it no further than it was given. */
	if (r < 0 && r != -EACCES)
		return r;
	/* Accounting, not protection: needs CAP_AUDIT_CONTROL, or a login uid that is not set yet. */
	if (facts->login_uid)
		(void)write_file("/proc/self/loginuid", facts->login_uid);
	return 0;
}

static int set_limits(const CallerFacts *facts)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit = facts->limits[i], own;

		if (setrlimit((__rlimit_resource_t)i, &limit) == 0)
			continue;
		/* Without CAP_SYS_RESOURCE (containers) nothing can rise: as much as we have. */
		if (errno != EPERM || getrlimit((__rlimit_resource_t)i, &own) < 0)
			return -errno;
		limit.rlim_max = MIN_OF(limit.rlim_max, own.rlim_max);
		limit.rlim_cur = MIN_OF(limit.rlim_cur, limit.rlim_max);
		if (setrlimit((__rlimit_resource_t)i, &limit) < 0)
			return -errno;
	}
	return 0;
}

/* capabilities(7): the numbers end where reading the set does. */
static int set_bounding_set(const CallerFacts *facts)
{
	for (unsigned long n = 0; n < 64 && prctl(PR_CAPBSET_READ, n, 0, 0, 0) >= 0; n++) {
		if (facts->bounding_set & UINT64_C(1) << n || prctl(PR_CAPBSET_READ, n, 0, 0, 0) == 0)
			continue;
		if (prctl(PR_CAPBSET_DROP, n, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int set_identity(const SpawnPlan *plan)
{
	uid_t real, effective, saved;
	gid_t real_group, effective_group, saved_group;
	int n;

	if (setgroups(plan->n_groups, plan->groups) < 0)
		return -errno;
	if (setresgid(plan->gid, plan->gid, plan->gid) < 0)
		return -errno;
	if (setresuid(plan->uid, plan->uid, plan->uid) < 0)
		return -errno;

	if (getresuid(&real, &effective, &saved) < 0 ||
	    getresgid(&real_group, &effective_group, &saved_group) < 0)
		return -errno;
	if (real != plan->uid || effective != plan->uid || saved != plan->uid)
		return -EPERM;
	if (real_group != plan->gid || effective_group != plan->gid || saved_group != plan->gid)
		return -EPERM;
	n = getgroups(0, NULL);
	if (n < 0 || (size_t)n != plan->n_groups)
		return -EPERM;
	if (plan->uid != 0 && setuid(0) == 0)
		return -EPERM;
	return 0;
}

static int new_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	/* No keys in this kernel, or none for this container: then there is nothing to inherit either. */
	return errno == ENOSYS || errno == EPERM ? 0 : -errno;
}

/*
 * Asked here, since it may wait for whoever serves a file system: it is the caller's own process that waits
 * then. Return: -1, or the key.
 */
static int find_kernel_file(const LaunchRequest *request)
{
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++)
		if (request->descriptors & ~request->terminals & 1u << slot &&
		    descriptor_is_of_kernel(SPAWN_FD_OF(slot)))
			return (int)slot_number(slot, request->further);
	return -1;
}

/* Where a kernel says whom its limits killed. Return: a descriptor, or FD_NONE. */
static int open_memory_events(const char *group_directory)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (!group_directory || !*group_directory)
		return FD_NONE;
	if (asprintf(&path, "%s/memory.events", group_directory) < 0) {
		path = NULL;
		return FD_NONE;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? FD_NONE : fd;
}

static int place_descriptors(const SpawnPlan *plan, const char *group_directory, int *pipe_fd)
{
	int wanted[SPAWN_FD_MAX], null_fd;

	for (int i = 0; i < SPAWN_FD_MAX; i++)
		wanted[i] = FD_NONE;
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	wanted[STDIN_FILENO] = wanted[STDOUT_FILENO] = wanted[STDERR_FILENO] = null_fd;
	wanted[SPAWN_FD_LINK] = plan->link_fd;
	wanted[SPAWN_FD_LISTENING] = *pipe_fd;
	wanted[SPAWN_FD_REQUEST] = plan->request_fd;
	wanted[SPAWN_FD_LIFELINE] = plan->lifeline_fd;
	wanted[SPAWN_FD_GUARD] = plan->guard_fd;
	wanted[SPAWN_FD_STATE] = plan->state_fd;
	wanted[SPAWN_FD_MEMORY] = open_memory_events(group_directory);
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++)
		wanted[SPAWN_FD_OF(slot)] = plan->request->fds[slot];

	for (int i = 0; i < SPAWN_FD_MAX; i++)
		if (wanted[i] >= 0) {
			wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, PARKED_FD_FIRST);
			if (wanted[i] < 0)
				return -errno;
		}
	*pipe_fd = wanted[SPAWN_FD_LISTENING];
	for (int i = 0; i < SPAWN_FD_MAX; i++) {
		if (wanted[i] < 0)
			(void)close(i);
		else if (dup2(wanted[i], i) < 0)
			return -errno;
	}
	*pipe_fd = SPAWN_FD_LISTENING;
	if (close_range(SPAWN_FD_MAX, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static int enter_cgroup(int cgroup_fd)
{
	_cleanup_close_ int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, "0", 1) < 0 ? -errno : 0;
}

/*
 * Until somebody has put us into a group. The end without a line: the service has gone, or wants none of us
 * any more. Return: the line, or NULL.
 */
static char *wait_for_group(const SpawnPlan *plan)
{
	_cleanup_free_ char *line = malloc(CS_PATH_BYTES_MAX);
	size_t size = 0;

	/* Our own copy would keep the end from coming. */
	(void)close(plan->go_fd);
	while (line && size < CS_PATH_BYTES_MAX) {
		ssize_t n = read(plan->wait_fd, line + size, CS_PATH_BYTES_MAX - size);
		char *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		end = memchr(line + size, '\n', (size_t)n);
		size += (size_t)n;
		if (!end)
			continue;
		*end = '\0';
		return TAKE_PTR(line);
	}
	return NULL;
}

_noreturn_ static void child_run(const SpawnPlan *plan, int pipe_fd, bool in_cgroup)
{
	char *argv[] = { (char *)plan->program, NULL };
	char *environment[] = { NULL };
	_cleanup_free_ char *line = NULL;
	int r;

	reset_signals();
	if (plan->wait_fd >= 0) {
		line = wait_for_group(plan);
		if (!line)
			_exit(CS_EXIT_REFUSED);
	}
	if (!in_cgroup && plan->cgroup_fd >= 0) {
		r = enter_cgroup(plan->cgroup_fd);
		if (r < 0)
			child_fail(pipe_fd, SPAWN_STAGE_CGROUP, -r);
	}
	/* systemd has put it into its place in all of them. */
	r = plan->wait_fd < 0 && plan->facts->cgroups ? cgroups_follow_v1(plan->facts->cgroups) : 0;
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_CGROUP, -r);
	if (setsid() < 0)
		child_fail(pipe_fd, SPAWN_STAGE_SESSION, errno);
	if (chdir("/") < 0)
		child_fail(pipe_fd, SPAWN_STAGE_DIRECTORY, errno);
	r = set_priority(plan->facts);
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_PRIORITY, -r);
	r = place_descriptors(plan, line ?: plan->group_directory, &pipe_fd);
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_DESCRIPTORS, -r);
	r = set_limits(plan->facts);
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_LIMITS, -r);
	r = set_bounding_set(plan->facts);
	if (r >= 0)
		r = set_identity(plan);
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_IDENTITY, -r);
	r = new_keyring();
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_KEYRING, -r);
	umask(plan->facts->umask);
	r = find_kernel_file(plan->request);
	if (r >= 0)
		child_fail(pipe_fd, SPAWN_STAGE_DESCRIPTOR, r);
	r = plan->facts->selinux ? selinux_set_exec("/proc/self/attr", plan->facts->selinux) : 0;
	if (r < 0)
		child_fail(pipe_fd, SPAWN_STAGE_SELINUX, -r);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		child_fail(pipe_fd, SPAWN_STAGE_IDENTITY, errno);
	execve(plan->program, argv, environment);
	child_fail(pipe_fd, SPAWN_STAGE_EXECUTE, errno);
}

/*
 * A child that is born in its control group. One that moves there, by a write to cgroup.procs, makes the
 * kernel wait until every processor has passed a quiet point: 7 to 20 ms. Like fork(2), without the C
 * library's handlers, which a process without threads does not need. Return: as fork(2).
 */
static pid_t fork_into_cgroup(int cgroup_fd)
{
	struct clone_args arguments = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (__u64)cgroup_fd,
	};

	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

int spawn_session(const SpawnPlan *plan, pid_t *ret_pid, int *ret_pidfd, int *ret_listening_fd)
{
	_cleanup_close_ int read_fd = FD_NONE, write_fd = FD_NONE, pidfd = FD_NONE;
	bool in_cgroup = plan->cgroup_fd >= 0;
	int pipe_fds[2];
	pid_t pid = -1;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	read_fd = pipe_fds[0];
	write_fd = pipe_fds[1];
	if (fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;

	if (in_cgroup)
		pid = fork_into_cgroup(plan->cgroup_fd);
	/* Older than Linux 5.7, or a filter that forbids what it cannot look into. Another failure comes
	 * again, and at a place that has a name. */
	if (pid < 0) {
		in_cgroup = false;
		pid = fork();
	}
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_run(plan, write_fd, in_cgroup);

	/* Not reaped by anybody but us: its number cannot have been used again. */
	pidfd = pidfd_of(pid);
	if (pidfd < 0) {
		int r = pidfd;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	*ret_pid = pid;
	*ret_pidfd = TAKE_FD(pidfd);
	*ret_listening_fd = TAKE_FD(read_fd);
	return 0;
}

static const char *const stage_names[SPAWN_STAGE_MAX] = {
	[SPAWN_STAGE_CGROUP] = "its control group",
	[SPAWN_STAGE_SESSION] = "setsid",
	[SPAWN_STAGE_DIRECTORY] = "the directory /",
	[SPAWN_STAGE_PRIORITY] = "oom_score_adj",
	[SPAWN_STAGE_LIMITS] = "the resource limits",
	[SPAWN_STAGE_IDENTITY] = "user and groups",
	[SPAWN_STAGE_KEYRING] = "its keyring",
	[SPAWN_STAGE_DESCRIPTORS] = "its descriptors",
	[SPAWN_STAGE_SELINUX] = "the caller's SELinux context",
	[SPAWN_STAGE_EXECUTE] = CS_SESSION_PATH,
};

int spawn_read_pipe(int listening_fd, char **ret_problem)
{
	SpawnFailure failure;
	ssize_t n;

	n = read(listening_fd, &failure, sizeof(failure));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return 1;
	/* Whatever the session writes may be in it: looked at before anything is done with it. */
	if (n != (ssize_t)sizeof(failure) || failure.error < 0 || failure.error > PACK_ERRNO_MAX)
		failure = (SpawnFailure){ .stage = SPAWN_STAGE_MAX };
	/* The session's own statement, for its own user. */
	if (failure.stage == SPAWN_STAGE_PROGRAM && failure.error > 0)
		return refuse(
			ret_problem, -ECANCELED,
			"The session cannot begin: %s; look at the limits (ulimit -a) and the load of this "
			"machine.",
			strerror(failure.error));
	if (failure.stage >= SPAWN_STAGE_MAX)
		return refuse(ret_problem, -ECANCELED,
			      "The session wrote into the pipe that it should only close.");
	if (failure.stage == SPAWN_STAGE_DESCRIPTOR)
		return refuse(
			ret_problem, -EINVAL,
			"Descriptor %d is a file of /proc or another file system of the kernel; pass an "
			"ordinary file.",
			failure.error);
	(void)refuse(ret_problem, -ECANCELED, "The session cannot be started: %s: %s%s",
		     stage_names[failure.stage], strerror(failure.error),
		     failure.stage == SPAWN_STAGE_EXECUTE && failure.error != EAGAIN &&
				     failure.error != ENOMEM
			     ? "; install claude-sandbox again (sudo ./quickstart)"
			     : "");
	error_add_fix(ret_problem, -failure.error);
	return -ECANCELED;
}
