/* SPDX-License-Identifier: MIT */

/* Each way round a route, to one address of every denied range and to the host's loopback. */

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-reach.h"
#include "service/inside/probe-tables.h"
#include "service/link/stream-outcome.h"

#define GROUPS_MSEC 100 /* it runs alone */
/* For what was sent to be counted as dropped. */
#define COUNTED_LOOKS 200u
#define COUNTED_MSEC 10

/* A member of the group as well. */
static int by_member(int fd, const ReachTarget *target, const char *device, unsigned index)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)&target->address;
	struct ip_mreqn request = { .imr_multiaddr = to->sin_addr, .imr_ifindex = (int)index };

	(void)setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request));
	return 0;
}

static int by_device6(int fd, const ReachTarget *target, const char *device, unsigned index)
{
	uint32_t number = htonl(index);

	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &number, sizeof(number));
	return way_prepare(&ways[WAY_DEVICE], fd, device, index, 0);
}

static void attempt_ways(Probing *p, const ReachWay *tried, size_t n)
{
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	reach_add_baits(p, &targets);
	reach_add_denied(p, &targets);
	(void)reach_try(p, tried, n, &targets);
}

#define WAYS(...)                                        \
	static const ReachWay tried[] = { __VA_ARGS__ }; \
	attempt_ways(p, tried, ELEMENTSOF(tried))
#define WAY(number)                  \
	{                            \
		.way = &ways[number] \
	}

static void attempt_plain(Probing *p)
{
	WAYS(WAY(WAY_PLAIN));
}

static void attempt_device(Probing *p)
{
	WAYS(WAY(WAY_DEVICE));
}

static void attempt_index(Probing *p)
{
	WAYS(WAY(WAY_INDEX));
}

static void attempt_unicast(Probing *p)
{
	WAYS(WAY(WAY_UNICAST));
}

static void attempt_packet_info(Probing *p)
{
	WAYS({ .way = &ways[WAY_PACKET_INFO], .udp_only = true });
}

static void attempt_source(Probing *p)
{
	WAYS(WAY(WAY_SOURCE), WAY(WAY_FOREIGN_SOURCE));
}

static void attempt_no_route(Probing *p)
{
	WAYS(WAY(WAY_NO_ROUTE), WAY(WAY_DEVICE_NO_ROUTE));
}

static void attempt_source_route(Probing *p)
{
	WAYS(WAY(WAY_LOOSE_ROUTE), WAY(WAY_STRICT_ROUTE));
}

static void attempt_mapped(Probing *p)
{
	WAYS({ .name = "an IPv6 socket", .mapped = true }, { .name = "an IPv6 socket with a device",
							     .prepare = by_device6,
							     .mapped = true,
							     .by_device = true });
}

/*
 * Other protocols have no sockets at all, whatever the address. Their modules are not to be loaded either: so
 * each is asked for with a flag that no socket has (EINVAL of the kernel, where the filter does not answer).
 */
static void attempt_protocols(Probing *p)
{
	static const int refusals[] = { ESOCKTNOSUPPORT, EPROTONOSUPPORT, 0 };
	static const struct {
		const char *name;
		int type, protocol;
	} kinds[] = {
		{ "MPTCP", SOCK_STREAM, 262 },
		{ "SCTP", SOCK_STREAM, IPPROTO_SCTP },
		{ "SCTP by packets", SOCK_SEQPACKET, IPPROTO_SCTP },
		{ "DCCP", SOCK_DCCP, IPPROTO_DCCP },
		{ "UDP-Lite", SOCK_DGRAM, IPPROTO_UDPLITE },
		{ "L2TP", SOCK_DGRAM, 115 },
	};
	static const int families[] = { AF_INET, AF_INET6 };

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		for (size_t j = 0; j < ELEMENTSOF(families); j++)
			probing_rights(p, socket(families[j], kinds[i].type | 0x10, kinds[i].protocol),
				       refusals, "%s of IPv%c", kinds[i].name, j == 0 ? '4' : '6');
}

