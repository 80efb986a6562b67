/* SPDX-License-Identifier: MIT */
#pragma once

/* The network of the namespace that the caller is in: the host's. */

#include "service/net/netlink.h"
#include "service/plan/routes.h"

/*
 * Read it from raw rtnetlink(7) dumps: connected subnets, own addresses, gateways of every route, whether an
 * IPv4 default route exists. Return: 0; a negative errno with *ret_problem.
 */
int host_network_read(HostNetwork *ret, char **ret_problem);

/* Above so many entries of one kind the host is no machine that we can describe: -E2BIG. */
#define HOST_NETWORK_ENTRIES_MAX 65536u

/* The pure half. addresses: RTM_GETADDR; routes: RTM_GETROUTE of AF_INET. Return: 0; -EBADMSG; -E2BIG;
 * -ENOMEM. */
int host_network_collect(const MessageList *addresses, const MessageList *routes, const MessageList *nexthops,
			 HostNetwork *ret);

/*
 * Learn that something in it changed: links,
 * IPv4 addresses, IPv4 routes, nexthop objects (rtnetlink(7)). What it is now, host_network_read() tells.
 * Return: 0 with a non-blocking descriptor (O_CLOEXEC) that becomes readable, or a negative errno.
 */
int host_watch_open(int *ret_fd);
/* Read away what waits; however much that is, it was a change. */
void host_watch_drain(int fd);

/*
 * What was ever of the host: now, and with it all of known. A network that was there and went may come back,
 * and is denied before it does. The uplink is that of now. Return: 1 when now has what known lacks; 0;
 * -ENOMEM.
 */
int host_network_join(const HostNetwork *known, const HostNetwork *now, HostNetwork *ret);
