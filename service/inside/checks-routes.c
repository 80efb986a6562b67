/* SPDX-License-Identifier: MIT */

/*
 * 19: the network namespace as the kernel tells it from inside, held against the table of routes. The session
 * has read it back from outside, attribute by attribute, and what it found comes along; here it is looked at
 * once more, by what an agent could ask too.
 */

#include "service/inside/checks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/ip.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "service/inside/dump.h"
#include "service/inside/measure.h"

#define LOOPBACK 0x7f000001u

typedef struct Net {
	Battery *b;
	const Expectations *e;
	unsigned lo, jail, ledger;       /* indexes; 0: there is none */
	bool *denied, *explained, *open; /* by row of the table, as found */
	bool far_end_held, far_end_known, lo_address, own_address, reverse_path;
	unsigned rules;
} Net;

static void net_done(Net *net)
{
	free(net->denied);
	free(net->explained);
	free(net->open);
}

/* ---- devices ---- */

/* Kernels with tunnel drivers put some into every new namespace. They are down and stay it. */
static int each_link(void *userdata, const struct nlmsghdr *header)
{
	Net *net = userdata;
	const struct ifinfomsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[IFLA_IFNAME + 1];
	const char *name;
	unsigned index;

	if (header->nlmsg_type != RTM_NEWLINK ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	name = slots[IFLA_IFNAME] ? RTA_DATA(slots[IFLA_IFNAME]) : "";
	index = (unsigned)body->ifi_index;
	if (streq(name, "lo"))
		net->lo = index;
	else if (streq(name, ROUTES_JAIL_DEVICE))
		net->jail = index;
	else if (streq(name, ROUTES_LEDGER_DEVICE))
		net->ledger = index;
	else if (body->ifi_flags & IFF_UP)
		battery_fail(net->b, "the network device %s is there, which was not meant", name);
	else
		return 0;
	if (!(body->ifi_flags & IFF_UP) && index != net->ledger)
		battery_fail(net->b, "the network device %s is down", name);
	return 0;
}

/* ---- routes ---- */

typedef struct FoundRoute {
	uint32_t destination, gateway, device, metric, table;
	uint8_t length, type;
} FoundRoute;

static bool row_is(const ExpectedRoute *row, const FoundRoute *found)
{
	return row->address == found->destination && row->length == found->length;
}

/* Return: whether the table has it. */
static bool note_route(Net *net, const FoundRoute *found)
{
	const Expectations *e = net->e;
	bool known = false;

	for (size_t i = 0; i < e->n_routes; i++) {
		const ExpectedRoute *row = &e->routes[i];

		if (!row_is(row, found))
			continue;
		if (row->verdict == ROUTE_DENY && found->type == RTN_PROHIBIT &&
		    found->metric == ROUTES_DENY_METRIC && found->device == 0)
			known = net->denied[i] = true;
		if (row->verdict == ROUTE_DENY && found->type == RTN_UNICAST && found->metric == 0 &&
		    net->ledger != 0 && found->device == net->ledger)
			known = net->explained[i] = true;
		if (row->verdict != ROUTE_DENY && found->type == RTN_UNICAST && found->metric == 0 &&
		    found->gateway == ROUTES_FAR_END && found->device == net->jail)
			known = net->open[i] = true;
	}
	return known;
}

/* What the kernel makes of the addresses on lo. */
static bool is_kernels(const Net *net, const FoundRoute *found)
{
	if (found->table != RT_TABLE_LOCAL || found->device != net->lo)
		return false;
	return found->destination == ROUTES_SOURCE || (found->destination & 0xff000000u) == 0x7f000000u;
}

static int each_route(void *userdata, const struct nlmsghdr *header)
{
	Net *net = userdata;
	const struct rtmsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[RTA_TABLE + 1];
	FoundRoute found;

	if (header->nlmsg_type != RTM_NEWROUTE ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	if (body->rtm_flags & RTM_F_CLONED)
		return 0;
	found = (FoundRoute){ .destination = dump_address(slots[RTA_DST]),
			      .gateway = dump_address(slots[RTA_GATEWAY]),
			      .device = dump_u32(slots[RTA_OIF], 0),
			      .metric = dump_u32(slots[RTA_PRIORITY], 0),
			      .table = dump_u32(slots[RTA_TABLE], body->rtm_table),
			      .length = body->rtm_dst_len,
			      .type = body->rtm_type };
	if (found.table == RT_TABLE_MAIN && found.type == RTN_LOCAL && found.destination == ROUTES_FAR_END &&
	    found.length == 32 && found.device == net->jail) {
		net->far_end_held = true;
		return 0;
	}
	if (is_kernels(net, &found) || (found.table == RT_TABLE_MAIN && note_route(net, &found)))
		return 0;
	battery_fail(net->b, "the route to %s (type %u, table %u, metric %u) was not meant",
		     dump_text(found.destination, found.length).text, found.type, found.table, found.metric);
	return 0;
}

/* Has an opening the place of the ledger's route? As routes_is_explained(). */
static bool is_explained(const Expectations *e, size_t index)
{
	for (size_t i = 0; i < e->n_routes; i++)
		if (e->routes[i].verdict != ROUTE_DENY && e->routes[i].address == e->routes[index].address &&
		    e->routes[i].length == e->routes[index].length)
			return false;
	return e->routes[index].verdict == ROUTE_DENY;
}

static void judge_rows(Net *net)
{
	const Expectations *e = net->e;

	for (size_t i = 0; i < e->n_routes; i++) {
		const ExpectedRoute *row = &e->routes[i];
		const AddressText text = dump_text(row->address, row->length);

		if (row->verdict == ROUTE_DENY && !net->denied[i])
			battery_fail(net->b, "the route that denies %s (%s) is missing", text.text,
				     row->reason);
		else if (is_explained(e, i) && net->ledger != 0 && !net->explained[i])
			battery_fail(net->b, "the route that explains the denial of %s is missing",
				     text.text);
		else if (row->verdict == ROUTE_INTERNET && !net->open[i])
			battery_fail(net->b, "the default route is missing");
		else if (row->verdict != ROUTE_DENY && !net->open[i])
			battery_note(net->b, "the route to %s (%s) is missing: it cannot be reached",
				     text.text, row->reason);
	}
}

/* ---- addresses, neighbours, rules, settings ---- */

static int each_address(void *userdata, const struct nlmsghdr *header)
{
	Net *net = userdata;
	const struct ifaddrmsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[IFA_LOCAL + 1];
	const uint8_t *bytes;
	uint32_t address;

	if (header->nlmsg_type != RTM_NEWADDR ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	if (body->ifa_family == AF_INET6) {
		bytes = slots[IFA_ADDRESS] && RTA_PAYLOAD(slots[IFA_ADDRESS]) >= 16
				? RTA_DATA(slots[IFA_ADDRESS])
				: NULL;
		if (!bytes || (body->ifa_index != net->lo && (bytes[0] != 0xfe || (bytes[1] & 0xc0) != 0x80)))
			battery_fail(net->b, "there is an IPv6 address beyond link-local");
		return 0;
	}
	address = dump_address(slots[IFA_LOCAL] ?: slots[IFA_ADDRESS]);
	if (body->ifa_index == net->lo && address == LOOPBACK)
		net->lo_address = true;
	else if (body->ifa_index == net->lo && address == ROUTES_SOURCE)
		net->own_address = true;
	else
		battery_fail(net->b, "the address %s was not meant",
			     dump_text(address, body->ifa_prefixlen).text);
	return 0;
}

/* Whoever has a link address beside the far end can be sent to without a route. */
static int each_neighbour(void *userdata, const struct nlmsghdr *header)
{
	static const uint8_t far_end[6] = ROUTES_FAR_END_MAC;
	Net *net = userdata;
	const struct ndmsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[NDA_LLADDR + 1];
	uint32_t address;

	if (header->nlmsg_type != RTM_NEWNEIGH ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	if ((unsigned)body->ndm_ifindex != net->jail || body->ndm_family != AF_INET)
		return 0;
	address = dump_address(slots[NDA_DST]);
	if (address == ROUTES_FAR_END && (body->ndm_state & NUD_PERMANENT) && slots[NDA_LLADDR] &&
	    RTA_PAYLOAD(slots[NDA_LLADDR]) == sizeof(far_end) &&
	    memcmp(RTA_DATA(slots[NDA_LLADDR]), far_end, sizeof(far_end)) == 0)
		net->far_end_known = true;
	else if (body->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT))
		battery_fail(net->b,
			     "%s has a link address on " ROUTES_JAIL_DEVICE
			     ": frames beside the routes would reach it",
			     dump_text(address, 32).text);
	return 0;
}

static int each_rule(void *userdata, const struct nlmsghdr *header)
{
	Net *net = userdata;
	const struct fib_rule_hdr *body = NLMSG_DATA(header);
	const struct rtattr *slots[FRA_TABLE + 1];
	uint32_t priority, table;

	if (header->nlmsg_type != RTM_NEWRULE ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	priority = dump_u32(slots[FRA_PRIORITY], 0);
	table = dump_u32(slots[FRA_TABLE], body->table);
	if (body->family != AF_INET)
		return 0;
	net->rules++;
	/* ip-rule(8): local, main, default. */
	if (!((priority == 0 && table == RT_TABLE_LOCAL) || (priority == 32766 && table == RT_TABLE_MAIN) ||
	      (priority == 32767 && table == RT_TABLE_DEFAULT)))
		battery_fail(net->b, "the routing rule %u (table %u) was not meant", priority, table);
	return 0;
}

/* IPV4_DEVCONF_RP_FILTER (linux/ip.h) of the device: what comes from where no route leads is dropped. */
static int each_setting(void *userdata, const struct nlmsghdr *header)
{
	Net *net = userdata;
	const struct netconfmsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[NETCONFA_RP_FILTER + 1];

	if (header->nlmsg_type != RTM_NEWNETCONF ||
	    dump_attributes(header, NLMSG_ALIGN(sizeof(*body)), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	if (slots[NETCONFA_IFINDEX] && dump_u32(slots[NETCONFA_IFINDEX], 0) == net->jail)
		net->reverse_path = dump_u32(slots[NETCONFA_RP_FILTER], 0) == 1;
	return 0;
}

static void judge_parts(Net *net)
{
	const struct {
		bool there;
		const char *what;
	} parts[] = {
		{ net->lo != 0, "the loopback device is missing" },
		{ net->lo_address, "127.0.0.1 is missing" },
		{ net->own_address, "the jail's own address 192.0.0.2 is missing" },
		{ net->jail != 0, "the device " ROUTES_JAIL_DEVICE " is missing" },
		{ net->far_end_known, "the permanent neighbour entry of the far end is missing" },
		{ net->far_end_held, "the far end's address is not kept in the jail" },
		{ net->reverse_path, "the reverse path filter of " ROUTES_JAIL_DEVICE " is off" },
		{ net->rules == 3, "the routing rules are not the kernel's three" },
	};

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		if (!parts[i].there)
			battery_fail(net->b, "%s", parts[i].what);
}

/* ---- the whole ---- */

/* How the kernel refuses a destination, by a prohibit or of itself (0/8 is no host's). */
static bool is_no_route(int error)
{
	return error == -EACCES || error == -EINVAL || error == -ENETUNREACH || error == -EHOSTUNREACH;
}

/* How the kernel would send, for each row: not what the table says, but what comes of it. */
static void judge_lookups(Net *net)
{
	static const uint32_t public_addresses[] = { 0xcb007105, 0xc6336405, 0x08080808, 0x01010101 };
	uint32_t device = 0;
	uint8_t type = 0;
	int r;

	for (size_t i = 0; i < net->e->n_routes; i++) {
		const ExpectedRoute *row = &net->e->routes[i];
		uint32_t address = row->address + (row->length < 31);

		if (row->verdict != ROUTE_DENY || expectations_verdict(net->e, address) != ROUTE_DENY)
			continue;
		r = dump_lookup(address, &type, &device);
		if (r == 0 && device == net->jail && type != RTN_LOCAL)
			battery_fail(net->b, "a packet to %s would leave by " ROUTES_JAIL_DEVICE,
				     dump_text(address, 32).text);
		else if (r < 0 && !is_no_route(r))
			battery_fail(net->b, "where a packet to %s would go is not known: %s",
				     dump_text(address, 32).text, strerror(-r));
	}
	for (size_t i = 0; i < ELEMENTSOF(public_addresses); i++) {
		if (expectations_verdict(net->e, public_addresses[i]) != ROUTE_INTERNET)
			continue;
		r = dump_lookup(public_addresses[i], &type, &device);
		if (r < 0 || device != net->jail)
			battery_fail(net->b,
				     "a packet to a public address would not leave by " ROUTES_JAIL_DEVICE
				     ": %s",
				     r < 0 ? strerror(-r) : "another device");
		return;
	}
}

static void judge_namespace(Net *net)
{
	static const struct {
		uint16_t type;
		uint8_t family;
		int (*each)(void *userdata, const struct nlmsghdr *header);
		const char *what;
	} dumps[] = {
		{ RTM_GETLINK, AF_UNSPEC, each_link, "devices" },
		{ RTM_GETADDR, AF_UNSPEC, each_address, "addresses" },
		{ RTM_GETNEIGH, AF_UNSPEC, each_neighbour, "neighbours" },
		{ RTM_GETRULE, AF_INET, each_rule, "rules" },
		{ RTM_GETNETCONF, AF_INET, each_setting, "settings" },
		{ RTM_GETROUTE, AF_INET, each_route, "routes" },
	};

	for (size_t i = 0; i < ELEMENTSOF(dumps); i++) {
		int r = dump_each(dumps[i].type, dumps[i].family, dumps[i].each, net);

		if (r < 0)
			battery_fail(net->b, "the %s cannot be read: %s", dumps[i].what, strerror(-r));
	}
	judge_parts(net);
	judge_rows(net);
	judge_lookups(net);
}

/*
 * The owner of the namespace has to be above this process's user namespace, out of its sight (ioctl_ns(2),
 * EPERM): who becomes root of a namespace in the jail must not be it here.
 */
static void judge_owner(Net *net)
{
	_cleanup_close_ int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), owner_fd = FD_NONE;

	if (fd < 0) {
		battery_fail(net->b, "/proc/self/ns/net cannot be opened: %s", strerror(errno));
		return;
	}
	owner_fd = ioctl(fd, NS_GET_USERNS);
	if (owner_fd >= 0)
		battery_fail(net->b,
			     "the network namespace is owned from within the jail: its routes could be "
			     "changed");
	else if (errno != EPERM)
		battery_fail(net->b, "whose the network namespace is cannot be told: %s", strerror(errno));
	if (owner_fd < 0)
		owner_fd = FD_NONE;
}

void check_routes(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_(net_done) Net net = { .b = b, .e = e };

	if (!e) {
		battery_note(b, "which routes were meant is not known here");
		return;
	}
	if (!e->jailed) {
		battery_note(b, "egress-jail is off: the network is the machine's");
		return;
	}
	check_namespace(b, NAMESPACE_NET);
	if (battery_failures(b) > 0)
		return;
	if (e->n_routes == 0)
		battery_fail(b, "which routes were meant was not told");
	if (e->routes_problem)
		battery_fail(b, "the session reads back: %s", e->routes_problem);
	net.denied = calloc(e->n_routes + 1, sizeof(bool));
	net.explained = calloc(e->n_routes + 1, sizeof(bool));
	net.open = calloc(e->n_routes + 1, sizeof(bool));
	if (!net.denied || !net.explained || !net.open) {
		battery_fail(b, "no memory");
		return;
	}
	judge_namespace(&net);
	judge_owner(&net);
	battery_pass(b, "%zu rows, each as it was meant", e->n_routes);
}
