/* SPDX-License-Identifier: MIT */
#include "service/net/ledger-device.h"

#include "service/net/tap.h"

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>

#define TUN_TYPE_TUN 1 /* IFF_TUN of linux/if_tun.h, as IFLA_TUN_TYPE has it */
/* IFF_ flags that come and go; IFF_LOWER_UP is not in every <net/if.h>. */
#define FLAGS_OF_WIRE ((uint32_t)IFF_RUNNING | 0x10000u)

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

bool ledger_has_row(const Denial *denial, const RouteTable *routes, size_t index)
{
	return denial->ledger_index != 0 && routes_is_explained(routes, index);
}

Route ledger_route_of_row(const RouteRow *row, uint32_t ledger_index)
{
	return (Route){
		.family = AF_INET,
		.type = RTN_UNICAST,
		.scope = RT_SCOPE_LINK,
		.protocol = RTPROT_STATIC,
		.table = RT_TABLE_MAIN,
		.destination = row->address,
		.length = row->length,
		.device = ledger_index,
		.source = ROUTES_SOURCE,
		.has_source = true,
	};
}

static int bring_up(const Denial *denial, char **ret_problem)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = link_change_message(denial->ledger_index, IFF_UP);
	_cleanup_free_ char *text = NULL;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_put_u32(message, IFLA_MTU, LEDGER_MTU);
	if (r >= 0)
		r = netlink_put_u32(message, IFLA_TXQLEN, LEDGER_QUEUE);
	if (r >= 0)
		r = netlink_program_one(denial->netlink, message, &text);
	if (r < 0)
		return refuse(ret_problem, r, "cannot bring " ROUTES_LEDGER_DEVICE " up: %s",
			      text ?: strerror(-r));
	return 0;
}

static int lead_rows(const Denial *denial, struct nl_msg **messages, NetlinkAnswer *answers,
		     char **ret_problem)
{
	const RouteTable *routes = denial->routes;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < routes->n_rows; i++) {
		Route route;

		if (!ledger_has_row(denial, routes, i))
			continue;
		route = ledger_route_of_row(&routes->rows[i], (uint32_t)denial->ledger_index);
		messages[n] = route_message(RTM_NEWROUTE, &route);
		if (!messages[n++])
			return -ENOMEM;
	}
	r = netlink_program(denial->netlink, messages, n, answers);
	if (r < 0)
		return refuse(ret_problem, r, "the kernel does not take routes: %s", strerror(-r));
	for (size_t i = 0; i < n; i++)
		if (answers[i].error < 0)
			return refuse(ret_problem, answers[i].error,
				      "cannot add a route to " ROUTES_LEDGER_DEVICE ": %s",
				      answers[i].text ?: strerror(-answers[i].error));
	return 0;
}

int ledger_step(Denial *denial, char **ret_problem)
{
	size_t n = denial->routes->n_rows;
	struct nl_msg **messages;
	NetlinkAnswer *answers;
	int r;

	if (denial->ledger_index == 0)
		return 0;
	(void)link_without_generated_address(denial, denial->ledger_index);
	r = bring_up(denial, ret_problem);
	if (r < 0)
		return r;
	messages = calloc(n + 1, sizeof(*messages));
	answers = calloc(n + 1, sizeof(*answers));
	r = messages && answers ? lead_rows(denial, messages, answers, ret_problem) : -ENOMEM;
	for (size_t i = 0; messages && i < n; i++)
		nl_msg_freep(&messages[i]);
	free(messages);
	netlink_answers_free(answers, n);
	return r;
}

int ledger_device_check(const Link *link, char **ret_problem)
{
	const char *what = NULL;

	if (link->type != ARPHRD_NONE || !streq(link->kind, "tun") || link->tun_type != TUN_TYPE_TUN)
		what = "it is no tun";
	else if (link->tun_persist != 0)
		what = "it is persistent, so that it would stay without a reader";
	else if (link->tun_pi != 0 || link->tun_vnet_header != 0 || link->tun_multi_queue != 0)
		what = "its packets have extra headers or several queues";
	else if ((link->flags & ~FLAGS_OF_WIRE) != (IFF_UP | IFF_POINTOPOINT | IFF_NOARP | IFF_MULTICAST))
		what = "its flags are not those of a tun that is up";
	else if (link->mtu != LEDGER_MTU)
		what = "its MTU was changed";
	if (what)
		return refuse(ret_problem, -EREMCHG, "network device %s: %s", link->name, what);
	return 0;
}

int ledger_device_dropped(const Denial *denial, uint64_t *ret)
{
	struct ifinfomsg body = { .ifi_family = AF_UNSPEC, .ifi_index = denial->ledger_index };
	_cleanup_(nl_msg_freep) struct nl_msg *message = netlink_message(RTM_GETLINK, 0, &body, sizeof(body));
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct rtattr *slots[IFLA_STATS64 + 1];
	struct rtnl_link_stats64 stats = { 0 };
	const struct nlmsghdr *header;
	const void *attributes;
	size_t size, offset = 0;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_ask(denial->netlink, message, &list);
	if (r < 0)
		return r;
	header = message_list_next(&list, &offset);
	if (!header || !message_body(header, sizeof(body), &attributes, &size) ||
	    attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0 || !slots[IFLA_STATS64])
		return -EBADMSG;
	/* Kernels append to it. */
	memcpy(&stats, RTA_DATA(slots[IFLA_STATS64]),
	       MIN_OF(attribute_size(slots[IFLA_STATS64]), sizeof(stats)));
	*ret = stats.tx_dropped;
	return 0;
}
