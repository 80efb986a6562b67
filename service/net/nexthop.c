/* SPDX-License-Identifier: MIT */
#include "service/net/nexthop.h"

#include <sys/socket.h>

int nexthop_decode(const struct nlmsghdr *header, Nexthop *ret)
{
	Nexthop nexthop = { 0 };
	const struct rtattr *slots[NHA_MAX + 1];
	const struct nhmsg *body;
	const void *attributes;
	size_t size;

	if (header->nlmsg_type != RTM_NEWNEXTHOP && header->nlmsg_type != RTM_DELNEXTHOP)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0)
		return -EBADMSG;
	nexthop.flags = body->nh_flags;
	if (attribute_u32(slots[NHA_ID], &nexthop.id) < 0 ||
	    attribute_u32(slots[NHA_OIF], &nexthop.device) < 0)
		return -EBADMSG;
	nexthop.blackhole = slots[NHA_BLACKHOLE];
	if (body->nh_family == AF_INET && slots[NHA_GATEWAY]) {
		if (attribute_ipv4(slots[NHA_GATEWAY], &nexthop.gateway) < 0)
			return -EBADMSG;
		nexthop.has_gateway = true;
	}
	if (slots[NHA_GROUP]) {
		if (attribute_size(slots[NHA_GROUP]) % sizeof(*nexthop.group) != 0)
			return -EBADMSG;
		nexthop.group = RTA_DATA(slots[NHA_GROUP]);
		nexthop.n_group = attribute_size(slots[NHA_GROUP]) / sizeof(*nexthop.group);
	}
	*ret = nexthop;
	return 0;
}

int nexthop_find(const MessageList *list, uint32_t id, Nexthop *ret)
{
	const struct nlmsghdr *header;
	size_t offset = 0;

	while ((header = message_list_next(list, &offset))) {
		int r = nexthop_decode(header, ret);

		if (r < 0)
			return r;
		if (ret->id == id)
			return 0;
	}
	return -ENOENT;
}
