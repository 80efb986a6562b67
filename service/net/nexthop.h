/* SPDX-License-Identifier: MIT */
#pragma once

/* Nexthop objects (ip-nexthop(8)), which routes may name instead of a gateway. */

#include "service/net/message.h"

#include <linux/nexthop.h>

typedef struct Nexthop {
	uint32_t id, device, flags; /* RTNH_F_ */
	bool has_gateway;           /* of IPv4 */
	uint32_t gateway;           /* host order */
	bool blackhole;
	const struct nexthop_grp *group; /* in the message, unaligned at worst to 4 bytes */
	size_t n_group;
} Nexthop;

/* Return: 0 or -EBADMSG. */
int nexthop_decode(const struct nlmsghdr *header, Nexthop *ret);
/* Find an object in a dump. Return: 0; -ENOENT; -EBADMSG. */
int nexthop_find(const MessageList *list, uint32_t id, Nexthop *ret);
