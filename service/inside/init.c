/* SPDX-License-Identifier: MIT */
#include "service/inside/init.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dbus/names.h"
#include "service/inside/filter.h"
#include "service/inside/standard-device.h"
#include "service/link/link.h"
#include "service/link/report.h"

/*
 * What runs below this process is the adversary, with the same uid. The order of the start is what holds it
 * off:
 *
 *  1. Not dumpable: else the agent traces this process and writes its reports for it.
 *  2. All signals blocked: a stop, an exit or a hang-up is read from a descriptor, between two steps, and
 *     nothing that the agent sends interrupts or ends anything.
 *  3. Every descriptor close-on-exec before any is used: the agent gets what the orders name and nothing else.
 *  4. A session of our own and its terminal, before the fork: the agent is a group in it, never its leader. A
 *     leader that goes takes the terminal from everybody and the kernel's hang-up ends it without grace.
 *  5. no_new_privs and the filter, before the fork, so that no process of the jail ever lived without them.
 *  6. The session's word. Mounts and this process are made while the wire comes; nothing of the agent runs
 *     before the session says so, or when the session has died meanwhile, whatever it died of. Init says first that
 *     it waits, so that the session can set the agent's PID: nothing else may be started here before the agent.
 *  7. Fork, execute, and only then let go of the caller's descriptors: readers at the other end of a pipe or
 *     of the PTY see the end of the stream when the agent's processes are gone, not when we are.
 *
 * One copy of the terminal is kept. It is how the foreground group is read at a stop and given back at a
 * resume; it delays the end of the PTY only until this process ends, which it does when the agent has.
 */

#define ORDERS_BYTES_MAX (2u * CS_REQUEST_BYTES_MAX)

typedef struct Init {
	InitOrders orders;
	int signal_fd;
	int report_fd;
	int terminal_fd; /* FD_NONE without a terminal */
	pid_t agent;
	pid_t foreground; /* group that had the terminal when the agent stopped; 0 when it did not stop */
	bool hung_up;
	struct rlimit files; /* RLIMIT_NOFILE as the caller has it */
} Init;

/* What the child tells before it becomes the agent: nothing when execve(2) succeeds. */
typedef struct Failure {
	InitStage stage;
	int error; /* positive errno */
} Failure;

static void init_done(Init *init)
{
	init_orders_done(&init->orders);
	init->signal_fd = close_fd(init->signal_fd);
	init->report_fd = close_fd(init->report_fd);
	init->terminal_fd = close_fd(init->terminal_fd);
}

/* Waits for room: a report that is lost is an agent that never ends. Return: 0, or -EPIPE when nobody
 * listens. */
static int report_send(const Init *init, ReportKind kind, InitStage stage, int number)
{
	const Report report = { .kind = kind, .stage = stage, .number = number };
	uint8_t data[REPORT_SIZE];
	int r;

	report_encode(&report, data);
	for (;;) {
		struct pollfd room = { .fd = init->report_fd, .events = POLLOUT };

		r = packet_send(init->report_fd, data, sizeof(data));
		if (r != -EAGAIN && r != -EINTR)
			return r;
		if (poll(&room, 1, -1) < 0 && errno != EINTR)
			return -errno;
	}
}

static int orders_read(InitOrders *ret)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct stat status;
	size_t size, n = 0;

	if (fstat(INIT_FD_ORDERS, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > (off_t)ORDERS_BYTES_MAX)
		return -EBADMSG;

	size = (size_t)status.st_size;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	while (n < size) {
		ssize_t got = pread(INIT_FD_ORDERS, data + n, size - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EBADMSG;
		n += (size_t)got;
	}
	return init_orders_decode(data, size, ret);
}

/* Where the agent's descriptor comes from. Return: ours, or FD_NONE for one that is closed. */
static int slot_source(const InitOrders *orders, unsigned slot)
{
	if (orders->terminals & (1u << slot))
		return INIT_FD_TERMINAL;
	if (orders->descriptors & (1u << slot))
		return INIT_FD_STDIN + (int)slot;
	return FD_NONE;
}

static int slots_check(const InitOrders *orders)
{
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
		int source = slot_source(orders, slot);

		if (source >= 0 && fcntl(source, F_GETFD) < 0)
			return -errno;
	}
	return 0;
}

