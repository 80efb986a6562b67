/* SPDX-License-Identifier: MIT */
#include "service/net/host.h"

#include <arpa/inet.h>
#include <linux/nexthop.h>
#include <sys/socket.h>

/* A gateway that is dead or has no carrier is not used (linkdown: see ignore_routes_with_linkdown). */
#define FLAGS_UNUSABLE ((uint32_t)(RTNH_F_DEAD | RTNH_F_LINKDOWN))

/* Half of all addresses: routes of one device that cover as much stand for a default route (0/1 and 128/1).
 */
#define MOST_ADDRESSES ((uint64_t)1 << 31)
#define HALVES_LENGTH_MAX 8u

typedef struct Numbers {
	uint32_t *values;
	size_t n, allocated;
} Numbers;

typedef struct Prefixes {
	HostPrefix *values;
	size_t n, allocated;
} Prefixes;

/* A route without gateway: what lies behind it is connected, or is everything. */
typedef struct DeviceRoute {
	HostPrefix prefix;
	uint32_t device, table;
	bool kernels; /* derived from an address */
} DeviceRoute;

typedef struct Collection {
	const MessageList *nexthops;
	Numbers addresses, gateways;
	Prefixes subnets;
	Prefixes halves; /* usable routes of the main tables, for what they cover together */
	DeviceRoute *devices;
	size_t n_devices, allocated_devices;
	bool uplink;
} Collection;

static void collection_done(Collection *c)
{
	free(c->addresses.values);
	free(c->gateways.values);
	free(c->subnets.values);
	free(c->halves.values);
	free(c->devices);
}

/* Room for one more. Return: 0; -E2BIG; -ENOMEM. */
static int grow(void *array, size_t element, size_t n, size_t *allocated)
{
	void **p = array;
	size_t wanted = *allocated ? *allocated * 2 : 16;
	void *grown;

	if (n < *allocated)
		return 0;
	if (n >= HOST_NETWORK_ENTRIES_MAX)
		return -E2BIG;
	grown = reallocarray(*p, wanted, element);
	if (!grown)
		return -ENOMEM;
	*p = grown;
	*allocated = wanted;
	return 0;
}

static int prefixes_add(Prefixes *prefixes, uint32_t address, uint8_t length)
{
	uint32_t mask = length == 0 ? 0 : UINT32_MAX << (32 - length);
	int r = grow(&prefixes->values, sizeof(*prefixes->values), prefixes->n, &prefixes->allocated);

	if (r < 0)
		return r;
	prefixes->values[prefixes->n++] = (HostPrefix){ address & mask, length };
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_prefixes(const void *a, const void *b)
{
	const HostPrefix *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (int)x->length - (int)y->length;
}

static void numbers_unique(Numbers *numbers)
{
	size_t n = 0;

	if (numbers->n > 0)
		qsort(numbers->values, numbers->n, sizeof(*numbers->values), compare_numbers);
	for (size_t i = 0; i < numbers->n; i++)
		if (n == 0 || numbers->values[n - 1] != numbers->values[i])
			numbers->values[n++] = numbers->values[i];
	numbers->n = n;
}

static int numbers_add(Numbers *numbers, uint32_t value)
{
	int r;

	/* Thousands of routes name the same few gateways. */
	if (numbers->n == numbers->allocated)
		numbers_unique(numbers);
	r = grow(&numbers->values, sizeof(*numbers->values), numbers->n, &numbers->allocated);
	if (r < 0)
		return r;
	numbers->values[numbers->n++] = value;
	return 0;
}

static void prefixes_unique(Prefixes *prefixes)
{
	size_t n = 0;

	if (prefixes->n > 0)
		qsort(prefixes->values, prefixes->n, sizeof(*prefixes->values), compare_prefixes);
	for (size_t i = 0; i < prefixes->n; i++)
		if (n == 0 || compare_prefixes(&prefixes->values[n - 1], &prefixes->values[i]) != 0)
			prefixes->values[n++] = prefixes->values[i];
	prefixes->n = n;
}

/* 127/8 is denied always, and is no network of the host's. */
static bool is_loopback(uint32_t address)
{
	return address >> 24 == 127;
}

static int collect_address(Collection *c, const struct nlmsghdr *header)
{
	const struct rtattr *slots[IFA_MAX + 1];
	const struct ifaddrmsg *body;
	uint32_t local, peer;
	const void *attributes;
	size_t size;
	int r;

	body = message_body(header, sizeof(*body), &attributes, &size);
	if (header->nlmsg_type != RTM_NEWADDR || !body ||
	    attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) < 0)
		return -EBADMSG;
	if (body->ifa_family != AF_INET)
		return 0;
	if (body->ifa_prefixlen > 32 || (!slots[IFA_LOCAL] && !slots[IFA_ADDRESS]) ||
	    attribute_ipv4(slots[IFA_LOCAL] ?: slots[IFA_ADDRESS], &local) < 0 ||
	    attribute_ipv4(slots[IFA_ADDRESS] ?: slots[IFA_LOCAL], &peer) < 0)
		return -EBADMSG;
	if (is_loopback(local))
		return 0;
	r = numbers_add(&c->addresses, local);
	/* Of a point-to-point address the other end is what is connected. */
	if (r >= 0 && (body->ifa_prefixlen < 32 || peer != local))
		r = prefixes_add(&c->subnets, peer, body->ifa_prefixlen);
	return r;
}

