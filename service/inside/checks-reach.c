/* SPDX-License-Identifier: MIT */

/*
 * 20: what is denied refuses, by every way that a program without rights has. All at once, without waiting
 * for what never answers. A way round the routes is judged by what it leaves: the far side of the tap answers
 * every question for a link address, so a frame that got out makes a neighbour known within the moment, and a
 * packet that left is counted by the device.
 */

#include "base/clock.h"
#include "service/inside/checks.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "service/inside/dump.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"
#include "service/link/stream-outcome.h"
#include "service/net/ways.h"

#define PORT 9 /* discard, RFC 863 */
/* Each unresolved destination takes a place in a table that all namespaces share (arp(7), gc_thresh). */
#define DESTINATIONS_MAX 32u
#define ANSWER_MSEC 200
/*
 * A refusal comes at once, from a session that has other things to do as well: its want within this time is one, however
 * slow the machine is. Beside an agent, which can keep the session busy, it is a note, and nobody waits so long for it.
 */
#define REFUSAL_MSEC 30000
#define REFUSAL_JOINED_MSEC 2000
#define SILENCE_MSEC 1000
#define SILENCE_TIMES 50
#define LEAST_MSEC 25 /* for what a frame that got out brings about, where sending takes no time */

typedef struct Connection {
	int fd;
	uint32_t address;
	const Way *way;
	bool done;
	int error; /* positive errno once it is done; 0: connected */
} Connection;

typedef struct Reach {
	Battery *b;
	const Expectations *e;
	int index; /* of jail0 */
	uint32_t destinations[DESTINATIONS_MAX];
	size_t n_destinations;
	Connection connections[2 * DESTINATIONS_MAX];
	size_t n_connections;
	int64_t start_msec; /* when the first was sent */
	uint64_t sent;      /* packets by jail0 so far */
	bool counted;       /* it is known */
} Reach;

static void reach_done(Reach *reach)
{
	for (size_t i = 0; i < reach->n_connections; i++)
		close_fdp(&reach->connections[i].fd);
}

static struct sockaddr_in socket_address(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(address) };
}

/* ---- what to try ---- */

/* Does an opening let it out, or is it the jail's own? */
static bool is_open(const Expectations *e, uint32_t address)
{
	return expectations_verdict(e, address) != ROUTE_DENY || address == ROUTES_SOURCE ||
	       address == ROUTES_FAR_END;
}

static void choose_destinations(Reach *reach)
{
	for (size_t i = 0; i < reach->e->n_routes; i++) {
		const ExpectedRoute *row = &reach->e->routes[i];
		uint32_t address = row->address,
			 last = address | (uint32_t)(UINT64_C(0xffffffff) >> row->length);

		if (row->verdict != ROUTE_DENY || reach->n_destinations >= DESTINATIONS_MAX)
			continue;
		/* A network's own number is no host. */
		address += last - address > 1;
		for (unsigned n = 0; n < 64 && address < last && is_open(reach->e, address); n++)
			address++;
		if (!is_open(reach->e, address) && address != INADDR_LOOPBACK)
			reach->destinations[reach->n_destinations++] = address;
	}
}

/* ---- streams ---- */

static void fail_starved(const Reach *reach, int error)
{
	battery_starved(reach->b, error, "what is denied");
}

