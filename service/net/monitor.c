/* SPDX-License-Identifier: MIT */
#include "service/net/monitor.h"

#include "service/net/link.h"

#define FLAG_LOWER_UP 0x10000u /* IFF_LOWER_UP, netdevice(7) */
#define DATAGRAMS_MAX 4096u    /* at a time; a flood must not keep the loop from everything else */

int monitor_read(int watch_fd, bool *wire_up, unsigned *ret_changes)
{
	_cleanup_free_ uint8_t *buffer = NULL;
	size_t buffer_size = 0;
	unsigned changes = 0;
	int r = 0;

	for (unsigned i = 0; i < DATAGRAMS_MAX; i++) {
		const struct nlmsghdr *header;
		size_t offset = 0;
		ssize_t n = netlink_receive(watch_fd, &buffer, &buffer_size);

		if (n == -EAGAIN)
			break;
		if (n < 0) {
			r = n == -EMSGSIZE ? -ENOBUFS : (int)n;
			break;
		}
		while ((r = message_walk(buffer, (size_t)n, &offset, &header)) > 0) {
			Link link;

			changes++;
			if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK)
				continue;
			r = link_parse(header, &link);
			if (r < 0)
				break;
			if (streq(link.name, ROUTES_JAIL_DEVICE))
				*wire_up = header->nlmsg_type == RTM_NEWLINK && (link.flags & FLAG_LOWER_UP);
		}
		if (r < 0)
			break;
	}

	*ret_changes = changes;
	return r;
}

int monitor_wire_is_up(int route_fd)
{
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	Link link;
	int r;

	r = netlink_new(route_fd, &netlink);
	if (r < 0)
		return r;
	r = link_find(netlink, ROUTES_JAIL_DEVICE, &link);
	if (r < 0)
		return r;
	return (link.flags & FLAG_LOWER_UP) != 0;
}
