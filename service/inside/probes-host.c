/* SPDX-License-Identifier: MIT */

/* The host itself, what clouds answer on, and names that stand for either. */

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include "base/clock.h"
#include "service/inside/probe-child.h"
#include "service/inside/probe-reach.h"
#include "service/inside/probe-tables.h"

#define DNS_PORT 53
#define DNS_MSEC 400
#define DNS_BYTES_MAX 512u
#define NAMES_MAX 8u

static const ReachWay all_ways[] = {
	{ .way = &ways[WAY_PLAIN] },
	{ .way = &ways[WAY_DEVICE] },
};

/* What listens on many machines. */
static const uint16_t ports[] = { 22,   25,   53,   80,   111,  139,   443,   445,  631,
				  2375, 2376, 3000, 3306, 5000, 5432,  5900,  6000, 6379,
				  6443, 8000, 8080, 9090, 9200, 10250, 11211, 27017 };

static bool is_of_host(const ExpectedRoute *route)
{
	return route->verdict == ROUTE_DENY && route->length == 32 && route->address != 0xa83f8110;
}

static void attempt_scan(Probing *p)
{
	const Expectations *e = p->expectations;
	static ReachTargets targets;
	uint32_t addresses[4];
	size_t n = 0;

	if (!reach_is_jailed(p))
		return;
	/* Its own addresses and gateways have rows of their own. */
	for (size_t i = 0; e && i < e->n_host_addresses && n < ELEMENTSOF(addresses); i++)
		if (!reach_is_allowed(p, e->host_addresses[i]) && e->host_addresses[i] >> 24 != 127)
			addresses[n++] = e->host_addresses[i];
	for (size_t i = 0; e && i < e->n_routes && n < ELEMENTSOF(addresses); i++)
		if (is_of_host(&e->routes[i]))
			addresses[n++] = e->routes[i].address;
	if (n == 0) {
		probing_unclear(p, "nobody said which addresses the host has");
		return;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < ELEMENTSOF(ports); j++)
			reach_add4(&targets, addresses[i], ports[j], false);
	(void)reach_try(p, all_ways, 1, &targets);
}

static void attempt_baits(Probing *p)
{
	const Expectations *e = p->expectations;
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	if (!probing_bait(p, BAIT_TCP4)) {
		probing_unclear(p, "there is no bait");
		return;
	}
	reach_add_baits(p, &targets);
	for (size_t i = 0; e && i < e->n_baits; i++) {
		if (e->baits[i].kind != BAIT_TCP4 && e->baits[i].kind != BAIT_UDP4)
			continue;
		/* All of 127/8 is one machine; and gateways of other programs lead there (pasta(1), docker).
		 */
		reach_add4(&targets, 0x7f000002, e->baits[i].port, true);
		reach_add4(&targets, 0x7fffffffu - 1, e->baits[i].port, true);
		reach_add4(&targets, 0x0a000202, e->baits[i].port, true);
		reach_add4(&targets, 0xac110001, e->baits[i].port, true);
		reach_add4(&targets, 0xa9fe0001, e->baits[i].port, true);
		for (size_t j = 0; j < e->n_routes; j++)
			if (is_of_host(&e->routes[j]))
				reach_add4(&targets, e->routes[j].address, e->baits[i].port, true);
	}
	(void)reach_try(p, all_ways, ELEMENTSOF(all_ways), &targets);
}

static void attempt_metadata(Probing *p)
{
	/* Most clouds; Amazon's containers, time and names; Azure; Alibaba; Oracle. */
	static const struct {
		uint32_t address;
		uint16_t port;
	} services[] = { { 0xa9fea9fe, 80 },    { 0xa9fea9fe, 8080 }, { 0xa9feaa02, 80 },
			 { 0xa9fea97b, 123 },   { 0xa9fea9fd, 53 },   { 0xa83f8110, 80 },
			 { 0xa83f8110, 32526 }, { 0x646464c8, 80 },   { 0xc00000c0, 80 } };
	static ReachTargets targets;

	if (!reach_is_jailed(p))
		return;
	for (size_t i = 0; i < ELEMENTSOF(services); i++)
		if (!reach_is_allowed(p, services[i].address))
			reach_add4(&targets, services[i].address, services[i].port, false);
	(void)reach_try(p, all_ways, ELEMENTSOF(all_ways), &targets);
}