/*
 * A route as the kernel writes it. Not by rtnl_route_parse() of libnl-route, which refuses a route with an
 * encapsulation that it does not know: one such route of the host would then keep every session from starting.
 */
typedef struct Route {
	const struct rtmsg *body;
	const struct rtattr *slots[RTA_MAX + 1];
	uint32_t table, destination, nexthop_id;
} Route;

static int route_read(const struct nlmsghdr *header, Route *ret)
{
	const void *attributes;
	size_t size;

	*ret = (Route){ .body = message_body(header, sizeof(struct rtmsg), &attributes, &size) };
	if (header->nlmsg_type != RTM_NEWROUTE || !ret->body ||
	    attributes_sort(attributes, size, ret->slots, ELEMENTSOF(ret->slots), NULL) < 0)
		return -EBADMSG;
	ret->table = ret->body->rtm_table;
	if (ret->body->rtm_family == AF_INET &&
	    (ret->body->rtm_dst_len > 32 || (ret->body->rtm_dst_len > 0 && !ret->slots[RTA_DST]) ||
	     attribute_ipv4(ret->slots[RTA_DST], &ret->destination) < 0))
		return -EBADMSG;
	return attribute_u32(ret->slots[RTA_TABLE], &ret->table)
		       ?: attribute_u32(ret->slots[RTA_NH_ID], &ret->nexthop_id);
}

/* ---- nexthop objects (ip-nexthop(8)), which routes may name instead of a gateway ---- */

typedef struct Nexthop {
	uint32_t id, device, flags; /* RTNH_F_ */
	bool has_gateway;           /* of IPv4 */
	uint32_t gateway;           /* host order */
	bool blackhole;
	const struct nexthop_grp *group; /* in the message, unaligned at worst to 4 bytes */
	size_t n_group;
} Nexthop;

static int nexthop_decode(const struct nlmsghdr *header, Nexthop *ret)
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

static int nexthop_find(const MessageList *list, uint32_t id, Nexthop *ret)
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

/* ---- routes ---- */

typedef struct Hops {
	bool gateway;    /* one at least goes by a gateway */
	bool usable;     /* one at least */
	uint32_t device; /* of one without a gateway, or 0 */
} Hops;

static int note_gateway(Collection *c, Hops *hops, uint32_t gateway)
{
	hops->gateway = true;
	return gateway != 0 ? numbers_add(&c->gateways, gateway) : 0;
}

