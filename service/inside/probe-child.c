/* SPDX-License-Identifier: MIT */

/*
 * A probe may die of what it tries, block, or change its process for good. So each runs in one of its own:
 * the leader of a process group, which is killed as a whole at the end, whatever that was. What it found lies
 * in memory that both share, since a probe that gets out and then dies has got out.
 *
 * The process is not dumpable, like its parent: the agent of a session that runs has the same uid, and could
 * otherwise make it say what it likes. The one that has to be (p32, to open its own memory) may be made to
 * lie there, and in nothing else.
 */

#include "service/inside/probe-child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/measure.h"

/* Nothing of the caller's but the terminal at 2, and nothing left behind: no core file either. */
static void prepare(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;
	int null_fd;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = MIN_OF(files.rlim_max, (rlim_t)4096);
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	(void)signal(SIGTTIN, SIG_IGN);
	(void)umask(077);
	(void)!chdir("/");
	(void)close_range(3, ~0u, 0);
	(void)close(0);
	(void)close(1);
	null_fd = open("/dev/null", O_RDWR);
	if (null_fd == 0)
		(void)fcntl(null_fd, F_DUPFD, 1);
}

_noreturn_ static void run(const Probe *probe, Probing *p)
{
	prepare();
	probing_attempt(p, probe);
	p->finished = true;
	_exit(0);
}

void probe_child_start(ProbeChild *child, const Probe *probe, const Expectations *expectations)
{
	void *memory = mmap(NULL, sizeof(Probing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*child = (ProbeChild){ .probe = probe, .pid = -1, .pid_fd = FD_NONE };
	if (memory == MAP_FAILED)
		return;
	child->shared = memory;
	child->shared->expectations = expectations;
	child->pid = fork();
	if (child->pid == 0)
		run(probe, child->shared);
	/* What one finds is not in the memory of another, which an agent may get to trace. */
	(void)madvise(memory, sizeof(Probing), MADV_DONTFORK);
	if (child->pid > 0) {
		(void)setpgid(child->pid, child->pid);
		child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	}
}

static int child_end(ProbeChild *child, uint64_t deadline_usec, int *ret_status)
{
	int r = child->pid_fd < 0
			? -ETIME
			: measure_wait(child->pid, child->pid_fd, (int64_t)(deadline_usec / USEC_PER_MSEC));

	/* Unreaped, its number is nobody else's, and so is that of its group. */
	(void)kill(-child->pid, SIGKILL);
	(void)kill(child->pid, SIGKILL);
	while (waitpid(child->pid, ret_status, 0) < 0 && errno == EINTR)
		;
	child->pid_fd = close_fd(child->pid_fd);
	return r;
}

/* What it shared may have been written by an agent that traced it, and be written still. */
static Probing take(const Probing *shared)
{
	Probing own;

	memcpy(&own, shared, sizeof(own));
	own.blocked[PROBING_TEXT_MAX - 1] = own.escaped[PROBING_TEXT_MAX - 1] =
		own.unclear[PROBING_TEXT_MAX - 1] = '\0';
	return own;
}

static int verdict(const Probing *p, int r, int status, char **ret_text)
{
	char text[2 * PROBING_TEXT_MAX + 64];

	*ret_text = NULL;
	if (probing_outcome(p) == PROBE_ESCAPED || (r == 0 && p->finished && !p->stopped)) {
		*ret_text = strdup(probing_text(p, text, sizeof(text)));
		return (int)probing_outcome(p);
	}
	if (r == -ETIME) {
		*ret_text = strdup("inconclusive: it did not come back in its time");
		return -ETIME;
	}
	if (r < 0 || p->stopped) {
		*ret_text = strdup("inconclusive: somebody stopped its process");
		return -ECHILD;
	}
	(void)snprintf(text, sizeof(text), "inconclusive: its process died of signal %d",
		       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	*ret_text = strdup(text);
	return -ECHILD;
}

int probe_child_finish(ProbeChild *child, uint64_t deadline_usec, char **ret_text)
{
	int status = 0, r;

	if (child->pid <= 0) {
		*ret_text = strdup("inconclusive: no process can be made for it");
		r = -ECHILD;
	} else {
		Probing own;

		r = child_end(child, deadline_usec, &status);
		own = take(child->shared);
		r = verdict(&own, r, status, ret_text);
	}
	if (child->shared)
		(void)munmap(child->shared, sizeof(Probing));
	*child = (ProbeChild){ .pid = -1, .pid_fd = FD_NONE };
	return r;
}

void probing_apart(Probing *p, void (*function)(Probing *p, void *userdata), void *userdata)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		function(p, userdata);
		_exit(0);
	}
	if (pid < 0) {
		probing_unclear(p, "no process can be made: %s", probing_error(errno));
		return;
	}
	while (waitpid(pid, &status, WUNTRACED) < 0 && errno == EINTR)
		;
	if (WIFSTOPPED(status)) {
		p->stopped = true;
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		probing_blocked(p, "the filter killed the process");
	else if (WIFSIGNALED(status))
		probing_unclear(p, "a process died of signal %d", WTERMSIG(status));
}

int probe_clone(ProbeClone call, uint64_t flags)
{
	struct clone_args arguments = { .flags = flags, .exit_signal = SIGCHLD };
	long pid = call == PROBE_CLONE3
			   ? syscall(SYS_clone3, &arguments, sizeof(arguments))
			   : syscall(SYS_clone, (unsigned long)flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return -1;
	while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* A /proc that is not of our pid namespace has other numbers: its own one for a process stands with a pidfd.
 */
static int open_status(pid_t pid, FILE **ret)
{
	_cleanup_close_ int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	_cleanup_fclose_ FILE *info = NULL;
	char path[64], line[256];
	int number = -1;

	if (pid_fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	info = fopen(path, "re");
	if (!info)
		return -errno;
	while (number < 0 && fgets(line, sizeof(line), info))
		if (starts_with(line, "Pid:"))
			number = atoi(line + strlen("Pid:"));
	if (number <= 0)
		return -ESRCH;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", number);
	*ret = fopen(path, "re");
	return *ret ? 0 : -errno;
}

static int read_identity(pid_t pid, ProbeIdentity *ret)
{
	_cleanup_fclose_ FILE *status = NULL;
	unsigned found = 0;
	char line[256];
	int r = open_status(pid, &status);

	if (r < 0)
		return r;
	while (fgets(line, sizeof(line), status)) {
		found += sscanf(line, "Uid: %u %u %u %u", &ret->uid[0], &ret->uid[1], &ret->uid[2],
				&ret->uid[3]) == 4;
		found += sscanf(line, "Gid: %u %u %u %u", &ret->gid[0], &ret->gid[1], &ret->gid[2],
				&ret->gid[3]) == 4;
		found += sscanf(line, "CapPrm: %lx", &ret->permitted) == 1;
	}
	return found == 3 ? 0 : -EBADMSG;
}

int probe_execute(char *const argv[], ProbeIdentity *ret)
{
	siginfo_t info;
	int r, status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		char *const environment[] = { NULL };

		if (dup2(0, 2) < 0)
			_exit(126);
		execve(argv[0], argv, environment);
		_exit(127);
	}
	do
		r = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	while (r < 0 && errno == EINTR);
	/* One that has ended and was not waited for still has its identity (proc(5)). */
	r = r < 0 ? -errno : read_identity(pid, ret);
	(void)waitpid(pid, &status, 0);
	if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) >= 126)
		return -ENOEXEC;
	return r;
}