/* Frames that were dropped before they reached the wire. Return: whether there is a wire. */
static bool read_dropped(uint64_t *ret)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/net/dev", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		const char *rest = strstr(line, ROUTES_JAIL_DEVICE ":");

		/* Eight columns of what came; bytes, packets, errors and drops of what was sent. */
		if (rest && sscanf(rest + strlen(ROUTES_JAIL_DEVICE ":"),
				   "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", ret) == 1)
			return true;
	}
	return false;
}

static bool wire_is_up(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = ROUTES_JAIL_DEVICE };

	return fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_RUNNING;
}

/* Nobody has to answer these. But each goes to the device itself, and the filter on it counts what it drops.
 */
static void attempt_groups(Probing *p)
{
	static const ReachWay tried[] = {
		{ .way = &ways[WAY_PLAIN], .udp_only = true },
		{ .way = &ways[WAY_MULTICAST], .prepare = by_member, .by_device = true, .udp_only = true },
		{ .way = &ways[WAY_DEVICE], .udp_only = true },
		{ .way = &ways[WAY_PACKET_INFO], .udp_only = true },
	};
	/* All hosts, mDNS, LLMNR, SSDP, others; everybody. */
	static const uint32_t addresses[] = { 0xe0000001, 0xe00000fb, 0xe00000fc, 0xeffffffa,
					      0xe0050607, 0xef010203, 0xffffffff };
	uint64_t before = 0, after = 0;
	static ReachTargets targets;
	bool wire;
	unsigned taken;

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
		reach_add4(&targets, addresses[i], 1900, false);
	targets.msec = GROUPS_MSEC;
	wire = wire_is_up() && read_dropped(&before);
	taken = reach_try(p, tried, ELEMENTSOF(tried), &targets);
	/* The kernel counts what it drops when it gets to it. */
	for (unsigned i = 0; wire && i < COUNTED_LOOKS && read_dropped(&after) && after - before < taken; i++)
		(void)poll(NULL, 0, COUNTED_MSEC);
	if (wire && after - before < taken)
		probing_escaped(p, "of %u datagrams for groups the filter has dropped %u", taken,
				(unsigned)(after - before));
}

static void attempt_broadcast(Probing *p)
{
	static const ReachWay tried[] = {
		{ .way = &ways[WAY_PLAIN], .udp_only = true },
		{ .way = &ways[WAY_DEVICE], .udp_only = true },
		{ .way = &ways[WAY_PACKET_INFO], .udp_only = true },
	};
	static const uint32_t addresses[] = { 0xffffffff, 0x0affffff, 0xc0a8ffff, 0xac1fffff };
	const Expectations *e = p->expectations;
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
		if (!reach_is_allowed(p, addresses[i]))
			reach_add4(&targets, addresses[i], 9, false);
	/* Each subnet's own. */
	for (size_t i = 0; e && i < e->n_routes; i++) {
		const ExpectedRoute *route = &e->routes[i];
		uint32_t last = route->address | (route->length ? UINT32_MAX >> route->length : 0);

		if (route->verdict == ROUTE_DENY && route->length >= 16 && route->length < 31 &&
		    !reach_is_allowed(p, last))
			reach_add4(&targets, last, 9, false);
	}
	for (size_t i = 0; i < targets.n; i++)
		targets.targets[i].group = true;
	(void)reach_try(p, tried, ELEMENTSOF(tried), &targets);
}

/* A ping socket is no raw one: everybody may have it (icmp(7)), with the same options as others. */
static void attempt_ping(Probing *p)
{
	static const ReachWay tried[] = {
		{ .name = "ping", .ping = true, .protocol = IPPROTO_ICMP, .udp_only = true },
		{ .name = "ping with SO_BINDTODEVICE",
		  .ping = true,
		  .way = &ways[WAY_DEVICE],
		  .protocol = IPPROTO_ICMP,
		  .udp_only = true },
		{ .name = "ping with IP_PKTINFO",
		  .ping = true,
		  .way = &ways[WAY_PACKET_INFO],
		  .protocol = IPPROTO_ICMP,
		  .udp_only = true },
	};

	attempt_ways(p, tried, ELEMENTSOF(tried));
}

