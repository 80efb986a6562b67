/* SPDX-License-Identifier: MIT */

/* The filter, by what real calls answer: each case runs in a child that has installed it for good. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/filter.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define NUMBER_FCHMODAT2 452

typedef struct Fixture {
	char directory[64];
	char file[96];
	char fresh[96];
	int directory_fd;
	int fd;
} Fixture;

static int fixture_make(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	strcpy(f->directory, "/tmp/seccomp-test-XXXXXX");
	if (!mkdtemp(f->directory))
		return -1;
	snprintf(f->file, sizeof(f->file), "%s/file", f->directory);
	snprintf(f->fresh, sizeof(f->fresh), "%s/fresh", f->directory);
	f->directory_fd = open(f->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->fd = open(f->file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	*state = f;
	return f->directory_fd < 0 || f->fd < 0 ? -1 : 0;
}

static int fixture_end(void **state)
{
	Fixture *f = *state;

	(void)unlink(f->file);
	(void)unlink(f->fresh);
	(void)rmdir(f->fresh);
	(void)rmdir(f->directory);
	close_fd(f->directory_fd);
	close_fd(f->fd);
	free(f);
	return 0;
}

typedef long (*Call)(const Fixture *f);

/* Return: what call answered under the filter (0 or a positive errno), or 1000 + the signal that killed it.
 */
static int outcome(const Fixture *f, Call call, bool forbid_namespaces)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(forbid_namespaces) < 0)
			_exit(200);
		errno = 0;
		_exit(call(f) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 1000 + WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), 200);
	return WEXITSTATUS(status);
}

#define CALL(name, expression)             \
	static long name(const Fixture *f) \
	{                                  \
		(void)f;                   \
		return (long)(expression); \
	}

#ifdef SYS_chmod
CALL(chmod_suid, syscall(SYS_chmod, f->file, 04755))
CALL(chmod_sgid, syscall(SYS_chmod, f->file, 02755))
CALL(chmod_both, syscall(SYS_chmod, f->file, 06755))
CALL(chmod_plain, syscall(SYS_chmod, f->file, 0755))
CALL(chmod_sticky, syscall(SYS_chmod, f->directory, 01777))
CALL(chmod_high, syscall(SYS_chmod, f->file, 0xffff0000UL | 04755))
CALL(mknod_suid, syscall(SYS_mknod, f->fresh, S_IFREG | 04755, 0))
CALL(mknod_fifo, syscall(SYS_mknod, f->fresh, S_IFIFO | 0644, 0))
CALL(mkdir_sgid, syscall(SYS_mkdir, f->fresh, 02755))
CALL(mkdir_both, syscall(SYS_mkdir, f->fresh, 06755))
CALL(creat_suid, syscall(SYS_creat, f->fresh, 04755))
CALL(open_suid, syscall(SYS_open, f->fresh, O_CREAT | O_WRONLY, 04755))
CALL(open_sgid, syscall(SYS_open, f->fresh, O_CREAT | O_WRONLY, 02755))
#endif
CALL(fchmod_suid, syscall(SYS_fchmod, f->fd, 04755))
CALL(fchmod_sgid, syscall(SYS_fchmod, f->fd, 02755))
CALL(fchmod_plain, syscall(SYS_fchmod, f->fd, 0600))
CALL(fchmodat_suid, syscall(SYS_fchmodat, f->directory_fd, "file", 04755))
CALL(fchmodat_sgid, syscall(SYS_fchmodat, f->directory_fd, "file", 02755))
CALL(fchmodat_plain, syscall(SYS_fchmodat, f->directory_fd, "file", 0755))
CALL(fchmodat2_suid, syscall(NUMBER_FCHMODAT2, f->directory_fd, "file", 04755, 0))
CALL(fchmodat2_sgid, syscall(NUMBER_FCHMODAT2, f->directory_fd, "file", 02755, 0))
CALL(mknodat_suid, syscall(SYS_mknodat, f->directory_fd, "fresh", S_IFREG | 04755, 0))
CALL(mknodat_sgid, syscall(SYS_mknodat, f->directory_fd, "fresh", S_IFREG | 02755, 0))
CALL(mknodat_fifo, syscall(SYS_mknodat, f->directory_fd, "fresh", S_IFIFO | 0644, 0))
CALL(mkdirat_sgid, syscall(SYS_mkdirat, f->directory_fd, "fresh", 02755))
CALL(mkdirat_both, syscall(SYS_mkdirat, f->directory_fd, "fresh", 06755))
CALL(mkdirat_plain, syscall(SYS_mkdirat, f->directory_fd, "fresh", 0755))
CALL(openat_suid, syscall(SYS_openat, f->directory_fd, "fresh", O_CREAT | O_WRONLY, 04755))
CALL(openat_sgid, syscall(SYS_openat, f->directory_fd, "fresh", O_CREAT | O_WRONLY, 02755))
CALL(openat_tmpfile, syscall(SYS_openat, AT_FDCWD, f->directory, O_TMPFILE | O_WRONLY, 04755))
CALL(openat_tmpfile_sgid, syscall(SYS_openat, AT_FDCWD, f->directory, O_TMPFILE | O_WRONLY, 02755))
CALL(openat_plain, syscall(SYS_openat, f->directory_fd, "fresh", O_CREAT | O_WRONLY, 0755))
/* Without O_CREAT the fourth argument is whatever the register held. */
CALL(openat_leftover, syscall(SYS_openat, f->directory_fd, "file", O_RDONLY, 06777))
CALL(mq_suid, syscall(SYS_mq_open, "claude-sandbox-test", O_CREAT | O_RDWR, 04600, NULL))

