/* SPDX-License-Identifier: MIT */

/*
 * Changes of the jail's network: routes, addresses, neighbours, rules, devices. The kernel asks for the right
 * before it reads a request (rtnetlink(7)), so requests that mean nothing show it without a change.
 */

#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/route.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-socket.h"
#include "service/inside/probe-tables.h"

#define NO_PREFIX 200 /* longer than any address */

typedef struct Request {
	const char *name;
	uint16_t type;
	size_t size;
	bool prefix; /* its second byte is a prefix length: one that cannot be */
} Request;

static const int refusals[] = { EPERM, EACCES, EOPNOTSUPP, EAFNOSUPPORT, 0 };

static void send_each(Probing *p, const Request *requests, size_t n, const char *how)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < ELEMENTSOF(families); j++) {
			uint8_t payload[64] = { families[j], requests[i].prefix ? NO_PREFIX : 0 };
			int r = probe_netlink(NETLINK_ROUTE, requests[i].type, 0, payload, requests[i].size);

			errno = r < 0 ? -r : 0;
			probing_rights(p, r < 0 ? -1 : 0, refusals, "%s%s of IPv%c", how, requests[i].name,
				       j == 0 ? '4' : '6');
		}
}

static const Request routes[] = {
	{ "a new route", RTM_NEWROUTE, sizeof(struct rtmsg), true },
	{ "removing a route", RTM_DELROUTE, sizeof(struct rtmsg), true },
	{ "a new rule", RTM_NEWRULE, sizeof(struct fib_rule_hdr), true },
	{ "removing a rule", RTM_DELRULE, sizeof(struct fib_rule_hdr), true },
	{ "a new nexthop", RTM_NEWNEXTHOP, sizeof(struct nhmsg), false },
	{ "removing a nexthop", RTM_DELNEXTHOP, sizeof(struct nhmsg), false },
};

static const Request addresses[] = {
	{ "a new address", RTM_NEWADDR, sizeof(struct ifaddrmsg), true },
	{ "removing an address", RTM_DELADDR, sizeof(struct ifaddrmsg), true },
	{ "a new neighbour", RTM_NEWNEIGH, sizeof(struct ndmsg), false },
	{ "removing a neighbour", RTM_DELNEIGH, sizeof(struct ndmsg), false },
	{ "settings of neighbours", RTM_SETNEIGHTBL, sizeof(struct ndtmsg), false },
};

static const Request links[] = {
	{ "changing a device", RTM_SETLINK, sizeof(struct ifinfomsg), false },
	{ "a new device", RTM_NEWLINK, sizeof(struct ifinfomsg), false },
	{ "removing a device", RTM_DELLINK, sizeof(struct ifinfomsg), false },
	{ "a new queue", RTM_NEWQDISC, sizeof(struct tcmsg), false },
	{ "a new packet filter", RTM_NEWTFILTER, sizeof(struct tcmsg), false },
};

typedef struct RequestList {
	const Request *requests;
	size_t n;
} RequestList;

/* Root of a user namespace owns nothing in a network that was there before it (user_namespaces(7)). */
static void send_in_namespace(Probing *p, void *userdata)
{
	const RequestList *list = userdata;

	if (probing_unshare(p, 0, PROBE_UNMAPPED))
		send_each(p, list->requests, list->n, "as root of a namespace: ");
}

static void attempt_list(Probing *p, const Request *requests, size_t n)
{
	send_each(p, requests, n, "");
	probing_apart(p, send_in_namespace, &(RequestList){ requests, n });
}

static void attempt_routes(Probing *p)
{
	attempt_list(p, routes, ELEMENTSOF(routes));
}

static void attempt_addresses(Probing *p)
{
	attempt_list(p, addresses, ELEMENTSOF(addresses));
}

static void attempt_links(Probing *p)
{
	attempt_list(p, links, ELEMENTSOF(links));
}

