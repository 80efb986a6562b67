/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets of a network namespace, as sock_diag(7) tells of them: which one sends that, whose the other end of
 * a connection is; and the end of those that are denied. */

#include "service/plan/routes.h"

#include <sys/types.h>

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

/* Whose socket is at the other end of a TCP connection of this machine: sock_diag(7), asked by addresses and
 * ports. */

/* A socket to ask with, of the network namespace of the caller. Return: 0 or a negative errno. */
int peer_owner_open(int *ret_diag_fd);

/*
 * fd: a connected TCP socket of the same namespace. Return: 0 with the owner; -ENOTCONN when the connection
 * is not in use any more, or was given up by the process that made it (the kernel then knows no owner);
 * -ENOENT when the other end is no socket of this namespace; -EBADMSG for an answer about another;
 * another negative errno.
 */
int peer_owner(int diag_fd, int fd, uid_t *ret_uid);

/* The address of a socket as sock_diag(7) has it, for tests too. */
typedef struct PeerAddress {
	uint32_t words[4]; /* network order; an IPv4 address is the first */
	uint16_t port;     /* network order */
} PeerAddress;

/* Is found what was asked for? An IPv4 address may come in its IPv6 form (::ffff:a.b.c.d). */
bool peer_address_equals(const PeerAddress *asked, bool ipv6, const PeerAddress *found, bool found_ipv6);

/*
 * Does peer_owner() work here? Connects two sockets of our own. Return: 0; a negative errno, where the kernel
 * was built without sock_diag(7) for TCP or something keeps us from it.
 */
int peer_owner_test(int diag_fd);

/*
 * What is established by TCP, or connected by UDP, in the jail's namespace to addresses that its table of
 * routes denies. Nothing passes there any more: routes decide about each packet (but a UDP datagram that was
 * begun before, udp(7), UDP_CORK, has its route already), and the reverse path filter drops what comes in.
 * But the programs inside would wait for minutes; so their sockets are told at once (ECONNABORTED), and the
 * far end of a stream is, too, where a route still leads to it.
 */

/*
 * diag_fd: JailSockets.diag_fd. Sockets of IPv6 with a mapped address count as well; the namespace's own
 * addresses do not. Needs CAP_NET_ADMIN over the namespace. *ret_ended (may be NULL): how many. Return: 0;
 * -EOPNOTSUPP from a kernel without CONFIG_INET_DIAG_DESTROY; -E2BIG when something inside makes them faster;
 * another negative errno.
 */
int flows_end_denied(int diag_fd, const RouteTable *routes, unsigned *ret_ended);