/* RTA_VIA: the gateway's family, then its address. One of IPv6 is nobody's IPv4 address. */
static int note_via(Collection *c, Hops *hops, const struct rtattr *attribute)
{
	size_t size = attribute_size(attribute);
	uint16_t family;
	uint32_t gateway;

	if (size < sizeof(family))
		return -EBADMSG;
	memcpy(&family, RTA_DATA(attribute), sizeof(family));
	hops->gateway = true;
	if (family != AF_INET)
		return 0;
	if (size != sizeof(family) + sizeof(gateway))
		return -EBADMSG;
	memcpy(&gateway, (uint8_t *)RTA_DATA(attribute) + sizeof(family), sizeof(gateway));
	return note_gateway(c, hops, ntohl(gateway));
}

/* One next hop, of a route that has no other or of several. */
static int note_hop(Collection *c, Hops *hops, const struct rtattr *const *slots, uint32_t flags,
		    uint32_t device)
{
	uint32_t gateway = 0;

	if (!(flags & FLAGS_UNUSABLE))
		hops->usable = true;
	if (slots[RTA_GATEWAY])
		return attribute_ipv4(slots[RTA_GATEWAY], &gateway) ?: note_gateway(c, hops, gateway);
	if (slots[RTA_VIA])
		return note_via(c, hops, slots[RTA_VIA]);
	hops->device = device;
	return 0;
}

static int note_multipath(Collection *c, Hops *hops, const struct rtattr *attribute)
{
	const uint8_t *bytes = RTA_DATA(attribute);
	size_t left = attribute_size(attribute);

	while (left > 0) {
		const struct rtattr *slots[RTA_MAX + 1];
		const struct rtnexthop *hop = (const void *)bytes;
		size_t step;
		int r;

		if (left < sizeof(*hop) || hop->rtnh_len < sizeof(*hop) || hop->rtnh_len > left)
			return -EBADMSG;
		r = attributes_sort(bytes + sizeof(*hop), hop->rtnh_len - sizeof(*hop), slots,
				    ELEMENTSOF(slots), NULL);
		if (r >= 0)
			r = note_hop(c, hops, slots, hop->rtnh_flags, (uint32_t)hop->rtnh_ifindex);
		if (r < 0)
			return r;
		step = MIN_OF(RTA_ALIGN((size_t)hop->rtnh_len), left);
		bytes += step;
		left -= step;
	}
	return 0;
}

static int note_one_object(Collection *c, Hops *hops, const Nexthop *nexthop)
{
	if (!(nexthop->flags & FLAGS_UNUSABLE) && !nexthop->blackhole)
		hops->usable = true;
	if (nexthop->has_gateway)
		return note_gateway(c, hops, nexthop->gateway);
	if (!nexthop->blackhole)
		hops->device = nexthop->device;
	return 0;
}