static void call_each(Probing *p, const char *how)
{
	static const struct {
		const char *name;
		unsigned long request;
	} calls[] = {
		{ "SIOCSIFADDR", SIOCSIFADDR },     { "SIOCSIFNETMASK", SIOCSIFNETMASK },
		{ "SIOCSIFFLAGS", SIOCSIFFLAGS },   { "SIOCSIFMTU", SIOCSIFMTU },
		{ "SIOCSIFHWADDR", SIOCSIFHWADDR }, { "SIOCSIFNAME", SIOCSIFNAME },
		{ "SIOCSIFTXQLEN", SIOCSIFTXQLEN }, { "SIOCADDMULTI", SIOCADDMULTI },
	};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* An entry whose addresses are of no family. */
	struct rtentry route = { .rt_flags = RTF_UP };

	if (fd < 0) {
		probing_unclear(p, "%sno socket: %s", how, probing_error(errno));
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
		struct ifreq request = { .ifr_name = "no-such-device" };

		probing_rights(p, ioctl(fd, calls[i].request, &request), refusals, "%s%s", how,
			       calls[i].name);
	}
	probing_rights(p, ioctl(fd, SIOCADDRT, &route), refusals, "%sSIOCADDRT", how);
	probing_rights(p, ioctl(fd, SIOCDELRT, &route), refusals, "%sSIOCDELRT", how);
}

static void call_in_namespace(Probing *p, void *userdata)
{
	if (probing_unshare(p, 0, PROBE_UNMAPPED))
		call_each(p, "as root of a namespace: ");
}

static void attempt_calls(Probing *p)
{
	call_each(p, "");
	probing_apart(p, call_in_namespace, NULL);
}

static size_t put(uint8_t *to, uint16_t type, const void *data, size_t size)
{
	struct rtattr header = { .rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = type };

	memcpy(to, &header, sizeof(header));
	memcpy(to + RTA_LENGTH(0), data, size);
	return RTA_ALIGN(RTA_LENGTH(size));
}

/*
 * A device of a network of one's own, moved into the jail's. The kernel asks for the right over both networks
 * before it looks at the device, and the loopback device, which every network has, cannot be moved at all
 * (EINVAL): nothing has to be made for it, so no module for another kind of device is loaded.
 */
static void push_device(Probing *p, void *userdata)
{
	const bool *plain = userdata;
	_cleanup_close_ int jail_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct ifinfomsg header = { .ifi_family = AF_UNSPEC, .ifi_index = 1 };
	uint8_t payload[64] = { 0 };
	size_t n = sizeof(header);
	int r;

	if (jail_fd < 0) {
		probing_unclear(p, "the jail's network: %s", probing_error(errno));
		return;
	}
	if (*plain) {
		if (probing_result(p, unshare(CLONE_NEWNET),
				   "a network of one's own without a user namespace") < 0)
			return;
	} else if (!probing_unshare(p, CLONE_NEWNET, PROBE_UNMAPPED)) {
		return;
	}
	memcpy(payload, &header, sizeof(header));
	n += put(payload + n, IFLA_NET_NS_FD, &jail_fd, sizeof(jail_fd));
	r = probe_netlink(NETLINK_ROUTE, RTM_NEWLINK, 0, payload, n);
	errno = r < 0 ? -r : 0;
	probing_rights(p, r < 0 ? -1 : 0, refusals, "a device into the jail's network");
	probing_result(p, setns(jail_fd, CLONE_NEWNET), "going back with rights");
}

static void attempt_push(Probing *p)
{
	bool plain[] = { true, false };

	probing_apart(p, push_device, &plain[0]);
	probing_apart(p, push_device, &plain[1]);
}

static void attempt_tun(Probing *p)
{
	static const char *const names[] = { "jail0", "deny0", "probe0" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_close_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
		struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };

		if (fd < 0) {
			probing_refused(p, errno, "/dev/net/tun");
			return;
		}
		if (i == 1)
			request.ifr_flags = IFF_TUN | IFF_NO_PI;
		memcpy(request.ifr_name, names[i], strlen(names[i]));
		probing_rights(p, ioctl(fd, TUNSETIFF, &request), (const int[]){ EPERM, EACCES, 0 },
			       "the other end of %s", names[i]);
	}
}

const Probe probes_links[] = {
	{ "p77", "routes and rules stay", "a way to what is denied", attempt_routes },
	{ "p78", "addresses and neighbours stay", "another way to the wire, or another sender",
	  attempt_addresses },
	{ "p79", "devices stay", "the filter off the wire, or a wire of one's own", attempt_links },
	{ "p80", "the older calls change nothing of the network", "the same", attempt_calls },
	{ "p81", "no device comes from a network of the agent's own", "a device that no denial knows",
	  attempt_push },
	{ "p82", "the other end of the wire is out of reach", "all packets, and the ledger's", attempt_tun },
};
const size_t probes_links_count = ELEMENTSOF(probes_links);