static long openat2_plain(const Fixture *f)
{
	struct open_how how = { .flags = O_RDONLY };

	return syscall(SYS_openat2, f->directory_fd, "file", &how, sizeof(how));
}

static long uring_setup(const Fixture *f)
{
	struct io_uring_params params = { 0 };

	(void)f;
	return syscall(SYS_io_uring_setup, 4, &params);
}

CALL(uring_enter, syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0))
CALL(uring_register, syscall(SYS_io_uring_register, -1, 0, NULL, 0))
CALL(newer_call, syscall(500))
CALL(newest_call, syscall(469, -1, "", NULL, 0, 0))

/* On a descriptor that is no terminal the kernel would say ENOTTY. */
CALL(ioctl_sti, syscall(SYS_ioctl, f->fd, TIOCSTI, "x"))
CALL(ioctl_sti_high, syscall(SYS_ioctl, f->fd, 0x100000000UL | TIOCSTI, "x"))
CALL(ioctl_linux, syscall(SYS_ioctl, f->fd, TIOCLINUX, "x"))
CALL(ioctl_other, syscall(SYS_ioctl, f->fd, TIOCGWINSZ, NULL))

/* The file is ours: the kernel would not say EACCES. */
CALL(lease, syscall(SYS_fcntl, f->fd, F_SETLEASE, F_UNLCK))
CALL(lease_high, syscall(SYS_fcntl, f->fd, 0x100000000UL | F_SETLEASE, F_UNLCK))
CALL(delegation, syscall(SYS_fcntl, f->fd, 1040, 0))
CALL(lease_looked_at, syscall(SYS_fcntl, f->fd, F_GETLEASE))

CALL(unshare_user, syscall(SYS_unshare, CLONE_NEWUSER))

static long clone_user(const Fixture *f)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

	(void)f;
	if (pid == 0)
		_exit(0);
	return pid;
}

static long clone3_plain(const Fixture *f)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	(void)f;
	if (pid == 0)
		_exit(0);
	return pid;
}

CALL(setns_user, syscall(SYS_setns, -1, CLONE_NEWUSER))

static void set_id_is_refused(void **state)
{
	static const Call calls[] = {
#ifdef SYS_chmod
		chmod_suid,     chmod_sgid,          chmod_both,    chmod_high,    mknod_suid,
		creat_suid,     open_suid,           open_sgid,
#endif
		fchmod_suid,    fchmod_sgid,         fchmodat_suid, fchmodat_sgid, fchmodat2_suid,
		fchmodat2_sgid, mknodat_suid,        mknodat_sgid,  openat_suid,   openat_sgid,
		openat_tmpfile, openat_tmpfile_sgid, mq_suid,
	};
	const Fixture *f = *state;
	struct stat status;

	for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
		if (outcome(f, calls[i], false) != EPERM)
			fail_msg("case %zu was not refused", i);
		assert_int_equal(fstat(f->fd, &status), 0);
		assert_int_equal(status.st_mode & (S_ISUID | S_ISGID), 0);
		assert_int_equal(access(f->fresh, F_OK), -1);
	}
}

