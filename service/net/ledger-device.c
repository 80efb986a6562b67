/* SPDX-License-Identifier: MIT */
#include "service/net/ledger-device.h"

#include "service/net/tap.h"

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <netlink/route/link.h>
#include <sys/ioctl.h>

int ledger_device_open(int *ret_fd, char **ret_problem)
{
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = tun_make(ROUTES_LEDGER_DEVICE, IFF_TUN, &fd, ret_problem);
	if (r < 0)
		return r;
	/* Packets as they would be on a wire, none that a device still has to cut or to sum up. */
	if (ioctl(fd, TUNSETOFFLOAD, 0) < 0)
		return refuse(ret_problem, -errno, "cannot set up the tun " ROUTES_LEDGER_DEVICE ": %s",
			      strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int ledger_device_dropped(const Denial *denial, uint64_t *ret)
{
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct rtattr *slots[IFLA_STATS64 + 1];
	struct rtnl_link_stats64 stats = { 0 };
	struct nl_msg *message = NULL;
	const struct nlmsghdr *header;
	const void *attributes;
	size_t size, offset = 0;
	int r = rtnl_link_build_get_request((int)denial->devices.ledger, NULL, &message);

	r = netlink_ask(denial->netlink, netlink_built(r, message), &list);
	if (r < 0)
		return r;
	header = message_list_next(&list, &offset);
	if (!header || !message_body(header, sizeof(struct ifinfomsg), &attributes, &size) ||
	    attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0 || !slots[IFLA_STATS64])
		return -EBADMSG;
	/* Kernels append to it. */
	memcpy(&stats, RTA_DATA(slots[IFLA_STATS64]),
	       MIN_OF(attribute_size(slots[IFLA_STATS64]), sizeof(stats)));
	*ret = stats.tx_dropped;
	return 0;
}