/* TCP that begins with data, and a socket that was connected elsewhere before. */
static void attempt_again(Probing *p)
{
	static ReachTargets targets;
	unsigned refused = 0;

	if (!reach_is_jailed(p))
		return;
	reach_add_denied(p, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		const ReachTarget *target = &targets.targets[i];
		_cleanup_close_ int fast_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		_cleanup_close_ int udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		const struct sockaddr_in public_address = { .sin_family = AF_INET,
							    .sin_port = htons(9),
							    .sin_addr.s_addr = htonl(0x01010101) };
		struct pollfd events[2] = { { .fd = fast_fd, .events = POLLOUT },
					    { .fd = udp_fd, .events = POLLIN } };
		char data[64];
		int outcome = -EINPROGRESS;

		if (target->token || target->address.ss_family != AF_INET)
			continue;
		if (fast_fd < 0 || udp_fd < 0) {
			probing_unclear(p, "no socket: %s", probing_error(errno));
			return;
		}
		if (sendto(fast_fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
			   (const struct sockaddr *)&target->address, target->size) < 0 &&
		    errno != EINPROGRESS)
			events[0].fd = -1;
		/* Its route was looked up for somebody else. */
		if (connect(udp_fd, (const struct sockaddr *)&public_address, sizeof(public_address)) < 0 ||
		    sendto(udp_fd, "x", 1, MSG_NOSIGNAL, (const struct sockaddr *)&target->address,
			   target->size) < 0)
			events[1].fd = -1;
		(void)poll(events, ELEMENTSOF(events), 15);
		if (events[0].revents)
			outcome = stream_outcome(fast_fd);
		if (outcome == 0 || outcome == -ECONNREFUSED)
			probing_escaped(p, "%s answered a connection that began with data", target->text);
		else if (events[1].revents && recv(udp_fd, data, sizeof(data), MSG_DONTWAIT) > 0)
			probing_escaped(p, "%s answered a socket that was connected elsewhere", target->text);
		else
			refused++;
	}
	probing_blocked(p, "%u addresses: no answer from any", refused);
}

const Probe probes_reach[] = {
	{ "p83", "denied addresses: by plain sockets", "the internal network and the host's own services",
	  attempt_plain, true },
	{ "p84", "denied addresses: by SO_BINDTODEVICE", "the same, past the routes", attempt_device, true },
	{ "p85", "denied addresses: by SO_BINDTOIFINDEX", "the same", attempt_index, true },
	{ "p86", "denied addresses: by IP_UNICAST_IF", "the same", attempt_unicast, true },
	{ "p87", "denied addresses: by IP_PKTINFO", "the same", attempt_packet_info, true },
	{ "p88", "denied addresses: from other source addresses", "the same", attempt_source, true },
	{ "p89", "denied addresses: by SO_DONTROUTE", "the same", attempt_no_route, true },
	{ "p90", "denied addresses: by source routes", "the same, through another machine",
	  attempt_source_route, true },
	{ "p91", "denied addresses: by IPv6 sockets (v4-mapped)", "the same, by other code of the kernel",
	  attempt_mapped, true },
	{ "p92", "denied addresses: by other protocols", "the same, by MPTCP, SCTP and UDP-Lite",
	  attempt_protocols },
	{ "p93", "no multicast", "all machines of the host's networks at once", attempt_groups },
	{ "p94", "no broadcast", "the same", attempt_broadcast, true },
	{ "p95", "denied addresses: by ping", "who is there on the internal network, and a channel to it",
	  attempt_ping, true },
	{ "p96", "denied addresses: by sockets that were used before",
	  "the same, by a route that is remembered", attempt_again, true },
};
const size_t probes_reach_count = ELEMENTSOF(probes_reach);
