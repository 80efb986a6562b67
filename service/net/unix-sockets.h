/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bound Unix sockets of this process's network namespace that others can talk to, each with the inode of
 * its file (sock_diag(7); include/uapi/linux/unix_diag.h of the kernel). /proc/net/unix has the name by
 * which a socket was bound and nothing else: a relative one, or one that was renamed since, says not where it
 * is.
 */

#include "dbus/base.h"

#include <linux/netlink.h>
#include <sys/types.h>

#define UNIX_SOCKETS_MAX 16384u

typedef struct UnixSocket {
	char *name;     /* as it was bound: an absolute or a relative path */
	uint32_t inode; /* of its file, without the upper half that the kernel leaves out */
	uid_t uid;      /* (uid_t)-1 on a kernel that does not tell (before 5.3) */
} UnixSocket;

typedef struct UnixSockets {
	UnixSocket *sockets;
	size_t n;
} UnixSockets;

void unix_sockets_done(UnixSockets *sockets);

/*
 * Listening sockets and unconnected ones. Return: 0; -E2BIG above UNIX_SOCKETS_MAX; -ENOENT, -EOPNOTSUPP or
 * another negative errno when the kernel has no such table; -EBADMSG; -ETIMEDOUT. *ret is set only on
 * success.
 */
int unix_sockets_read(UnixSockets *ret);

/*
 * One message of that table. What is not bound to a file is passed over. Pure; message_walk() has checked the
 * length of the message. Return: 0, -EBADMSG, -E2BIG, -ENOMEM.
 */
int unix_sockets_take(UnixSockets *sockets, const struct nlmsghdr *header);