static int terminal_take(void)
{
	/* 0: never away from another session, even with the rights to do so (ioctl_tty(2)). */
	return ioctl(INIT_FD_TERMINAL, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

static int session_lead(void)
{
	if (setsid() < 0 && getsid(0) != getpid())
		return -errno;
	return 0;
}

static int restrict_self(const InitOrders *orders)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return filter_install(orders->forbid_namespaces);
}

_noreturn_ static void child_fail(int failure_fd, InitStage stage, int error)
{
	const Failure failure = { .stage = stage, .error = error };

	(void)!write(failure_fd, &failure, sizeof(failure));
	_exit(1);
}

/* Of its own kind in the jail, and without the flag that would close it. Return: 0 or a negative errno. */
static int descriptor_place(int source, int number)
{
	return dup2(source, number) < 0 ? -errno : standard_device_replace(number);
}

/*
 * All are moved above the agent's numbers before the first is placed, the way out of here with them. The limit of
 * open files is init's own until then; the agent has its caller's.
 */
static int descriptors_place(const InitOrders *orders, const struct rlimit *limit, int *failure_fd)
{
	int sources[SLOTS_MAX], first = (int)SLOTS_NUMBER_MAX + 1, r = 0;

	r = fcntl(*failure_fd, F_DUPFD_CLOEXEC, first);
	if (r < 0)
		return -errno;
	*failure_fd = r;
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
		int source = slot_source(orders, slot);

		sources[slot] = source < 0 ? FD_NONE : fcntl(source, F_DUPFD_CLOEXEC, first);
		if (source >= 0 && sources[slot] < 0)
			return -errno;
	}
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
		int number = (int)slot_number(slot, orders->further);

		if (sources[slot] >= 0)
			r = descriptor_place(sources[slot], number);
		else if (slot < SLOTS_FIRST_FURTHER)
			(void)close(number);
		if (r < 0)
			return r;
	}
	return setrlimit(RLIMIT_NOFILE, limit) < 0 ? -errno : 0;
}

/* In the child: become the agent. */
_noreturn_ static void agent_execute(const Init *init, int failure_fd)
{
	const InitOrders *orders = &init->orders;
	sigset_t none;
	int r;

	/* SIGTTOU is still blocked, so a background group may take the foreground (tcsetpgrp(3)). */
	if (setpgid(0, 0) < 0)
		child_fail(failure_fd, INIT_STAGE_SESSION, errno);
	if (orders->terminals && !orders->background && tcsetpgrp(INIT_FD_TERMINAL, getpid()) < 0)
		child_fail(failure_fd, INIT_STAGE_TERMINAL, errno);

	r = descriptors_place(orders, &init->files, &failure_fd);
	if (r < 0)
		child_fail(failure_fd, INIT_STAGE_EXECUTE, -r);

	(void)umask((mode_t)orders->file_mode_mask);
	if (chdir(orders->cwd) < 0)
		child_fail(failure_fd, INIT_STAGE_DIRECTORY, errno);

	/* libc refuses the two that it keeps for itself; those are default after execve(2) unless ignored. */
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, orders->ignored_signals >> (number - 1) & 1 ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		child_fail(failure_fd, INIT_STAGE_EXECUTE, errno);

	execve(orders->program, orders->argv, orders->environment);
	child_fail(failure_fd, INIT_STAGE_EXECUTE, errno);
}

/* Return: 0 when the agent runs; a negative errno, *ret_stage says where. */
static int agent_start(Init *init, InitStage *ret_stage)
{
	_cleanup_close_ int read_fd = FD_NONE, write_fd = FD_NONE;
	Failure failure;
	int ends[2];
	ssize_t n;

	*ret_stage = INIT_STAGE_FORK;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_fd = ends[0];
	/* Above what has a meaning here. */
	write_fd = fcntl(ends[1], F_DUPFD_CLOEXEC, INIT_FD_MAX);
	if (write_fd < 0) {
		int error = -errno;
		(void)close(ends[1]);
		return error;
	}
	(void)close(ends[1]);

	init->agent = fork();
	if (init->agent < 0)
		return -errno;
	if (init->agent == 0)
		agent_execute(init, write_fd);

	write_fd = close_fd(write_fd);
	do
		n = read(read_fd, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(failure))
		return -EIO;
	*ret_stage = failure.stage;
	return -failure.error;
}

