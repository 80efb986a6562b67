/* SPDX-License-Identifier: MIT */
#include "service/net/address.h"

#include <linux/if_addr.h>

#define PROTOCOL_ATTRIBUTE 11 /* IFA_PROTO, Linux 5.18 */

int address_decode(const struct nlmsghdr *header, Address *ret)
{
	Address address = { .forever = true };
	const struct rtattr *slots[PROTOCOL_ATTRIBUTE + 1];
	const struct ifaddrmsg *body;
	const void *attributes;
	size_t size;

	if (header->nlmsg_type != RTM_NEWADDR && header->nlmsg_type != RTM_DELADDR)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), &address.attribute) < 0)
		return -EBADMSG;

	address.family = body->ifa_family;
	address.length = body->ifa_prefixlen;
	address.scope = body->ifa_scope;
	address.flags = body->ifa_flags;
	address.device = body->ifa_index;
	if (attribute_u32(slots[IFA_FLAGS], &address.flags) < 0 ||
	    attribute_name(slots[IFA_LABEL], address.label, sizeof(address.label)) < 0 ||
	    attribute_u8(slots[PROTOCOL_ATTRIBUTE], &address.protocol) < 0)
		return -EBADMSG;
	if (slots[IFA_CACHEINFO]) {
		struct ifa_cacheinfo info;

		if (attribute_bytes(slots[IFA_CACHEINFO], &info, sizeof(info)) < 0)
			return -EBADMSG;
		address.forever = info.ifa_valid == UINT32_MAX && info.ifa_prefered == UINT32_MAX;
	}

	switch (address.family) {
	case AF_INET:
		if (address.length > 32 || (!slots[IFA_LOCAL] && !slots[IFA_ADDRESS]) ||
		    attribute_ipv4(slots[IFA_LOCAL] ?: slots[IFA_ADDRESS], &address.local) < 0 ||
		    attribute_ipv4(slots[IFA_ADDRESS] ?: slots[IFA_LOCAL], &address.peer) < 0)
			return -EBADMSG;
		break;
	case AF_INET6:
		if (address.length > 128 || (!slots[IFA_LOCAL] && !slots[IFA_ADDRESS]) ||
		    attribute_bytes(slots[IFA_LOCAL] ?: slots[IFA_ADDRESS], address.bytes, 16) < 0)
			return -EBADMSG;
		break;
	default:
		return -EAFNOSUPPORT;
	}

	for (uint16_t i = 0; i < ELEMENTSOF(slots) && address.attribute == 0; i++)
		if (slots[i] && i != IFA_ADDRESS && i != IFA_LOCAL && i != IFA_LABEL && i != IFA_CACHEINFO &&
		    i != IFA_FLAGS && i != PROTOCOL_ATTRIBUTE)
			address.attribute = i;
	*ret = address;
	return 0;
}

const char *address_to_text(const Address *address, char buffer[static ADDRESS_TEXT_MAX])
{
	if (address->family == AF_INET6)
		return ipv6_to_text(address->bytes, address->length, buffer);
	return ipv4_to_text(address->local, address->length, buffer);
}

int address_step(Denial *denial, char **ret_problem)
{
	/* Global scope: the kernel then also answers from it where no route names a source. */
	struct ifaddrmsg body = {
		.ifa_family = AF_INET,
		.ifa_prefixlen = 32,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = (uint32_t)denial->lo_index,
	};
	_cleanup_(nl_msg_freep) struct nl_msg *message =
		netlink_message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	_cleanup_free_ char *text = NULL;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_put_ipv4(message, IFA_LOCAL, ROUTES_SOURCE);
	if (r >= 0)
		r = netlink_put_ipv4(message, IFA_ADDRESS, ROUTES_SOURCE);
	if (r >= 0)
		r = netlink_program_one(denial->netlink, message, &text);
	if (r < 0)
		return refuse(ret_problem, r, "cannot give lo the jail's address: %s", text ?: strerror(-r));
	return 0;
}