CALL(key_add, syscall(SYS_add_key, "user", "seccomp-test", "x", 1, KEY_SPEC_PROCESS_KEYRING))
CALL(key_request, syscall(SYS_request_key, "user", "seccomp-test", NULL, 0))
CALL(key_control, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0))

static void unseen_calls_do_not_exist(void **state)
{
	static const Call calls[] = { openat2_plain, uring_setup, uring_enter, uring_register, newer_call,
				      key_add,       key_request, key_control, clone3_plain };

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		if (outcome(*state, calls[i], false) != ENOSYS)
			fail_msg("case %zu exists", i);
	/* EBADF, or ENOSYS of a kernel that has it not; the filter's own border is tested by newer_call. */
	assert_int_not_equal(outcome(*state, newest_call, false), EPERM);
}

/* mkdir(2) takes neither bit from its mode: nothing to refuse. */
static void directories_are_made_without_the_bits(void **state)
{
	static const Call calls[] = {
#ifdef SYS_mkdir
		mkdir_sgid,
		mkdir_both,
#endif
		mkdirat_sgid,
		mkdirat_both,
	};
	const Fixture *f = *state;
	struct stat status;

	for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
		assert_int_equal(outcome(f, calls[i], false), 0);
		assert_int_equal(stat(f->fresh, &status), 0);
		assert_int_equal(status.st_mode & (S_ISUID | S_ISGID), 0);
		assert_int_equal(rmdir(f->fresh), 0);
	}
}

static void typing_is_refused(void **state)
{
	assert_int_equal(outcome(*state, lease, false), EACCES);
	assert_int_equal(outcome(*state, lease_high, false), EACCES);
	assert_int_equal(outcome(*state, delegation, false), EACCES);
	assert_int_equal(outcome(*state, lease_looked_at, false), 0);
	assert_int_equal(outcome(*state, ioctl_sti, false), EPERM);
	assert_int_equal(outcome(*state, ioctl_sti_high, false), EPERM);
	assert_int_equal(outcome(*state, ioctl_linux, false), EPERM);
	assert_int_equal(outcome(*state, ioctl_other, false), ENOTTY);
}

/* Opened and closed, so that a child of the test keeps none. */
static long socket_of(int family, int type)
{
	int fd = socket(family, type, 0);

	return fd < 0 ? -1 : close(fd);
}

CALL(socket_vsock, socket_of(AF_VSOCK, SOCK_STREAM))
CALL(socket_vsock_high, syscall(SYS_socket, 0x100000000L | AF_VSOCK, SOCK_STREAM, 0))
CALL(socket_packet, socket_of(AF_PACKET, SOCK_DGRAM))
CALL(socket_alg, socket_of(AF_ALG, SOCK_SEQPACKET))
CALL(socket_between, socket_of(AF_INET6 + 1, SOCK_DGRAM))
CALL(socket_unspecified, socket_of(AF_UNSPEC, SOCK_STREAM))
CALL(socket_beyond, syscall(SYS_socket, -1L, SOCK_STREAM, 0))
CALL(socketpair_tipc, syscall(SYS_socketpair, AF_TIPC, SOCK_SEQPACKET, 0, NULL))
CALL(socket_unix, socket_of(AF_UNIX, SOCK_STREAM))
CALL(socket_inet, socket_of(AF_INET, SOCK_STREAM))
CALL(socket_inet6, socket_of(AF_INET6, SOCK_DGRAM))
CALL(socket_netlink, socket_of(AF_NETLINK, SOCK_RAW))

static void other_socket_families_do_not_exist(void **state)
{
	static const Call refused[] = { socket_vsock,   socket_vsock_high,  socket_packet, socket_alg,
					socket_between, socket_unspecified, socket_beyond, socketpair_tipc };
	static const Call held[] = { socket_unix, socket_inet, socket_inet6, socket_netlink };

	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		if (outcome(*state, refused[i], false) != EAFNOSUPPORT)
			fail_msg("case %zu was not refused", i);
	for (size_t i = 0; i < ELEMENTSOF(held); i++)
		if (outcome(*state, held[i], false) != 0)
			fail_msg("case %zu was refused", i);
}

/*
 * No kernel decides: a second filter lets what ours allows end as for a tracer that is not there (ENOSYS),
 * and of two answers the error is the stronger (seccomp(2)).
 */
static long call_untraced(long number, long one, long two, long three)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { .len = ELEMENTSOF(program), .filter = program };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		return -1;
	return syscall(number, one, two, three, 0, 0);
}

