/* SPDX-License-Identifier: MIT */

/*
 * seccomp(2): of several filters the strictest answer holds, and SECCOMP_RET_ERRNO is stricter than
 * SECCOMP_RET_USER_NOTIF. So a filter on top of all, which hands every call to a listener, is asked for
 * exactly those that the others let through. The listener is a child that shares the descriptors (clone(2),
 * CLONE_FILES) and had been made before, so that it is not held by that filter; whoever runs the attempt ends
 * both.
 */

#include "service/inside/filter-listener.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define NOTIFICATION_MAX 512u

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "filter-listener: name the architecture"
#endif

typedef union Notification {
	struct seccomp_notif asked;
	struct seccomp_notif_resp answer;
	uint8_t bytes[NOTIFICATION_MAX];
} Notification;

STATIC_ASSERT(sizeof(Notification) == NOTIFICATION_MAX);

_noreturn_ static void listen_for_calls(int read_fd)
{
	Notification question, answer;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (read(read_fd, &fd, sizeof(fd)) != (ssize_t)sizeof(fd))
		_exit(1);
	for (;;) {
		memset(&question, 0, sizeof(question));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &question) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(1);
		}
		memset(&answer, 0, sizeof(answer));
		answer.answer.id = question.asked.id;
		answer.answer.error = -FILTER_LET_THROUGH;
		(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

/* What the process needs for itself, in the way of its own architecture: to end, and to have memory. */
static const uint32_t own_calls[] = { SYS_exit_group, SYS_write, SYS_mmap, SYS_munmap, SYS_sigaltstack };

static int listener_install(void)
{
	enum { LAST = 3 + ELEMENTSOF(own_calls) }; /* the answer to all that is not let through */
	struct sock_filter program[LAST + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, LAST - 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		[LAST] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		[LAST + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { .len = ELEMENTSOF(program), .filter = program };
	int fd;

	for (unsigned i = 0; i < ELEMENTSOF(own_calls); i++)
		program[3 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own_calls[i],
							      (uint8_t)(LAST - 3 - i), 0);
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
	return fd < 0 ? -errno : fd;
}

int filter_listener_start(void)
{
	struct seccomp_notif_sizes sizes;
	int ends[2], fd;
	pid_t pid;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	if (sizes.seccomp_notif > NOTIFICATION_MAX || sizes.seccomp_notif_resp > NOTIFICATION_MAX)
		return -E2BIG;
	if (pipe(ends) < 0)
		return -errno;
	/* As fork(2), but for the descriptors: what one opens the other has. */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		listen_for_calls(ends[0]);
	if (pid < 0)
		return -errno;
	fd = listener_install();
	if (fd < 0) {
		(void)kill(pid, SIGKILL);
		return fd;
	}
	return write(ends[1], &fd, sizeof(fd)) == (ssize_t)sizeof(fd) ? 0 : -EIO;
}
