/* SPDX-License-Identifier: MIT */
#pragma once

/* Numbers of system calls, of this program's architecture and of the 32-bit one beside it. */

typedef enum CallName {
	CALL_CHMOD,
	CALL_FCHMOD,
	CALL_FCHMODAT,
	CALL_FCHMODAT2,
	CALL_MKNOD,
	CALL_MKNODAT,
	CALL_CREAT,
	CALL_MQ_OPEN,
	CALL_OPEN,
	CALL_OPENAT,
	CALL_OPENAT2,
	CALL_IO_URING_SETUP,
	CALL_IO_URING_ENTER,
	CALL_IO_URING_REGISTER,
	CALL_ADD_KEY,
	CALL_REQUEST_KEY,
	CALL_KEYCTL,
	CALL_CLONE3,
	CALL_IOCTL,
	CALL_FCNTL,
	CALL_FCNTL64,
	CALL_SOCKET,
	CALL_SOCKETPAIR,
	CALL_SOCKETCALL,
	CALL_SETSOCKOPT,
	CALL_GETSOCKOPT,
	CALL_UNSHARE,
	CALL_OPEN_TREE,
	CALL_OPEN_TREE_ATTR,
	CALL_FSMOUNT,
	CALL_CLONE,
	CALL_SETNS,
	CALL_MAX,
} CallName;

/* -1: there is no such call. */
extern const long call_numbers[CALL_MAX];
#ifdef __x86_64__
/* arch/x86/entry/syscalls/syscall_32.tbl */
extern const long call_numbers_32[CALL_MAX];
#endif
