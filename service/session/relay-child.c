/* SPDX-License-Identifier: MIT */
#include "service/session/relay-child.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/session/channel.h"
#include "service/session/program.h"

#define BACKLOG 128
#define KILL_MSEC 2000

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "name this architecture as linux/audit.h does"
#endif

/* ---- the child ---- */

/* Port numbers below 1024 (ip_unprivileged_port_start) are why this comes before the capabilities go. */
static int listen_on(uint16_t port, int *ret)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

static int send_listener(int channel_fd, uint16_t port)
{
	ChannelMessage m = { .kind = CHANNEL_LISTEN, .number = port };
	_cleanup_close_ int fd = FD_NONE;
	int r = listen_on(port, &fd);

	if (r < 0)
		channel_fail(&m, r, NULL);
	m.n_fds = r == 0;
	return channel_send(channel_fd, &m, &fd);
}

/* capabilities(7): the namespace gave all of them. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filter_calls(void)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(socket),
		ALLOW(sendmsg),
		ALLOW(close),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = { ELEMENTSOF(instructions), instructions };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static _noreturn_ void hand_out_sockets(int channel_fd)
{
	for (;;) {
		ChannelMessage m = { .kind = CHANNEL_SOCKET, .n_fds = 1 };
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0) {
			channel_fail(&m, -errno, "");
			m.n_fds = 0;
		}
		/* Blocks while the session has not taken those before. */
		if (channel_send(channel_fd, &m, &fd) < 0)
			_exit(0);
		(void)close_fd(fd);
	}
}

static _noreturn_ void child_run(const RelayChildOptions *options, int holder_pidfd, int channel_fd,
				 pid_t parent)
{
	ChannelMessage m = { .kind = CHANNEL_OPEN };
	int r = setns(holder_pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -errno : 0;

	program_child_reset(parent);
	(void)close(holder_pidfd);
	if (r < 0)
		channel_fail(&m, r, NULL);
	if (channel_send(channel_fd, &m, NULL) < 0 || r < 0)
		_exit(1);
	for (size_t i = 0; i < options->n_ports; i++)
		if (send_listener(channel_fd, options->ports[i]) < 0)
			_exit(1);
	m.kind = CHANNEL_OPEN;
	r = drop_capabilities();
	if (r == 0)
		r = filter_calls();
	if (r < 0)
		channel_fail(&m, r, NULL);
	if (channel_send(channel_fd, &m, NULL) < 0 || r < 0)
		_exit(1);
	hand_out_sockets(channel_fd);
}

/* ---- the session's side ---- */

static int child_fork(RelayChild *child, const RelayChildOptions *options)
{
	const int smallest =
		0; /* few sockets wait at a time: socket(7) raises it to the least that there is */
	int pair[2], r;
	pid_t parent = getpid(), pid;

	r = channel_make(pair);
	if (r < 0)
		return r;
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &smallest, sizeof(smallest));
	child->channel_fd = pair[0];
	pid = fork();
	if (pid == 0) {
		/* Everything of the session's goes: two numbers above the rest are kept, then nothing. */
		int top = MAX_OF(options->holder_pidfd, pair[1]) + 1;
		int holder_pidfd = fcntl(options->holder_pidfd, F_DUPFD_CLOEXEC, top);
		int channel_fd = fcntl(pair[1], F_DUPFD_CLOEXEC, holder_pidfd + 1);

		if (holder_pidfd < 0 || channel_fd < 0 || close_range(0, (unsigned)holder_pidfd - 1, 0) < 0 ||
		    (channel_fd > holder_pidfd + 1 &&
		     close_range((unsigned)holder_pidfd + 1, (unsigned)channel_fd - 1, 0) < 0) ||
		    close_range((unsigned)channel_fd + 1, ~0U, 0) < 0)
			_exit(1);
		child_run(options, holder_pidfd, channel_fd, parent);
	}
	r = pid < 0 ? -errno : 0;
	(void)close(pair[1]);
	if (r < 0)
		return r;
	child->pidfd = program_pidfd(pid);
	if (child->pidfd < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return MIN_OF(child->pidfd, 0);
}

/* Return: the message's own result or that of receiving it; *ret_fd is set with one descriptor. */
static int receive(const RelayChild *child, ChannelKind kind, int timeout_msec, int number, int *ret_fd)
{
	int fds[CHANNEL_FDS_MAX], r;
	ChannelMessage m;

	r = channel_receive(child->channel_fd, timeout_msec, &m, fds);
	if (r < 0)
		return r;
	if (m.kind != kind || m.number != number || m.n_fds != (ret_fd && m.result == 0)) {
		for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
			close_fdp(&fds[i]);
		return -EBADMSG;
	}
	if (m.result == 0 && ret_fd)
		*ret_fd = fds[0];
	return m.result;
}

int relay_child_start(RelayChild *child, const RelayChildOptions *options, int *listeners, char **ret_problem)
{
	_cleanup_(relay_child_done) RelayChild new = RELAY_CHILD_INIT;
	int r;

	for (size_t i = 0; i < options->n_ports; i++)
		listeners[i] = FD_NONE;
	r = child_fork(&new, options);
	if (r == 0)
		r = receive(&new, CHANNEL_OPEN, RELAY_CHILD_ANSWER_MSEC, 0, NULL);
	for (size_t i = 0; r == 0 && i < options->n_ports; i++) {
		int result = receive(&new, CHANNEL_LISTEN, RELAY_CHILD_ANSWER_MSEC, options->ports[i],
				     &listeners[i]);

		if (result == -ETIMEDOUT || result == -ECONNRESET || result == -EBADMSG)
			r = result;
		else if (result < 0)
			listeners[i] = result;
	}
	if (r == 0)
		r = receive(&new, CHANNEL_OPEN, RELAY_CHILD_ANSWER_MSEC, 0, NULL);
	if (r < 0) {
		for (size_t i = 0; i < options->n_ports; i++)
			close_fdp(&listeners[i]);
		return refuse(ret_problem, r, "the process for ports that cross cannot be had: %s",
			      strerror(-r));
	}
	*child = new;
	new = RELAY_CHILD_INIT;
	return 0;
}

int relay_child_socket(const RelayChild *child)
{
	int fd = FD_NONE, r;

	if (child->channel_fd < 0)
		return -ECONNRESET;
	r = receive(child, CHANNEL_SOCKET, 0, 0, &fd);
	return r == -ETIMEDOUT ? -EAGAIN : r < 0 ? r : fd;
}

void relay_child_done(RelayChild *child)
{
	close_fdp(&child->channel_fd);
	program_destroy(&child->pidfd, KILL_MSEC);
	*child = RELAY_CHILD_INIT;
}