/* A question for the IPv4 address of a name (RFC 1035). Return: its size. */
static size_t make_question(const char *name, uint16_t id, uint8_t message[static DNS_BYTES_MAX])
{
	size_t n = 12;

	memset(message, 0, DNS_BYTES_MAX);
	message[0] = (uint8_t)(id >> 8);
	message[1] = (uint8_t)id;
	message[2] = 1; /* recursion, please */
	message[5] = 1; /* one question */
	while (*name && n + 70 < DNS_BYTES_MAX) {
		size_t length = strcspn(name, ".");

		if (length == 0 || length > 63)
			break;
		message[n++] = (uint8_t)length;
		memcpy(message + n, name, length);
		n += length;
		name += length + (name[length] == '.');
	}
	n++;
	message[n + 1] = 1;
	message[n + 3] = 1;
	return n + 4;
}

static size_t skip_name(const uint8_t *message, size_t size, size_t at)
{
	while (at < size && message[at] && message[at] < 0xc0)
		at += 1u + message[at];
	return at + (at < size && message[at] >= 0xc0 ? 2 : 1);
}

/* Take the addresses out of an answer. Return: how many. */
static size_t read_answer(const uint8_t *message, size_t size, uint32_t *ret, size_t max)
{
	unsigned questions, answers;
	size_t at = 12, n = 0;

	if (size < at)
		return 0;
	questions = message[4] << 8 | message[5];
	answers = message[6] << 8 | message[7];
	for (unsigned i = 0; i < questions && at < size; i++)
		at = skip_name(message, size, at) + 4;
	for (unsigned i = 0; i < answers && at < size && n < max; i++) {
		size_t length;

		at = skip_name(message, size, at);
		if (at + 10 > size)
			break;
		length = (size_t)message[at + 8] << 8 | message[at + 9];
		if (message[at + 1] == 1 && length == 4 && at + 14 <= size)
			ret[n++] = (uint32_t)message[at + 10] << 24 | (uint32_t)message[at + 11] << 16 |
				   (uint32_t)message[at + 12] << 8 | message[at + 13];
		at += 10 + length;
	}
	return n;
}

static size_t ask(uint32_t server, const char *const *names, size_t n_names, uint32_t *ret, size_t max)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(DNS_PORT),
					.sin_addr.s_addr = htonl(server) };
	uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + DNS_MSEC * USEC_PER_MSEC;
	uint8_t message[DNS_BYTES_MAX];
	size_t n = 0, answered = 0;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return 0;
	for (size_t i = 0; i < n_names; i++)
		(void)!send(fd, message, make_question(names[i], (uint16_t)(i + 1), message), MSG_NOSIGNAL);
	while (answered < n_names) {
		struct pollfd event = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_usec(CLOCK_MONOTONIC);
		ssize_t size;

		if (now >= deadline || poll(&event, 1, (int)((deadline - now) / USEC_PER_MSEC) + 1) <= 0)
			break;
		size = recv(fd, message, sizeof(message), 0);
		if (size < 0)
			break;
		answered++;
		n += read_answer(message, (size_t)size, ret + n, max - n);
	}
	return n;
}

/*
 * Names that stand for the host or for what is near it; and an address that a name of the agent's own making
 * could stand for at any moment, after whoever looks at names has looked.
 */
static void attempt_names(Probing *p)
{
	const Expectations *e = p->expectations;
	const char *names[NAMES_MAX] = { "localhost", "_gateway", "host.docker.internal",
					 "metadata.google.internal" };
	static ReachTargets targets;
	uint32_t addresses[16];
	size_t n_names = 4, n = 0, denied = 0;

	if (!reach_is_jailed(p))
		return;
	if (e && e->hostname && *e->hostname)
		names[n_names++] = e->hostname;
	if (e && e->forwarder)
		n = ask(e->forwarder, names, n_names, addresses, ELEMENTSOF(addresses));
	for (size_t i = 0; i < n; i++)
		if (!reach_is_allowed(p, addresses[i])) {
			reach_add4(&targets, addresses[i], 80, false);
			reach_add4(&targets, addresses[i], 22, false);
			denied++;
		}
	reach_add_denied(p, &targets);
	(void)reach_try(p, all_ways, 1, &targets);
	if (e && e->forwarder)
		probing_blocked(p, "the name server gave %zu addresses, %zu of them denied", n, denied);
}

const Probe probes_host[] = {
	{ "p97", "no port of the host's own addresses", "its services for the network", attempt_scan, true },
	{ "p98", "no loopback of the host, by any address for it", "its services for nobody else",
	  attempt_baits, true },
	{ "p99", "no metadata services of clouds", "the machine's own credentials", attempt_metadata, true },
	{ "p100", "no denied address by a name", "the same by a name (DNS rebinding)", attempt_names, true },
};
const size_t probes_host_count = ELEMENTSOF(probes_host);
