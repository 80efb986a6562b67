/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Every refusal of the filter by name, with its answer. filter.c makes a rule of each and checks-filter.c has
 * an attempt for each, by the same list: a rule without an attempt does not compile.
 */

#include <errno.h>

/* clang-format off */
#define FILTER_REFUSALS(X) \
	/* modes with a set-id bit */ \
	X(CHMOD, EPERM) \
	X(FCHMOD, EPERM) \
	X(FCHMODAT, EPERM) \
	X(FCHMODAT2, EPERM) \
	X(MKNOD, EPERM) \
	X(MKNODAT, EPERM) \
	X(CREAT, EPERM) \
	X(MQ_OPEN, EPERM) \
	X(OPEN, EPERM) \
	X(OPENAT, EPERM) \
	/* modes in memory */ \
	X(OPENAT2, ENOSYS) \
	X(IO_URING_SETUP, ENOSYS) \
	X(IO_URING_ENTER, ENOSYS) \
	X(IO_URING_REGISTER, ENOSYS) \
	/* keyrings */ \
	X(ADD_KEY, ENOSYS) \
	X(REQUEST_KEY, ENOSYS) \
	X(KEYCTL, ENOSYS) \
	/* flags in memory */ \
	X(CLONE3, ENOSYS) \
	/* typing and pasting */ \
	X(TYPE, EPERM) \
	X(PASTE, EPERM) \
	/* requests that load modules, as a kernel without them answers */ \
	X(LINE_DISCIPLINE, EPERM) \
	X(BRIDGE, ENOPKG) \
	X(VLAN, ENOPKG) \
	X(TABLES, ENOPROTOOPT) \
	/* leases and delegations */ \
	X(SETLEASE, EACCES) \
	X(SETDELEG, EACCES) \
	/* families of sockets, and what sockets are for */ \
	X(SOCKET, EAFNOSUPPORT) \
	X(SOCKET_TYPE, ESOCKTNOSUPPORT) \
	X(SOCKET_RAW, EPERM) \
	X(SOCKET_PROTOCOL, EPROTONOSUPPORT) \
	X(SOCKETPAIR, EAFNOSUPPORT) \
	X(SOCKETCALL, ENOSYS) \
	/* mount namespaces that are no copies */ \
	X(UNSHARE_EMPTY, EINVAL) \
	X(OPEN_TREE_NAMESPACE, EINVAL) \
	X(OPEN_TREE_ATTR_NAMESPACE, EINVAL) \
	X(FSMOUNT_NAMESPACE, EINVAL) \
	/* user namespaces, in sessions of root */ \
	X(CLONE_USER, EPERM) \
	X(UNSHARE_USER, EPERM) \
	X(SETNS_USER, EPERM) \
	/* what is newer than the list */ \
	X(UNKNOWN, ENOSYS)
/* clang-format on */

typedef enum FilterRefusal {
#define FILTER_ENUM(name, answer) REFUSAL_##name,
	FILTER_REFUSALS(FILTER_ENUM)
#undef FILTER_ENUM
		REFUSAL_MAX,
} FilterRefusal;