#define NUMBER_OPEN_TREE_ATTR 467 /* the same on all architectures that are filtered */

CALL(tree_namespace, call_untraced(SYS_open_tree, f->fd, (long)"", 0x2 | OPEN_TREE_CLONE))
CALL(tree_plain, call_untraced(SYS_open_tree, f->fd, (long)"", OPEN_TREE_CLONE))
CALL(tree_attr_namespace, call_untraced(NUMBER_OPEN_TREE_ATTR, f->fd, (long)"", 0x2 | OPEN_TREE_CLONE))
CALL(tree_attr_plain, call_untraced(NUMBER_OPEN_TREE_ATTR, f->fd, (long)"", OPEN_TREE_CLONE))
CALL(fsmount_namespace, call_untraced(SYS_fsmount, f->fd, 0x3, 0))
CALL(fsmount_plain, call_untraced(SYS_fsmount, f->fd, 0x1, 0x2))
CALL(unshare_empty, call_untraced(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | 0x00100000, 0, 0))
CALL(unshare_mounts, call_untraced(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0))

static void mount_namespaces_are_copies(void **state)
{
	static const Call refused[] = { tree_namespace, tree_attr_namespace, fsmount_namespace,
					unshare_empty };
	static const Call others[] = { tree_plain, tree_attr_plain, fsmount_plain, unshare_mounts };

	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		if (outcome(*state, refused[i], false) != EINVAL)
			fail_msg("case %zu was not refused", i);
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		if (outcome(*state, others[i], false) != ENOSYS)
			fail_msg("case %zu was refused", i);
}

static void namespaces_are_refused_to_root_only(void **state)
{
	assert_int_equal(outcome(*state, unshare_user, true), EPERM);
	assert_int_equal(outcome(*state, clone_user, true), EPERM);
	assert_int_equal(outcome(*state, setns_user, true), EPERM);

	assert_int_equal(outcome(*state, unshare_user, false), 0);
	assert_int_equal(outcome(*state, clone_user, false), 0);
	assert_int_equal(outcome(*state, setns_user, false), EBADF);
}

