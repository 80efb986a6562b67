/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What is established by TCP, or connected by UDP, in the jail's namespace to addresses that its table of
 * routes denies. Nothing passes there any more: routes decide about each packet (but a UDP datagram that was
 * begun before, udp(7), UDP_CORK, has its route already), and the reverse path filter drops what comes in.
 * But the programs inside would wait for minutes; so their sockets are told at once (ECONNABORTED), and the
 * far end of a stream is, too, where a route still leads to it.
 */

#include "service/plan/routes.h"

/*
 * diag_fd: JailSockets.diag_fd. Sockets of IPv6 with a mapped address count as well; the namespace's own
 * addresses do not. Needs CAP_NET_ADMIN over the namespace. *ret_ended (may be NULL): how many. Return: 0;
 * -EOPNOTSUPP from a kernel without CONFIG_INET_DIAG_DESTROY; -E2BIG when something inside makes them faster;
 * another negative errno.
 */
int flows_end_denied(int diag_fd, const RouteTable *routes, unsigned *ret_ended);