static void connect_one(Reach *reach, uint32_t address, const Way *way)
{
	const struct sockaddr_in to = socket_address(address, PORT);
	Connection *c = &reach->connections[reach->n_connections];

	*c = (Connection){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
			   .address = address,
			   .way = way };
	if (c->fd < 0 || way_prepare(way, c->fd, ROUTES_JAIL_DEVICE, (unsigned)reach->index, 0) < 0) {
		fail_starved(reach, errno);
		c->fd = close_fd(c->fd);
		return;
	}
	reach->n_connections++;
	if (connect(c->fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno == EINPROGRESS)
		return;
	c->done = true;
	c->error = errno;
}

static void connections_poll(Reach *reach, int timeout_msec)
{
	struct pollfd fds[ELEMENTSOF(reach->connections)];

	for (size_t i = 0; i < reach->n_connections; i++)
		fds[i] = (struct pollfd){ .fd = reach->connections[i].done ? -1 : reach->connections[i].fd,
					  .events = POLLOUT };
	if (poll(fds, reach->n_connections, timeout_msec) <= 0)
		return;
	for (size_t i = 0; i < reach->n_connections; i++)
		if (fds[i].revents) {
			int r = stream_outcome(fds[i].fd);

			reach->connections[i].done = r != -EINPROGRESS;
			reach->connections[i].error = -r;
		}
}

/* Those of a device have no end of their own within the time. */
static bool plain_are_done(const Reach *reach)
{
	for (size_t i = 0; i < reach->n_connections; i++)
		if (reach->connections[i].way == &ways[WAY_PLAIN] && !reach->connections[i].done)
			return false;
	return true;
}

static size_t plain_count_done(const Reach *reach)
{
	size_t n = 0;

	for (size_t i = 0; i < reach->n_connections; i++)
		n += reach->connections[i].way == &ways[WAY_PLAIN] && reach->connections[i].done;
	return n;
}

static int refusal_msec(const Reach *reach)
{
	return reach->e->joined ? REFUSAL_JOINED_MSEC : REFUSAL_MSEC;
}

static void connections_wait(Reach *reach)
{
	int64_t start = clock_msec(CLOCK_MONOTONIC), longest = refusal_msec(reach);
	/* Who is slow to send is slow to answer. */
	int64_t least = MIN_OF(LEAST_MSEC + start - reach->start_msec, longest);

	for (size_t n = 0;;) {
		int64_t passed = clock_msec(CLOCK_MONOTONIC) - start;

		/* How fast this machine answers, the others tell: whoever takes so many times as long is silent. */
		if (plain_count_done(reach) > n) {
			n = plain_count_done(reach);
			longest = MIN_OF(SILENCE_MSEC + SILENCE_TIMES * passed, refusal_msec(reach));
		}
		if (passed >= longest || (passed >= least && plain_are_done(reach)))
			return;
		connections_poll(reach, (int)(passed < least ? least - passed : longest - passed));
	}
}

/* Who refuses a connection was reached. */
static void judge_connections(Reach *reach)
{
	for (size_t i = 0; i < reach->n_connections; i++) {
		const Connection *c = &reach->connections[i];

		if (c->done && (c->error == 0 || c->error == ECONNREFUSED || c->error == ECONNRESET))
			battery_fail(reach->b, "%s reaches %s (%s)", c->way->name,
				     dump_text(c->address, 32).text,
				     c->error == 0 ? "connected" : strerror(c->error));
		else if (c->done)
			fail_starved(reach, c->error);
		/* Silence is no refusal; but an agent can keep the session too busy to send one. */
		else if (c->way == &ways[WAY_PLAIN] && reach->e->joined)
			battery_note(reach->b, "nothing refused %s within %d ms",
				     dump_text(c->address, 32).text, REFUSAL_JOINED_MSEC);
		else if (c->way == &ways[WAY_PLAIN])
			battery_fail(reach->b, "nothing refuses %s", dump_text(c->address, 32).text);
	}
}

/* ---- datagrams ---- */

static void send_all(Reach *reach, const Way *way)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) < 0 ||
	    way_prepare(way, fd, ROUTES_JAIL_DEVICE, (unsigned)reach->index, 0) < 0) {
		fail_starved(reach, errno);
		return;
	}
	for (size_t i = 0; i < reach->n_destinations; i++) {
		const struct sockaddr_in to = socket_address(reach->destinations[i], PORT);

		/* How it fails says nothing about the frame. */
		(void)way_send(way, fd, (unsigned)reach->index, (const struct sockaddr *)&to, sizeof(to),
			       "denied", 6);
	}
}