static void descriptors_release(void)
{
	for (int fd = INIT_FD_STDIN; fd < INIT_FD_MAX; fd++)
		(void)close(fd);
	/* The last of bwrap's: its error pipe. 0 is /dev/null. */
	if (dup2(STDIN_FILENO, STDERR_FILENO) < 0)
		(void)close(STDERR_FILENO);
}

/*
 * The group that typed signals go to. 1 is our own and kill(2) reads its negative as "everybody"; 0 is one
 * that this pid namespace cannot see.
 */
static pid_t agent_group(const Init *init)
{
	pid_t group = getpgid(init->agent);

	return group > 1 ? group : init->agent;
}

/* While we hold the terminal ourselves, or the agent has stopped, it is the group that had it then. */
static pid_t foreground_group(const Init *init)
{
	pid_t group = init->terminal_fd >= 0 ? tcgetpgrp(init->terminal_fd) : 0;

	if (group > 1)
		return group;
	return init->foreground > 1 ? init->foreground : agent_group(init);
}

static void groups_signal(pid_t one, pid_t other, int number)
{
	(void)kill(-one, number);
	if (other != one)
		(void)kill(-other, number);
}

static void agent_hang_up(Init *init)
{
	pid_t group = agent_group(init), foreground = foreground_group(init);

	if (init->hung_up)
		return;
	init->hung_up = true;
	groups_signal(group, foreground, SIGHUP);
	groups_signal(group, foreground, SIGCONT);
}

/*
 * Who had the terminal gets it back. behind: our own group, which never reads, has it instead: a job in the
 * background stops with SIGTTIN when it reads, and init's report of that stops it outside too.
 */
static void agent_resume(Init *init, bool behind)
{
	pid_t foreground = init->foreground > 1 ? init->foreground : foreground_group(init);

	if (init->terminal_fd >= 0)
		(void)tcsetpgrp(init->terminal_fd, behind ? getpgrp() : foreground);
	init->foreground = behind ? foreground : 0;
	groups_signal(foreground, agent_group(init), SIGCONT);
}

/* While we hold the terminal ourselves, who is to have it again is known already. */
static void foreground_remember(Init *init)
{
	pid_t group = init->terminal_fd >= 0 ? tcgetpgrp(init->terminal_fd) : 0;

	if (group > 1 || init->foreground <= 1)
		init->foreground = foreground_group(init);
}

/* Return: 1 when the agent has ended and that was reported, 0 to go on, -EPIPE. */
static int children_reap(Init *init)
{
	for (;;) {
		int status, r = 0;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return 0;
		if (pid != init->agent)
			continue;
		if (WIFSTOPPED(status)) {
			foreground_remember(init);
			r = report_send(init, REPORT_STOPPED, 0, WSTOPSIG(status));
		} else if (WIFCONTINUED(status)) {
			r = report_send(init, REPORT_CONTINUED, 0, 0);
		} else {
			r = report_send(init, REPORT_EXITED, 0, status);
			return r < 0 ? r : 1;
		}
		if (r < 0)
			return r;
	}
}

