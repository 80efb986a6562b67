/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/* One end of a connection, or of datagrams, and the other; host byte order. */
typedef struct SocketPair {
	uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
	uint32_t source, destination;
	uint16_t source_port, destination_port;
} SocketPair;

/*
 * Which socket of the namespace of diag_fd (NETLINK_SOCK_DIAG, bound; JailSockets) sends that? Never waits.
 * Return: 0 with its inode, as /proc/PID/fd names it; -ENOENT when there is none, or the kernel does not tell
 * (no CONFIG_INET_UDP_DIAG); another negative errno.
 */
int socket_inode(int diag_fd, const SocketPair *pair, uint64_t *ret);