/* ---- what got out ---- */

static int each_link(void *userdata, const struct nlmsghdr *header)
{
	Reach *reach = userdata;
	const struct ifinfomsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[IFLA_STATS64 + 1];
	struct rtnl_link_stats64 stats;

	if (header->nlmsg_type != RTM_NEWLINK ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	if (body->ifi_index != reach->index || !slots[IFLA_STATS64])
		return 0;
	memset(&stats, 0, sizeof(stats));
	memcpy(&stats, RTA_DATA(slots[IFLA_STATS64]),
	       MIN_OF(sizeof(stats), (size_t)RTA_PAYLOAD(slots[IFLA_STATS64])));
	reach->sent = stats.tx_packets;
	reach->counted = true;
	return 0;
}

static uint64_t packets_sent(Reach *reach)
{
	int r;

	reach->counted = false;
	r = dump_each(RTM_GETLINK, AF_UNSPEC, each_link, reach);
	if (r < 0 || !reach->counted)
		battery_fail(reach->b, "what left by " ROUTES_JAIL_DEVICE " is not known: %s",
			     r < 0 ? strerror(-r) : "the device says nothing");
	return reach->sent;
}

static int each_neighbour(void *userdata, const struct nlmsghdr *header)
{
	Reach *reach = userdata;
	const struct ndmsg *body = NLMSG_DATA(header);
	const struct rtattr *slots[NDA_LLADDR + 1];
	uint32_t address;

	if (header->nlmsg_type != RTM_NEWNEIGH ||
	    dump_attributes(header, sizeof(*body), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	address = dump_address(slots[NDA_DST]);
	if (body->ndm_ifindex == reach->index && address != ROUTES_FAR_END && slots[NDA_LLADDR] &&
	    (body->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)))
		battery_fail(reach->b,
			     "frames for %s leave past the routes: the filter of " ROUTES_JAIL_DEVICE
			     " lets them",
			     dump_text(address, 32).text);
	return 0;
}

/* ---- loopback and IPv6 ---- */

/* Return: whether something answers with the token of a listener outside. */
static bool gives_token(const Reach *reach, const struct sockaddr *to, socklen_t size)
{
	const Expectations *e = reach->e;
	_cleanup_close_ int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[256];
	ssize_t n;
	int r;

	if (fd < 0 || (connect(fd, to, size) < 0 && errno != EINPROGRESS)) {
		/* An address that IPv6 does not have here is none of the agent's doing. */
		if (to->sa_family != AF_INET6 || errno != EADDRNOTAVAIL)
			fail_starved(reach, errno);
		return false;
	}
	r = poll(&p, 1, ANSWER_MSEC);
	if (r < 0)
		fail_starved(reach, errno);
	if (r <= 0)
		return false;
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	return n > 0 && memmem(answer, (size_t)n, e->bait_token, strlen(e->bait_token));
}

static void judge_loopback(Reach *reach)
{
	static const uint32_t addresses[] = { INADDR_LOOPBACK, ROUTES_FAR_END, ROUTES_SOURCE };
	const Expectations *e = reach->e;
	bool tried = false;

	for (size_t i = 0; e->bait_token && i < e->n_baits; i++) {
		const ExpectedBait *bait = &e->baits[i];
		const struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
						  .sin6_port = htons(bait->port),
						  .sin6_addr = IN6ADDR_LOOPBACK_INIT };

		if (bait->kind == BAIT_TCP6 && gives_token(reach, (const struct sockaddr *)&to6, sizeof(to6)))
			battery_fail(reach->b, "the machine's ::1 can be reached");
		tried = tried || bait->kind == BAIT_TCP4;
		for (size_t w = 0; bait->kind == BAIT_TCP4 && w < ELEMENTSOF(addresses); w++) {
			const struct sockaddr_in to = socket_address(addresses[w], bait->port);

			if (gives_token(reach, (const struct sockaddr *)&to, sizeof(to)))
				battery_fail(reach->b, "the machine's loopback can be reached at %s",
					     dump_text(addresses[w], 32).text);
		}
	}
	if (!tried)
		battery_fail(reach->b, "the machine's loopback could not be tried: nothing listens there to "
				       "aim at");
	for (size_t i = 0; i < e->n_local_ports; i++)
		battery_note(reach->b, "127.0.0.1:%u is the machine's, as local-port says",
			     (unsigned)e->local_ports[i]);
}

static void judge_ipv6(Reach *reach)
{
	/* 2001:db8::1, RFC 3849, and one of the internet's. */
	static const uint8_t addresses[][16] = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
						 { 0x26, 0x06, 0x47, 0x00, 0x47, 0x00, [15] = 0x11 } };

	for (size_t i = 0; i < ELEMENTSOF(addresses); i++) {
		_cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };

		if (fd < 0)
			fail_starved(reach, errno);
		memcpy(&to.sin6_addr, addresses[i], sizeof(addresses[i]));
		if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0) {
			battery_fail(reach->b, "there is an IPv6 route to the internet");
			return;
		}
	}
}

