/* SPDX-License-Identifier: MIT */

/* IPv6 in every form: there is none in a jail, whatever the machine has. */

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-reach.h"
#include "service/inside/probe-tables.h"

#define PORT 80
#define GROUP_PORT 5353 /* mDNS */

static int by_unicast(int fd, const ReachTarget *target, const char *device, unsigned index)
{
	uint32_t number = htonl(index);

	return setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &number, sizeof(number)) < 0 ? -errno : 0;
}

static int by_multicast(int fd, const ReachTarget *target, const char *device, unsigned index)
{
	const struct sockaddr_in6 *to = (const struct sockaddr_in6 *)&target->address;
	struct ipv6_mreq request = { .ipv6mr_multiaddr = to->sin6_addr, .ipv6mr_interface = index };
	int number = (int)index;

	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof(request));
	return setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &number, sizeof(number)) < 0 ? -errno : 0;
}

static const ReachWay all_ways[] = {
	{ .way = &ways[WAY_PLAIN] },
	{ .way = &ways[WAY_DEVICE] },
	{ .name = "IPV6_UNICAST_IF", .prepare = by_unicast, .by_device = true },
	{ .name = "IPV6_PKTINFO", .way = &ways[WAY_PACKET_INFO], .udp_only = true },
};

static const ReachWay group_ways[] = {
	{ .way = &ways[WAY_PLAIN], .udp_only = true },
	{ .name = "IPV6_MULTICAST_IF", .prepare = by_multicast, .by_device = true, .udp_only = true },
};

static void attempt_loopback(Probing *p)
{
	static const BaitKind kinds[] = { BAIT_TCP6, BAIT_UDP6, BAIT_TCP4, BAIT_UDP4 };
	/* The host's, plain, mapped, compatible (RFC 4291), translated (RFC 2765). */
	static const char *const texts[] = { "::1", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:7f00:1",
					     "::ffff:192.0.0.1" };
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		const ExpectedBait *bait = probing_bait(p, kinds[i]);

		for (size_t j = 0; bait && j < ELEMENTSOF(texts); j++)
			reach_add6(&targets, texts[j], bait->port, 0, true);
	}
	if (targets.n == 0) {
		probing_unclear(p, "there is no bait");
		return;
	}
	(void)reach_try(p, all_ways, ELEMENTSOF(all_ways), &targets);
}

/* Addresses of the whole network. */
static void try_texts(Probing *p, const char *const *texts, size_t n)
{
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < n; i++)
		reach_add6(&targets, texts[i], PORT, 0, false);
	(void)reach_try(p, all_ways, ELEMENTSOF(all_ways), &targets);
}

static void attempt_far(Probing *p)
{
	static const char *const texts[] = { "2001:4860:4860::8888",
					     "2606:4700:4700::1111",
					     "fd00::1",
					     "fd00:ec2::254",
					     "fec0::1",
					     "2001:db8::1",
					     "100::1" };

	try_texts(p, texts, ELEMENTSOF(texts));
}

/* Prefixes behind which an IPv4 address of the internal network, or the host's loopback, may stand. */
static void attempt_translated(Probing *p)
{
	static const char *const texts[] = {
		"64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "64:ff9b::a9fe:a9fe",
		"2002:a00:1::1",  "2002:7f00:1::1",  "2002:c0a8:101::1", "2001:0:a00:1::",
		"::ffff:0:a00:1", "::10.0.0.1",      "fe80::5efe:a00:1", "2001:db8:0:64::a00:1",
	};

	try_texts(p, texts, ELEMENTSOF(texts));
}

/* Addresses that mean another one on each device. */
static void try_on_devices(Probing *p, const char *const *texts, size_t n, uint16_t port,
			   const ReachWay *by_ways, size_t n_ways)
{
	struct if_nameindex *devices;
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	devices = if_nameindex();
	for (size_t i = 0; devices && devices[i].if_index; i++)
		for (size_t j = 0; j < n; j++)
			reach_add6(&targets, texts[j], port, devices[i].if_index, false);
	(void)reach_try(p, by_ways, n_ways, &targets);
	if (devices)
		if_freenameindex(devices);
}

static void attempt_link_local(Probing *p)
{
	static const char *const texts[] = { "fe80::1", "fe80::ff:fe00:1", "fe80::fc54:ff:fe00:1" };

	try_on_devices(p, texts, ELEMENTSOF(texts), PORT, all_ways, ELEMENTSOF(all_ways));
}

static void attempt_groups(Probing *p)
{
	static const char *const texts[] = { "ff02::1", "ff02::2", "ff02::fb", "ff05::1", "ff0e::1" };

	try_on_devices(p, texts, ELEMENTSOF(texts), GROUP_PORT, group_ways, ELEMENTSOF(group_ways));
}

/* "fe800000... 02 40 20 80 jail0": address, index, length, scope (0x20: of a link, 0x10: of the machine),
 * flags (proc(5)). */
static void attempt_addresses(Probing *p)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/net/if_inet6", "re");
	char line[256], address[64], device[64];
	int open_error = errno;
	unsigned scope;

	if (!reach_is_jailed(p))
		return;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %*x %*x %x %*x %63s", address, &scope, device) != 3)
			continue;
		if (scope != 0x10 && scope != 0x20)
			probing_escaped(p, "%s has the address %s", device, address);
	}
	if (file)
		probing_blocked(p, "no address leads out");
	else if (open_error == ENOENT)
		probing_blocked(p, "there is no IPv6");
	else
		probing_unclear(p, "the addresses: %s", probing_error(open_error));
}

const Probe probes_ipv6[] = {
	{ "p101", "no loopback of the host by IPv6", "its services for nobody else", attempt_loopback, true },
	{ "p102", "no IPv6, neither public nor internal", "a network that no route of the jail denies",
	  attempt_far, true },
	{ "p103", "denied addresses: by translated and tunnelled IPv6",
	  "the internal network, by NAT64 and 6to4", attempt_translated, true },
	{ "p104", "no neighbours by link-local addresses", "the host, which answers on its links",
	  attempt_link_local, true },
	{ "p105", "no groups of IPv6", "all machines of a link at once", attempt_groups, true },
	{ "p106", "no address of IPv6", "a way out that comes by itself", attempt_addresses },
};
const size_t probes_ipv6_count = ELEMENTSOF(probes_ipv6);
