/* SPDX-License-Identifier: MIT */
#pragma once

/* Whose socket is at the other end of a TCP connection of this machine: sock_diag(7), asked by addresses and
 * ports. */

#include <sys/types.h>

#include "dbus/base.h"

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
