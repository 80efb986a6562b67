/* SPDX-License-Identifier: MIT */
#include "service/net/host.h"

#include "service/net/host-network.h"
#include "service/net/netlink.h"

#include <linux/nexthop.h>
#include <sys/socket.h>

int host_network_read(HostNetwork *ret, char **ret_problem)
{
	const struct ifaddrmsg address_body = { .ifa_family = AF_INET };
	const struct rtmsg route_body = { .rtm_family = AF_INET };
	const struct nhmsg nexthop_body = { 0 };
	_cleanup_(message_list_done) MessageList addresses = { 0 }, routes = { 0 }, nexthops = { 0 };
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = netlink_open(NETLINK_ROUTE, 0, &fd);
	if (r >= 0)
		r = netlink_new(fd, &netlink);
	if (r >= 0)
		r = netlink_dump(netlink, RTM_GETADDR, &address_body, sizeof(address_body), &addresses);
	if (r >= 0)
		r = netlink_dump(netlink, RTM_GETROUTE, &route_body, sizeof(route_body), &routes);
	if (r >= 0) {
		r = netlink_dump(netlink, RTM_GETNEXTHOP, &nexthop_body, sizeof(nexthop_body), &nexthops);
		if (r == -EOPNOTSUPP) /* Linux before 5.3 */
			r = 0;
	}
	if (r >= 0)
		r = host_network_collect(&addresses, &routes, &nexthops, ret);
	if (r == -E2BIG || r == -EMSGSIZE)
		return refuse(ret_problem, r, "the host's network has too many addresses or routes to deny");
	if (r < 0)
		return refuse(ret_problem, r, "the host's network cannot be read: %s", strerror(-r));
	return 0;
}
