/* SPDX-License-Identifier: MIT */
#pragma once

/* The pure half of host.h: from dumps to a HostNetwork. */

#include "service/net/message.h"
#include "service/plan/routes.h"

/* Above so many entries of one kind the host is no machine that we can describe: -E2BIG. */
#define HOST_NETWORK_ENTRIES_MAX 65536u

/* addresses: RTM_GETADDR; routes: RTM_GETROUTE of AF_INET. Return: 0; -EBADMSG; -E2BIG; -ENOMEM. */
int host_network_collect(const MessageList *addresses, const MessageList *routes, const MessageList *nexthops,
			 HostNetwork *ret);