static int signals_read(Init *init)
{
	struct signalfd_siginfo info;

	if (read(init->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	/* Only the kernel's own SIGHUP is the terminal's end; the agent can send the signal, not this code.
	 */
	if (info.ssi_signo == SIGHUP && info.ssi_code == SI_KERNEL)
		agent_hang_up(init);
	return children_reap(init);
}

/* Return: 0 to go on, a negative errno when the session is gone or makes no sense. */
static int report_read(Init *init)
{
	uint8_t data[REPORT_SIZE];
	Report report;
	ssize_t n;
	int r;

	n = packet_receive(init->report_fd, data, sizeof(data));
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	r = report_decode(data, (size_t)n, &report);
	if (r < 0)
		return r;

	switch (report.kind) {
	case REPORT_SIGNAL:
		(void)kill(init->agent, report.number);
		return 0;
	case REPORT_KEY:
		(void)kill(-foreground_group(init), report.number);
		return 0;
	case REPORT_RESUME:
	case REPORT_RESUME_BEHIND:
		agent_resume(init, report.kind == REPORT_RESUME_BEHIND);
		return 0;
	case REPORT_HANGUP:
		agent_hang_up(init);
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Return: 0 when the agent may run; -EPIPE when the session is gone; -EBADMSG. */
static int go_wait(const Init *init)
{
	struct pollfd event = { .fd = init->report_fd, .events = POLLIN };
	uint8_t data[REPORT_SIZE];
	Report report;
	ssize_t n;
	int r;

	do {
		if (poll(&event, 1, -1) < 0 && errno != EINTR)
			return -errno;
		n = packet_receive(init->report_fd, data, sizeof(data));
	} while (n == -EAGAIN || n == -EINTR);
	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	r = report_decode(data, (size_t)n, &report);
	if (r < 0)
		return r;
	return report.kind == REPORT_GO ? 0 : -EBADMSG;
}

/* When the session is gone nobody is left to see or stop the agent: our end takes the namespace along. */
static int supervise(Init *init)
{
	struct pollfd events[] = {
		{ .fd = init->signal_fd, .events = POLLIN },
		{ .fd = init->report_fd, .events = POLLIN },
	};
	int r;

	for (;;) {
		if (poll(events, ELEMENTSOF(events), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (events[0].revents) {
			r = signals_read(init);
			if (r != 0)
				return r;
		}
		if (events[1].revents) {
			r = report_read(init);
			if (r < 0)
				return r;
		}
	}
}

static int init_prepare(Init *init, InitStage *ret_stage)
{
	int r;

	*ret_stage = INIT_STAGE_ORDERS;
	r = orders_read(&init->orders);
	if (r < 0)
		return r;
	(void)close(INIT_FD_ORDERS);
	r = slots_check(&init->orders);
	if (r < 0)
		return r;

	*ret_stage = INIT_STAGE_SESSION;
	r = session_lead();
	if (r < 0)
		return r;

	if (init->orders.terminals) {
		*ret_stage = INIT_STAGE_TERMINAL;
		r = terminal_take();
		if (r < 0)
			return r;
		init->terminal_fd = INIT_FD_TERMINAL;
	} else
		(void)close(INIT_FD_TERMINAL);

	*ret_stage = INIT_STAGE_SECCOMP;
	r = restrict_self(&init->orders);
	if (r < 0)
		return r;

	*ret_stage = INIT_STAGE_ORDERS;
	r = report_send(init, REPORT_READY, 0, 0);
	if (r == 0)
		r = go_wait(init);
	if (r < 0)
		return r;

	return agent_start(init, ret_stage);
}

/* Above the numbers that orders give a meaning to, whichever of them are free. Return: a descriptor, -errno.
 */
static int signals_watch(const sigset_t *watched)
{
	_cleanup_close_ int fd = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
	int high_fd;

	if (fd < 0)
		return -errno;
	high_fd = fcntl(fd, F_DUPFD_CLOEXEC, INIT_FD_MAX);
	return high_fd < 0 ? -errno : high_fd;
}

int init_run(void)
{
	_cleanup_(init_done)
		Init init = { .signal_fd = FD_NONE, .report_fd = INIT_FD_REPORT, .terminal_fd = FD_NONE };
	InitStage stage = INIT_STAGE_ORDERS;
	sigset_t all, watched;
	int r;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return 1;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return 1;
	/* The caller's soft limit may be below the numbers that are used here. */
	if (getrlimit(RLIMIT_NOFILE, &init.files) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ init.files.rlim_max, init.files.rlim_max }) < 0)
		return 1;
	if (close_range(INIT_FD_MAX, ~0U, 0) < 0 || close_range(INIT_FD_REPORT, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return 1;

	/* Ignored or default, a child's end would not be kept for waitpid(2) if SIGCHLD came in ignored. */
	(void)signal(SIGCHLD, SIG_DFL);
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGHUP);
	init.signal_fd = signals_watch(&watched);
	r = init.signal_fd < 0 ? init.signal_fd : init_prepare(&init, &stage);
	if (r < 0) {
		(void)report_send(&init, REPORT_FAILED, stage, -r);
		return 1;
	}

	init_orders_done(&init.orders);
	descriptors_release();
	r = report_send(&init, REPORT_EXECUTED, 0, 0);
	if (r == 0)
		r = supervise(&init);
	return r < 0;
}