static int note_object(Collection *c, Hops *hops, uint32_t id)
{
	Nexthop nexthop, member;
	int r = nexthop_find(c->nexthops, id, &nexthop);

	/* Gone between the two dumps: the change wakes whoever watches the host. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (nexthop.n_group == 0)
		return note_one_object(c, hops, &nexthop);

	/* A group holds no groups. */
	for (size_t i = 0; i < nexthop.n_group; i++) {
		struct nexthop_grp entry;

		memcpy(&entry, &nexthop.group[i], sizeof(entry));
		r = nexthop_find(c->nexthops, entry.id, &member);
		if (r >= 0 && member.n_group == 0)
			r = note_one_object(c, hops, &member);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

static int note_hops(Collection *c, const Route *route, Hops *hops)
{
	uint32_t device = 0;

	/* With an object, the flags and gateways beside it are the object's, repeated for older programs. */
	if (route->nexthop_id != 0)
		return note_object(c, hops, route->nexthop_id);
	if (route->slots[RTA_MULTIPATH])
		return note_multipath(c, hops, route->slots[RTA_MULTIPATH]);
	return attribute_u32(route->slots[RTA_OIF], &device)
		       ?: note_hop(c, hops, route->slots, route->body->rtm_flags, device);
}

static int note_device_route(Collection *c, const Route *route, uint32_t device)
{
	int r = grow(&c->devices, sizeof(*c->devices), c->n_devices, &c->allocated_devices);

	if (r < 0)
		return r;
	c->devices[c->n_devices++] = (DeviceRoute){
		.prefix = { route->destination, route->body->rtm_dst_len },
		.device = device,
		.table = route->table,
		.kernels = route->body->rtm_protocol == RTPROT_KERNEL,
	};
	return 0;
}

static int collect_route(Collection *c, const struct nlmsghdr *header)
{
	bool main_table;
	Hops hops = { 0 };
	uint8_t length;
	Route route;
	int r = route_read(header, &route);

	if (r < 0 || route.body->rtm_family != AF_INET || (route.body->rtm_flags & RTM_F_CLONED))
		return r;
	length = route.body->rtm_dst_len;
	/* "Any address of this range is mine" is a way to own addresses too; of everything, it serves a
	 * proxy. */
	if (route.body->rtm_type == RTN_LOCAL && length > 0 && !is_loopback(route.destination))
		return length == 32 ? numbers_add(&c->addresses, route.destination)
				    : prefixes_add(&c->subnets, route.destination, length);
	if (route.body->rtm_type != RTN_UNICAST)
		return 0;

	r = note_hops(c, &route, &hops);
	if (r < 0)
		return r;
	main_table = route.table == RT_TABLE_MAIN || route.table == RT_TABLE_DEFAULT;
	if (length == 0) {
		if (main_table && hops.usable)
			c->uplink = true;
		return 0;
	}
	if (main_table && hops.usable && length <= HALVES_LENGTH_MAX) {
		r = prefixes_add(&c->halves, route.destination, length);
		if (r < 0)
			return r;
	}
	if (hops.device != 0 && !is_loopback(route.destination))
		r = note_device_route(c, &route, hops.device);
	return r;
}

static uint64_t prefix_size(const HostPrefix *prefix)
{
	return (uint64_t)1 << (32 - prefix->length);
}

/* How much the prefixes cover together; sorted, so a prefix inside the one before it adds nothing. */
static uint64_t covered(const Prefixes *prefixes)
{
	uint64_t total = 0, end = 0;

	for (size_t i = 0; i < prefixes->n; i++) {
		uint64_t first = prefixes->values[i].address, size = prefix_size(&prefixes->values[i]);

		if (first + size <= end)
			continue;
		total += first + size - MAX_OF(first, end);
		end = first + size;
	}
	return total;
}

static int compare_devices(const void *a, const void *b)
{
	const DeviceRoute *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return 0;
}

/*
 * Routes by a device are connected networks, unless together they lead most of the internet into it: then the
 * device is a tunnel that stands for the default route, and denying them would deny everything.
 */
static int connect_devices(Collection *c)
{
	if (c->n_devices > 0)
		qsort(c->devices, c->n_devices, sizeof(*c->devices), compare_devices);

	for (size_t i = 0, next; i < c->n_devices; i = next) {
		Prefixes prefixes = { 0 };
		bool tunnel;
		int r = 0;

		for (next = i;
		     r >= 0 && next < c->n_devices && compare_devices(&c->devices[i], &c->devices[next]) == 0;
		     next++)
			if (!c->devices[next].kernels)
				r = prefixes_add(&prefixes, c->devices[next].prefix.address,
						 c->devices[next].prefix.length);
		prefixes_unique(&prefixes);
		tunnel = covered(&prefixes) >= MOST_ADDRESSES;
		free(prefixes.values);

		for (size_t k = i; r >= 0 && k < next; k++)
			if (!tunnel || c->devices[k].kernels)
				r = prefixes_add(&c->subnets, c->devices[k].prefix.address,
						 c->devices[k].prefix.length);
		if (r < 0)
			return r;
	}
	return 0;
}

int host_network_collect(const MessageList *addresses, const MessageList *routes, const MessageList *nexthops,
			 HostNetwork *ret)
{
	_cleanup_(collection_done) Collection c = { .nexthops = nexthops };
	const struct nlmsghdr *header;
	size_t offset = 0;
	int r;

	while ((header = message_list_next(addresses, &offset))) {
		r = collect_address(&c, header);
		if (r < 0)
			return r;
	}
	offset = 0;
	while ((header = message_list_next(routes, &offset))) {
		r = collect_route(&c, header);
		if (r < 0)
			return r;
	}
	r = connect_devices(&c);
	if (r < 0)
		return r;

	numbers_unique(&c.addresses);
	numbers_unique(&c.gateways);
	prefixes_unique(&c.subnets);
	prefixes_unique(&c.halves);

	*ret = (HostNetwork){
		.subnets = TAKE_PTR(c.subnets.values),
		.n_subnets = c.subnets.n,
		.addresses = TAKE_PTR(c.addresses.values),
		.n_addresses = c.addresses.n,
		.gateways = TAKE_PTR(c.gateways.values),
		.n_gateways = c.gateways.n,
		.uplink = c.uplink || covered(&c.halves) >= MOST_ADDRESSES,
	};
	return 0;
}

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
		r = netlink_new(fd, NETLINK_ROUTE, &netlink);
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

/* ---- changes ---- */

/* Bounded: the loop comes back for the rest. */
#define HOST_WATCH_READS_MAX 256u

int host_watch_open(int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE };

	const int nexthops = RTNLGRP_NEXTHOP;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* A kernel without nexthop objects has no such group, and nothing to watch. */
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &nexthops, sizeof(nexthops)) < 0 &&
	    errno != EINVAL)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void host_watch_drain(int fd)
{
	uint8_t byte;

	/* A datagram is taken whole, whatever the size of the buffer; ENOBUFS (events lost) is news as well.
	 */
	for (unsigned i = 0; i < HOST_WATCH_READS_MAX; i++)
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ENOBUFS)
			return;
}