static long fork_and_wait(const Fixture *f)
{
	int status;
	pid_t pid = fork();

	(void)f;
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void ordinary_calls_work(void **state)
{
	static const Call calls[] = {
#ifdef SYS_chmod
		chmod_plain,  chmod_sticky,
#endif
		fchmod_plain, fchmodat_plain, openat_leftover, fork_and_wait,
	};
	static const Call makers[] = {
#ifdef SYS_chmod
		mknod_fifo,
#endif
		mknodat_fifo,
		mkdirat_plain,
		openat_plain,
	};
	const Fixture *f = *state;

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		if (outcome(f, calls[i], true) != 0)
			fail_msg("case %zu failed", i);
	for (size_t i = 0; i < ELEMENTSOF(makers); i++) {
		if (outcome(f, makers[i], true) != 0)
			fail_msg("maker %zu failed", i);
		assert_true(unlink(f->fresh) == 0 || rmdir(f->fresh) == 0);
	}
}

/* Real programs on a real tree, as an agent uses them. */
static long programs_run(const Fixture *f)
{
	static const char script[] =
		"set -e; cd \"$1\"; mkdir w; echo a > w/a; chmod 755 w/a; chmod u+x,g-w w/a; "
		"cp -a w v; tar cf t.tar w; mkdir x; tar xf t.tar -C x; cmp w/a x/w/a; "
		"git -c init.defaultBranch=main init -q g; cd g; cp ../w/a .; git add a; "
		"git -c user.name=a -c user.email=a@b commit -qm a; git status --short; "
		"cd ..; if chmod u+s w/a 2>/dev/null; then exit 3; fi; rm -rf w v x g t.tar";
	char *const argv[] = { (char *)"sh", (char *)"-c",         (char *)script,
			       (char *)"sh", (char *)f->directory, NULL };
	char *const environment[] = { (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/nonexistent", NULL };

	execve("/bin/sh", argv, environment);
	return -1;
}

static void programs_work(void **state)
{
	assert_int_equal(outcome(*state, programs_run, false), 0);
	assert_int_equal(outcome(*state, programs_run, true), 0);
}

#ifdef __x86_64__
static long call_32(long number, long a, long b, long c)
{
	long answer;

	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

/* i386's numbers (asm/unistd_32.h); its pointers must lie low. */
static long chmod_32(const Fixture *f, int mode)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (low == MAP_FAILED)
		return -1;
	strcpy(low, f->file);
	return call_32(15, (long)low, mode, 0);
}

CALL(chmod_32_suid, chmod_32(f, 04755))
CALL(chmod_32_plain, chmod_32(f, 0755))
CALL(fchmod_32_sgid, call_32(94, f->fd, 02755, 0))
CALL(fchmodat2_32_suid, call_32(NUMBER_FCHMODAT2, f->directory_fd, 0, 04755))
CALL(openat2_32, call_32(437, -1, 0, 0))
CALL(keyctl_32, call_32(288, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0))
CALL(uring_32, call_32(425, 4, 0, 0))
CALL(ioctl_32_sti, call_32(54, f->fd, TIOCSTI, 0))
CALL(lease_32, call_32(55, f->fd, F_SETLEASE, F_UNLCK))
CALL(lease_32_64, call_32(221, f->fd, F_SETLEASE, F_UNLCK))
CALL(getpid_32, call_32(20, 0, 0, 0))
CALL(socket_32_vsock, call_32(359, AF_VSOCK, SOCK_STREAM, 0))
CALL(socket_32_unix, call_32(359, AF_UNIX, SOCK_STREAM, 0))
CALL(socketcall_32, call_32(102, 1, 0, 0))
CALL(unshare_32_user, call_32(310, CLONE_NEWUSER, 0, 0))
CALL(getpid_x32, syscall(0x40000000 | SYS_getpid))
CALL(ioctl_x32_bare, syscall(514, f->fd, TIOCSTI, "x"))
CALL(chmod_x32_suid, syscall(0x40000000 | SYS_chmod, f->file, 04755))

static bool emulation_is_there(const Fixture *f)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(getpid_32(f) == getpid() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void other_architectures_are_filtered(void **state)
{
	const Fixture *f = *state;
	int answer = outcome(f, chmod_x32_suid, false);

	/* The filter answers before the kernel says whether it has x32 at all. */
	assert_int_equal(answer, EPERM);
	assert_int_equal(outcome(f, getpid_x32, false), ENOSYS);
	assert_int_equal(outcome(f, ioctl_x32_bare, false), ENOSYS);

	if (!emulation_is_there(f)) {
		print_message("this kernel runs no 32-bit programs\n");
		return;
	}
	assert_int_equal(outcome(f, chmod_32_suid, false), EPERM);
	assert_int_equal(outcome(f, fchmod_32_sgid, false), EPERM);
	assert_int_equal(outcome(f, fchmodat2_32_suid, false), EPERM);
	assert_int_equal(outcome(f, openat2_32, false), ENOSYS);
	assert_int_equal(outcome(f, uring_32, false), ENOSYS);
	assert_int_equal(outcome(f, keyctl_32, false), ENOSYS);
	assert_int_equal(outcome(f, ioctl_32_sti, false), EPERM);
	assert_int_equal(outcome(f, lease_32, false), EACCES);
	assert_int_equal(outcome(f, lease_32_64, false), EACCES);
	assert_int_equal(outcome(f, socket_32_vsock, false), EAFNOSUPPORT);
	assert_int_equal(outcome(f, socketcall_32, false), ENOSYS);
	assert_int_equal(outcome(f, socket_32_unix, false), 0);
	assert_int_equal(outcome(f, unshare_32_user, true), EPERM);
	assert_int_equal(outcome(f, chmod_32_plain, false), 0);
	assert_int_equal(outcome(f, getpid_32, false), 0);
}
#else
static void other_architectures_are_filtered(void **state)
{
	(void)state;
}
#endif

static void needs_no_new_privs(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		/* Root's capabilities would do as well as no_new_privs: leave them. */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(filter_install(false) == -EACCES ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(set_id_is_refused, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(directories_are_made_without_the_bits, fixture_make,
						fixture_end),
		cmocka_unit_test_setup_teardown(unseen_calls_do_not_exist, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(other_socket_families_do_not_exist, fixture_make,
						fixture_end),
		cmocka_unit_test_setup_teardown(typing_is_refused, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(mount_namespaces_are_copies, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(namespaces_are_refused_to_root_only, fixture_make,
						fixture_end),
		cmocka_unit_test_setup_teardown(ordinary_calls_work, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(programs_work, fixture_make, fixture_end),
		cmocka_unit_test_setup_teardown(other_architectures_are_filtered, fixture_make, fixture_end),
		cmocka_unit_test(needs_no_new_privs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
