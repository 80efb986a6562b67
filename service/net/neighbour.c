/* SPDX-License-Identifier: MIT */
#include "service/net/neighbour.h"

#include <linux/neighbour.h>

int neighbour_decode(const struct nlmsghdr *header, Neighbour *ret)
{
	Neighbour neighbour = { 0 };
	const struct rtattr *slots[NDA_MAX + 1];
	const struct ndmsg *body;
	const void *attributes;
	size_t size;

	if (header->nlmsg_type != RTM_NEWNEIGH && header->nlmsg_type != RTM_DELNEIGH)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), &neighbour.attribute) < 0)
		return -EBADMSG;

	neighbour.family = body->ndm_family;
	neighbour.flags = body->ndm_flags;
	neighbour.type = body->ndm_type;
	neighbour.state = body->ndm_state;
	neighbour.device = (uint32_t)body->ndm_ifindex;
	if (slots[NDA_LLADDR]) {
		neighbour.has_mac = attribute_size(slots[NDA_LLADDR]) == sizeof(neighbour.mac);
		neighbour.odd_mac = !neighbour.has_mac;
		if (neighbour.has_mac)
			memcpy(neighbour.mac, RTA_DATA(slots[NDA_LLADDR]), sizeof(neighbour.mac));
	}

	if (!slots[NDA_DST])
		return -EBADMSG;
	if (neighbour.family == AF_INET) {
		if (attribute_ipv4(slots[NDA_DST], &neighbour.address) < 0)
			return -EBADMSG;
	} else if (neighbour.family == AF_INET6) {
		if (attribute_bytes(slots[NDA_DST], neighbour.bytes, sizeof(neighbour.bytes)) < 0)
			return -EBADMSG;
	} else
		return -EAFNOSUPPORT;

	for (uint16_t i = 0; i < ELEMENTSOF(slots) && neighbour.attribute == 0; i++)
		if (slots[i] && i != NDA_DST && i != NDA_LLADDR && i != NDA_PROBES && i != NDA_CACHEINFO)
			neighbour.attribute = i;
	*ret = neighbour;
	return 0;
}

const char *neighbour_to_text(const Neighbour *neighbour, char buffer[static ADDRESS_TEXT_MAX])
{
	if (neighbour->family == AF_INET6)
		return ipv6_to_text(neighbour->bytes, 128, buffer);
	return ipv4_to_text(neighbour->address, 32, buffer);
}

bool neighbour_is_harmless(const Neighbour *neighbour)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *mac = neighbour->mac;
	uint32_t address = neighbour->address;

	if (neighbour->flags != 0 || neighbour->attribute != 0 || neighbour->odd_mac)
		return false;
	if (neighbour->state == NUD_NONE || neighbour->state == NUD_INCOMPLETE ||
	    neighbour->state == NUD_FAILED)
		return true;
	if (neighbour->state != NUD_NOARP || !neighbour->has_mac)
		return false;
	if (memcmp(mac, broadcast, sizeof(broadcast)) == 0)
		return true;
	/* RFC 1112 §6.4 and RFC 2464 §7 */
	if (neighbour->family == AF_INET)
		return address >> 28 == 0xe && mac[0] == 0x01 && mac[1] == 0x00 && mac[2] == 0x5e &&
		       mac[3] == (address >> 16 & 0x7f) && mac[4] == (address >> 8 & 0xff) &&
		       mac[5] == (address & 0xff);
	return neighbour->bytes[0] == 0xff && mac[0] == 0x33 && mac[1] == 0x33 &&
	       memcmp(mac + 2, neighbour->bytes + 12, 4) == 0;
}

int neighbour_forget(Netlink *netlink, uint32_t device, const uint32_t *addresses, size_t n)
{
	struct ndmsg body = { .ndm_family = AF_INET, .ndm_ifindex = (int)device };

	for (size_t done = 0; done < n;) {
		struct nl_msg *messages[NETLINK_BATCH_MAX] = { 0 };
		NetlinkAnswer *answers = calloc(NETLINK_BATCH_MAX, sizeof(*answers));
		size_t used = 0;
		int r = answers ? 0 : -ENOMEM;

		while (r >= 0 && used < NETLINK_BATCH_MAX && done < n) {
			if (addresses[done] == ROUTES_FAR_END) {
				done++;
				continue;
			}
			messages[used] = netlink_message(RTM_DELNEIGH, 0, &body, sizeof(body));
			r = messages[used] ? netlink_put_ipv4(messages[used], NDA_DST, addresses[done])
					   : -ENOMEM;
			used++;
			done++;
		}
		if (r >= 0 && used > 0)
			r = netlink_program(netlink, messages, used, answers);
		for (size_t i = 0; i < used; i++)
			nl_msg_freep(&messages[i]);
		netlink_answers_free(answers, NETLINK_BATCH_MAX);
		if (r < 0)
			return r;
	}
	return 0;
}

int neighbour_step(Denial *denial, char **ret_problem)
{
	static const uint8_t mac[6] = ROUTES_FAR_END_MAC;
	struct ndmsg body = {
		.ndm_family = AF_INET,
		.ndm_ifindex = denial->jail_index,
		.ndm_state = NUD_PERMANENT,
	};
	_cleanup_(nl_msg_freep) struct nl_msg *message =
		netlink_message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	_cleanup_free_ char *text = NULL;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_put_ipv4(message, NDA_DST, ROUTES_FAR_END);
	if (r >= 0)
		r = netlink_put(message, NDA_LLADDR, mac, sizeof(mac));
	if (r >= 0)
		r = netlink_program_one(denial->netlink, message, &text);
	if (r < 0)
		return refuse(ret_problem, r,
			      "cannot enter the far end as neighbour of " ROUTES_JAIL_DEVICE ": %s",
			      text ?: strerror(-r));
	return 0;
}
