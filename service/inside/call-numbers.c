/* SPDX-License-Identifier: MIT */
#include "service/inside/call-numbers.h"

#include <sys/syscall.h>

#ifdef SYS_chmod
#define NATIVE(name) SYS_##name
#else
#define NATIVE(name) (-1)
#endif

const long call_numbers[CALL_MAX] = {
	[CALL_CHMOD] = NATIVE(chmod),
	[CALL_FCHMOD] = SYS_fchmod,
	[CALL_FCHMODAT] = SYS_fchmodat,
	[CALL_FCHMODAT2] = 452,
	[CALL_MKNOD] = NATIVE(mknod),
	[CALL_MKNODAT] = SYS_mknodat,
	[CALL_CREAT] = NATIVE(creat),
	[CALL_MQ_OPEN] = SYS_mq_open,
	[CALL_OPEN] = NATIVE(open),
	[CALL_OPENAT] = SYS_openat,
	[CALL_OPENAT2] = SYS_openat2,
	[CALL_IO_URING_SETUP] = SYS_io_uring_setup,
	[CALL_IO_URING_ENTER] = SYS_io_uring_enter,
	[CALL_IO_URING_REGISTER] = SYS_io_uring_register,
	[CALL_ADD_KEY] = SYS_add_key,
	[CALL_REQUEST_KEY] = SYS_request_key,
	[CALL_KEYCTL] = SYS_keyctl,
	[CALL_CLONE3] = __NR_clone3,
	[CALL_IOCTL] = SYS_ioctl,
	[CALL_FCNTL] = SYS_fcntl,
	[CALL_FCNTL64] = -1,
	[CALL_SOCKET] = SYS_socket,
	[CALL_SOCKETPAIR] = SYS_socketpair,
	[CALL_SOCKETCALL] = -1,
	[CALL_SETSOCKOPT] = SYS_setsockopt,
	[CALL_GETSOCKOPT] = SYS_getsockopt,
	[CALL_UNSHARE] = SYS_unshare,
	[CALL_OPEN_TREE] = SYS_open_tree,
	[CALL_OPEN_TREE_ATTR] = 467,
	[CALL_FSMOUNT] = SYS_fsmount,
	[CALL_CLONE] = __NR_clone,
	[CALL_SETNS] = SYS_setns,
};

#ifdef __x86_64__
const long call_numbers_32[CALL_MAX] = {
	[CALL_CHMOD] = 15,
	[CALL_FCHMOD] = 94,
	[CALL_FCHMODAT] = 306,
	[CALL_FCHMODAT2] = 452,
	[CALL_MKNOD] = 14,
	[CALL_MKNODAT] = 297,
	[CALL_CREAT] = 8,
	[CALL_MQ_OPEN] = 277,
	[CALL_OPEN] = 5,
	[CALL_OPENAT] = 295,
	[CALL_OPENAT2] = 437,
	[CALL_IO_URING_SETUP] = 425,
	[CALL_IO_URING_ENTER] = 426,
	[CALL_IO_URING_REGISTER] = 427,
	[CALL_ADD_KEY] = 286,
	[CALL_REQUEST_KEY] = 287,
	[CALL_KEYCTL] = 288,
	[CALL_CLONE3] = 435,
	[CALL_IOCTL] = 54,
	[CALL_FCNTL] = 55,
	[CALL_FCNTL64] = 221,
	[CALL_SOCKET] = 359,
	[CALL_SOCKETPAIR] = 360,
	[CALL_SOCKETCALL] = 102,
	[CALL_SETSOCKOPT] = 366,
	[CALL_GETSOCKOPT] = 365,
	[CALL_UNSHARE] = 310,
	[CALL_OPEN_TREE] = 428,
	[CALL_OPEN_TREE_ATTR] = 467,
	[CALL_FSMOUNT] = 432,
	[CALL_CLONE] = 120,
	[CALL_SETNS] = 346,
};
#endif