/* ---- the name server ---- */

static void judge_names(Battery *b, const Expectations *e)
{
	int r;

	if (!e->resolver || e->forwarder == 0)
		battery_note(b, "the machine has no name server: names do not resolve");
	else if (!e->online)
		battery_note(b, "the session is offline: names do not resolve");
	else {
		r = dns_ask(e->forwarder, DNS_MSEC);
		if (r < 0)
			battery_fail(b, "the name server %s does not answer: %s",
				     dump_text(e->forwarder, 32).text, strerror(-r));
		else
			battery_pass(b, "names resolve");
	}
}

/* ---- the whole ---- */

static void judge_reach(Reach *reach)
{
	uint64_t before = packets_sent(reach);
	int r;

	choose_destinations(reach);
	if (reach->n_destinations == 0)
		battery_fail(reach->b, "what is denied was not told");
	reach->start_msec = clock_msec(CLOCK_MONOTONIC);
	for (size_t i = 0; i < reach->n_destinations; i++) {
		connect_one(reach, reach->destinations[i], &ways[WAY_PLAIN]);
		connect_one(reach, reach->destinations[i], &ways[WAY_DEVICE]);
	}
	/* Each plain one is a row of what the session was denied: beside an agent, streams have to do. */
	for (size_t i = reach->e->joined; i < WAYS_TO_DEVICES; i++)
		send_all(reach, &ways[i]);
	connections_wait(reach);
	judge_connections(reach);
	r = dump_each(RTM_GETNEIGH, AF_INET, each_neighbour, reach);
	if (r < 0)
		battery_fail(reach->b, "the neighbours cannot be read: %s", strerror(-r));
	/* Beside an agent that runs, whose packets they were cannot be told. */
	if (!reach->e->joined && packets_sent(reach) != before)
		battery_fail(reach->b, "packets to denied addresses left by " ROUTES_JAIL_DEVICE);
	judge_loopback(reach);
	judge_ipv6(reach);
	check_listeners(reach->b);
	battery_pass(reach->b, "%zu destinations refuse by %zu ways", reach->n_destinations,
		     (size_t)WAYS_TO_DEVICES);
}

void check_reach(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_(reach_done) Reach reach = { .b = b, .e = e };

	if (!e) {
		battery_note(b, "what is denied is not known here");
		return;
	}
	if (!e->jailed) {
		battery_note(b, "egress-jail is off: the agent reaches what the machine reaches");
		mounts_judge(b, "20");
		return;
	}
	reach.index = (int)if_nametoindex(ROUTES_JAIL_DEVICE);
	if (reach.index <= 0)
		battery_fail(b, "there is no " ROUTES_JAIL_DEVICE);
	else
		judge_reach(&reach);
	mounts_judge(b, "20");
	judge_names(b, e);
}