static int join_numbers(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b, uint32_t **ret,
			size_t *ret_n)
{
	uint32_t *joined = calloc(n_a + n_b + 1, sizeof(*joined));
	size_t n = n_a;

	if (!joined)
		return -ENOMEM;
	for (size_t i = 0; i < n_a; i++)
		joined[i] = a[i];
	for (size_t i = 0; i < n_b; i++) {
		bool known = false;

		for (size_t j = 0; j < n_a && !known; j++)
			known = a[j] == b[i];
		if (!known)
			joined[n++] = b[i];
	}
	*ret = joined;
	*ret_n = n;
	return n > n_a;
}

static int join_subnets(const HostNetwork *known, const HostNetwork *now, HostNetwork *joined)
{
	size_t n = known->n_subnets;

	joined->subnets = calloc(n + now->n_subnets + 1, sizeof(*joined->subnets));
	if (!joined->subnets)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		joined->subnets[i] = known->subnets[i];
	for (size_t i = 0; i < now->n_subnets; i++) {
		const HostPrefix *subnet = &now->subnets[i];
		bool is_known = false;

		for (size_t j = 0; j < known->n_subnets && !is_known; j++)
			is_known = known->subnets[j].address == subnet->address &&
				   known->subnets[j].length == subnet->length;
		if (!is_known)
			joined->subnets[n++] = *subnet;
	}
	joined->n_subnets = n;
	return n > known->n_subnets;
}

int host_network_join(const HostNetwork *known, const HostNetwork *now, HostNetwork *ret)
{
	_cleanup_(host_network_done) HostNetwork joined = { .uplink = now->uplink };
	int subnets, addresses, gateways;

	subnets = join_subnets(known, now, &joined);
	addresses = join_numbers(known->addresses, known->n_addresses, now->addresses, now->n_addresses,
				 &joined.addresses, &joined.n_addresses);
	gateways = join_numbers(known->gateways, known->n_gateways, now->gateways, now->n_gateways,
				&joined.gateways, &joined.n_gateways);
	if (subnets < 0 || addresses < 0 || gateways < 0)
		return -ENOMEM;
	*ret = joined;
	joined = (HostNetwork){ 0 };
	return subnets > 0 || addresses > 0 || gateways > 0;
}
