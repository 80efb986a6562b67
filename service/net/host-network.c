/* SPDX-License-Identifier: MIT */
#include "service/net/host-network.h"

#include "service/net/address.h"
#include "service/net/nexthop.h"
#include "service/net/route.h"

#include <arpa/inet.h>

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
	Address address;
	int r = address_decode(header, &address);

	if (r < 0 || address.family != AF_INET || is_loopback(address.local))
		return r;
	r = numbers_add(&c->addresses, address.local);
	/* Of a point-to-point address the other end is what is connected. */
	if (r >= 0 && (address.length < 32 || address.peer != address.local))
		r = prefixes_add(&c->subnets, address.peer, address.length);
	return r;
}

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

static int note_multipath(Collection *c, Hops *hops, const struct rtattr *attribute)
{
	const uint8_t *bytes = RTA_DATA(attribute);
	size_t left = attribute_size(attribute);

	while (left > 0) {
		const struct rtattr *slots[RTA_MAX + 1];
		const struct rtnexthop *hop = (const void *)bytes;
		size_t step;
		uint32_t gateway = 0;
		int r;

		if (left < sizeof(*hop) || hop->rtnh_len < sizeof(*hop) || hop->rtnh_len > left)
			return -EBADMSG;
		r = attributes_sort(bytes + sizeof(*hop), hop->rtnh_len - sizeof(*hop), slots,
				    ELEMENTSOF(slots), NULL);
		if (r < 0)
			return r;
		if (!(hop->rtnh_flags & FLAGS_UNUSABLE))
			hops->usable = true;
		if (slots[RTA_GATEWAY]) {
			if (attribute_ipv4(slots[RTA_GATEWAY], &gateway) < 0)
				return -EBADMSG;
			r = note_gateway(c, hops, gateway);
		} else if (slots[RTA_VIA])
			r = note_via(c, hops, slots[RTA_VIA]);
		else
			hops->device = (uint32_t)hop->rtnh_ifindex;
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
	int r = 0;

	/* With an object, the flags and gateways beside it are the object's, repeated for older programs. */
	if (route->nexthop_id != 0)
		return note_object(c, hops, route->nexthop_id);
	if (route->multipath)
		return note_multipath(c, hops, route->multipath);

	hops->usable = !(route->flags & FLAGS_UNUSABLE);
	if (route->has_gateway)
		r = note_gateway(c, hops, route->gateway);
	else if (route->via)
		r = note_via(c, hops, route->via);
	else
		hops->device = route->device;
	return r;
}

static int note_device_route(Collection *c, const Route *route, uint32_t device)
{
	int r = grow(&c->devices, sizeof(*c->devices), c->n_devices, &c->allocated_devices);

	if (r < 0)
		return r;
	c->devices[c->n_devices++] = (DeviceRoute){
		.prefix = { route->destination, route->length },
		.device = device,
		.table = route->table,
		.kernels = route->protocol == RTPROT_KERNEL,
	};
	return 0;
}

static int collect_route(Collection *c, const struct nlmsghdr *header)
{
	bool main_table;
	Hops hops = { 0 };
	Route route;
	int r = route_decode(header, &route);

	if (r < 0 || (route.flags & RTM_F_CLONED))
		return r;
	/* "Any address of this range is mine" is a way to own addresses too; of everything, it serves a
	 * proxy. */
	if (route.type == RTN_LOCAL && route.length > 0 && !is_loopback(route.destination))
		return route.length == 32 ? numbers_add(&c->addresses, route.destination)
					  : prefixes_add(&c->subnets, route.destination, route.length);
	if (route.type != RTN_UNICAST || route.family != AF_INET)
		return 0;

	r = note_hops(c, &route, &hops);
	if (r < 0)
		return r;
	main_table = route.table == RT_TABLE_MAIN || route.table == RT_TABLE_DEFAULT;
	if (route.length == 0) {
		if (main_table && hops.usable)
			c->uplink = true;
		return 0;
	}
	if (main_table && hops.usable && route.length <= HALVES_LENGTH_MAX) {
		r = prefixes_add(&c->halves, route.destination, route.length);
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
