/* SPDX-License-Identifier: MIT */
#include "service/session/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "dbus/causes.h"

static const char *const program_directories[] = { "/usr/bin", "/bin", "/usr/sbin", "/sbin" };

int program_find(const char *name, const char *package, char **ret_path, char **ret_problem)
{
	for (size_t i = 0; i < ELEMENTSOF(program_directories); i++) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (asprintf(&path, "%s/%s", program_directories[i], name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		if (stat(path, &st) < 0) {
			if (errno == ENOENT || errno == ENOTDIR)
				continue;
			return refuse(ret_problem, -errno, "%s cannot be examined: %s", path,
				      strerror(errno));
		}
		if (!S_ISREG(st.st_mode))
			return refuse(ret_problem, -EPERM, CAUSE_PROGRAM_IRREGULAR "; " FIX_PROGRAM_AGAIN,
				      path, package);
		if (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
			return refuse(ret_problem, -EPERM, CAUSE_PROGRAM_OWNER "; " FIX_PROGRAM_AGAIN, path,
				      (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777), package);
		if (st.st_mode & (S_ISUID | S_ISGID))
			return refuse(ret_problem, -EPERM, BECAUSE(PROGRAM_SET_ID), path);
		if (access(path, X_OK) < 0)
			return refuse(ret_problem, -EPERM, CAUSE_PROGRAM_MODE "; " FIX_PROGRAM_AGAIN, path,
				      (unsigned)(st.st_mode & 07777), strerror(errno), package);
		*ret_path = TAKE_PTR(path);
		return 0;
	}
	return refuse(ret_problem, -ENOENT, CAUSE_PROGRAM_MISSING "; " FIX_PROGRAM_PACKAGE, name, package);
}

void program_child_reset(pid_t parent)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i <= SIGRTMAX; i++)
		(void)sigaction(i, &action, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(127);
}

_noreturn_ void program_execute(const char *path, char *const *argv, char *const *environment, int in,
				int out, int error)
{
	int null_fd = FD_NONE;

	if (in < 0 || out < 0 || error < 0) {
		null_fd = program_open_null();
		if (null_fd < 0)
			_exit(127);
	}
	if (dup2(error < 0 ? null_fd : error, STDERR_FILENO) < 0 ||
	    dup2(in < 0 ? null_fd : in, STDIN_FILENO) < 0 ||
	    dup2(out < 0 ? null_fd : out, STDOUT_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
		_exit(127);
	(void)execve(path, argv, environment);
	(void)dprintf(STDERR_FILENO, "%s cannot be executed: %s\n", path, strerror(errno));
	_exit(127);
}

int program_open_null(void)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	int high;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return TAKE_FD(fd);
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return high < 0 ? -errno : high;
}

int program_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* Return: the parent of pid (proc(5), PPid in status), 0 when it cannot be known. */
static pid_t program_parent(pid_t pid)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t size = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		const char *value = starts_with(line, "PPid:");

		if (value)
			return (pid_t)strtol(value, NULL, 10);
	}
	return 0;
}

int program_pidfd_below(pid_t pid, pid_t parent)
{
	_cleanup_close_ int fd = program_pidfd(pid);

	if (fd < 0)
		return fd;
	/* The descriptor came first: if the parent is right now, it was right for what the descriptor holds.
	 */
	return program_parent(pid) == parent ? TAKE_FD(fd) : -ESRCH;
}

int program_signal(int pidfd, int signal)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int program_reap(int pidfd, int *ret_status)
{
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0)
		return -errno;
	if (info.si_pid == 0)
		return 0;
	if (ret_status)
		*ret_status = info.si_code == CLD_EXITED
				      ? W_EXITCODE(info.si_status, 0)
				      : W_EXITCODE(0, info.si_status) |
						(info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	return 1;
}

void program_destroy(int *pidfd, int timeout_msec)
{
	struct pollfd poll_fd = { .fd = *pidfd, .events = POLLIN };

	if (*pidfd < 0)
		return;
	(void)program_signal(*pidfd, SIGKILL);
	while (poll(&poll_fd, 1, timeout_msec) < 0 && errno == EINTR)
		continue;
	(void)program_reap(*pidfd, NULL);
	*pidfd = close_fd(*pidfd);
}
