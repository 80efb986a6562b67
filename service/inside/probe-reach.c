/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-reach.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>

#include "base/clock.h"
#include "service/inside/dump.h"
#include "service/inside/measure.h"
#include "service/inside/probe-child.h"
#include "service/link/stream-outcome.h"

#define TRIES_MAX 1500u
#define PORT 80
#define ARP_COMPLETE 2u /* ATF_COM, <net/if_arp.h> */

typedef struct Try {
	const ReachWay *way;
	const ReachTarget *target;
	int fd;
	bool udp, sent;
	unsigned device;
	const char *device_name;
} Try;

typedef struct Tries {
	Try *tries;
	struct pollfd *polls;
	size_t n;
	unsigned refused, silent, impossible, taken;
	unsigned starved; /* not tried: nothing was left for it */
	int error;        /* of the last refusal */
} Tries;

static const char message_text[] = "a probe of the jail";

static const Way *way_of(const ReachWay *way)
{
	return way->way ?: &ways[WAY_PLAIN];
}

static bool is_by_device(const ReachWay *way)
{
	return way->by_device || way_of(way)->by_device;
}

bool reach_is_jailed(Probing *p)
{
	if (p->expectations && !p->expectations->jailed) {
		probing_unclear(p, "the network is not jailed (egress-jail = 0)");
		return false;
	}
	return true;
}

bool reach_is_allowed(const Probing *p, uint32_t address)
{
	return p->expectations && expectations_verdict(p->expectations, address) != ROUTE_DENY;
}

/* 127/8 is the jail's own; and the two ends of the wire answer themselves. */
static bool is_own(uint32_t address)
{
	return address >> 24 == 127 || address == ROUTES_SOURCE || address == ROUTES_FAR_END || address == 0;
}

static ReachTarget *add(ReachTargets *targets)
{
	if (targets->n >= REACH_TARGETS_MAX) {
		targets->left_out++;
		return NULL;
	}
	targets->targets[targets->n] = (ReachTarget){ 0 };
	return &targets->targets[targets->n++];
}

void reach_add4(ReachTargets *targets, uint32_t address, uint16_t port, bool token)
{
	ReachTarget *target = add(targets);
	struct sockaddr_in *in;
	char text[INET_ADDRSTRLEN];

	if (!target)
		return;
	in = (struct sockaddr_in *)&target->address;
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(address);
	target->size = sizeof(*in);
	target->token = token || is_own(address);
	target->group = address >= 0xe0000000u;
	(void)inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
	(void)snprintf(target->text, sizeof(target->text), "%s:%u", text, port);
}

void reach_add6(ReachTargets *targets, const char *text, uint16_t port, unsigned scope, bool token)
{
	ReachTarget *target = add(targets);
	struct sockaddr_in6 *in6;

	if (!target)
		return;
	in6 = (struct sockaddr_in6 *)&target->address;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = scope;
	(void)inet_pton(AF_INET6, text, &in6->sin6_addr);
	target->size = sizeof(*in6);
	target->token = token;
	target->group = in6->sin6_addr.s6_addr[0] == 0xff;
	(void)snprintf(target->text, sizeof(target->text), "[%s]:%u", text, port);
}

static void add_range(const Probing *p, ReachTargets *targets, uint32_t address, uint8_t length)
{
	uint32_t first = length >= 32 ? address : address + 1;

	/* The first of them may be allowed; then the next that is not. */
	for (unsigned i = 0; i < 256; i++, first++) {
		if (reach_is_allowed(p, first) || first == ROUTES_FAR_END || first == ROUTES_SOURCE) {
			if (length >= 32)
				return;
			continue;
		}
		reach_add4(targets, first, PORT, false);
		return;
	}
}

void reach_add_denied(const Probing *p, ReachTargets *targets)
{
	const Expectations *e = p->expectations;

	if (e && e->n_routes > 0) {
		for (size_t i = 0; i < e->n_routes; i++)
			if (e->routes[i].verdict == ROUTE_DENY)
				add_range(p, targets, e->routes[i].address, e->routes[i].length);
		return;
	}
	for (const DeniedRange *range = denied_ranges; range->reason; range++)
		add_range(p, targets, range->prefix.address, range->prefix.length);
}

void reach_add_baits(const Probing *p, ReachTargets *targets)
{
	static const BaitKind kinds[] = { BAIT_TCP4, BAIT_UDP4 };

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		const ExpectedBait *bait = probing_bait(p, kinds[i]);
		uint32_t forwarder = p->expectations ? p->expectations->forwarder : 0;
		const uint32_t addresses[] = { INADDR_LOOPBACK, ROUTES_FAR_END, 0x7f000035u,
					       forwarder ? forwarder : INADDR_LOOPBACK };

		for (size_t j = 0; bait && j < ELEMENTSOF(addresses); j++) {
			reach_add4(targets, addresses[j], bait->port, true);
			if (targets->n > 0) {
				targets->targets[targets->n - 1].tcp_only = kinds[i] == BAIT_TCP4;
				targets->targets[targets->n - 1].udp_only = kinds[i] == BAIT_UDP4;
			}
		}
	}
}

static void found(Probing *p, const Try *try, const char *what)
{
	probing_escaped(p, "%s to %s by %s%s%s %s", try->udp ? "UDP" : "TCP", try->target->text,
			try->way->name ?: way_of(try->way)->name, try->device_name ? " " : "",
			try->device_name ? try->device_name : "", what);
}

static socklen_t target_address(const Try *try, struct sockaddr_storage *ret)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&try->target->address;
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };

	*ret = try->target->address;
	if (!try->way->mapped || in->sin_family != AF_INET)
		return try->target->size;
	mapped.sin6_port = in->sin_port;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	*ret = (struct sockaddr_storage){ 0 };
	memcpy(ret, &mapped, sizeof(mapped));
	return sizeof(mapped);
}

static int send_datagram(const Try *try)
{
	const struct icmphdr echo = { .type = ICMP_ECHO };
	struct sockaddr_storage to;
	socklen_t size = target_address(try, &to);

	return way_send(way_of(try->way), try->fd, try->device, (const struct sockaddr *)&to, size,
			try->way->ping ? (const void *)&echo : message_text,
			try->way->ping ? sizeof(echo) : sizeof(message_text) - 1);
}

static void end(Tries *tries, Try *try, int error)
{
	close_fdp(&try->fd);
	if (error == 0)
		return;
	/* ENOBUFS is the filter's: it dropped the packet (ip(7), IP_RECVERR). */
	if (error == ENOMEM) {
		tries->starved++;
		return;
	}
	tries->refused++;
	tries->error = error;
}

/* The kernel has no such way, or has nothing left to try it with. */
static void count_impossible(Tries *tries, int error)
{
	if (!probing_is_starved(error) || error == EADDRNOTAVAIL)
		tries->impossible++;
	else
		tries->starved++;
}

/* A refusal that came from another machine. */
static bool is_answer(const Try *try, int error)
{
	return error == ECONNREFUSED && !try->target->token;
}

static void start(Probing *p, Tries *tries, const Try *template)
{
	const ReachWay *way = template->way;
	struct sockaddr_storage to;
	const int on = 1;
	Try try = *template;
	int r, family;

	socklen_t size = target_address(&try, &to);

	family = to.ss_family;
	try.fd = socket(family, (try.udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC,
			way->protocol);
	if (try.fd < 0) {
		count_impossible(tries, errno);
		return;
	}
	(void)setsockopt(try.fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	/* Else a datagram that is not connected never learns of its refusal (ip(7)). */
	(void)setsockopt(try.fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	if (family == AF_INET6)
		(void)setsockopt(try.fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	r = way_prepare(way_of(way), try.fd, try.device_name, try.device,
			((const struct sockaddr_in *)&try.target->address)->sin_addr.s_addr);
	if (r == 0 && way->prepare)
		r = way->prepare(try.fd, try.target, try.device_name, try.device);
	if (r < 0) {
		close_fdp(&try.fd);
		count_impossible(tries, -r);
		return;
	}
	if (try.udp)
		r = send_datagram(&try);
	else if (connect(try.fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
		r = -errno;
	try.sent = try.udp;
	if (try.udp && r == 0 && try.device_name && streq(try.device_name, ROUTES_JAIL_DEVICE))
		tries->taken++;
	if (r < 0) {
		if (is_answer(&try, -r))
			found(p, &try, "was refused by who is there");
		end(tries, &try, -r);
		return;
	}
	tries->tries[tries->n++] = try;
}

static bool is_token(const Probing *p, const char *data, size_t size)
{
	const char *token = p->expectations ? p->expectations->bait_token : NULL;

	return token && memmem(data, size, token, strlen(token));
}

/*
 * Another probe may have sent it: to a port of the jail's own loopback that happens to be this one. So it has
 * to come from the target, or, of a group, not be what probes send.
 */
static bool is_from_target(const Try *try, const struct sockaddr_storage *from, const char *data, size_t size)
{
	struct sockaddr_storage to;

	if (!try->udp)
		return true;
	if (try->target->group)
		return size != sizeof(message_text) - 1 || memcmp(data, message_text, size) != 0 ||
		       (from->ss_family == AF_INET &&
			!is_own(ntohl(((const struct sockaddr_in *)from)->sin_addr.s_addr)));
	(void)target_address(try, &to);
	if (from->ss_family != to.ss_family)
		return false;
	if (to.ss_family == AF_INET)
		return ((const struct sockaddr_in *)from)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)&to)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)from)->sin6_addr,
		      &((const struct sockaddr_in6 *)&to)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static void take_event(Probing *p, Tries *tries, Try *try)
{
	char data[256];
	int error = 0;
	struct sockaddr_storage from = { 0 };
	socklen_t size = sizeof(error), from_size = sizeof(from);
	ssize_t n;

	if (!try->udp) {
		error = -stream_outcome(try->fd);
		if (error == EINPROGRESS)
			return;
	} else if (getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
		error = errno;
	}
	if (error) {
		if (is_answer(try, error))
			found(p, try, "was refused by who is there");
		end(tries, try, error);
		return;
	}
	if (!try->sent) {
		/* Connected. An own address may have a listener of the jail's. */
		if (!try->target->token) {
			found(p, try, "is connected");
			end(tries, try, 0);
			return;
		}
		try->sent = true;
		if (send(try->fd, message_text, sizeof(message_text) - 1, MSG_NOSIGNAL) < 0)
			end(tries, try, errno);
		return;
	}
	n = recvfrom(try->fd, data, sizeof(data), 0, (struct sockaddr *)&from, &from_size);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && !try->target->token && !is_from_target(try, &from, data, (size_t)n))
		return;
	if (n > 0 && (!try->target->token || is_token(p, data, (size_t)n)))
		found(p, try, try->target->token ? "answered with the token" : "was answered");
	else if (n < 0 && is_answer(try, errno))
		found(p, try, "was refused by who is there");
	end(tries, try, n < 0 ? errno : n == 0 ? ECONNRESET : 0);
}

static void wait_for_answers(Probing *p, Tries *tries, unsigned msec)
{
	uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + msec * USEC_PER_MSEC;

	for (;;) {
		uint64_t now = clock_usec(CLOCK_MONOTONIC);
		size_t open = 0;

		for (size_t i = 0; i < tries->n; i++) {
			const Try *try = &tries->tries[i];

			tries->polls[i] = (struct pollfd){ .fd = try->fd < 0 ? -1 : try->fd,
							   .events = try->sent ? POLLIN : POLLOUT };
			open += try->fd >= 0;
		}
		if (open == 0 || now >= deadline || p->n_escaped >= 20)
			break;
		if (poll(tries->polls, tries->n, (int)((deadline - now) / USEC_PER_MSEC) + 1) < 0 &&
		    errno != EINTR)
			break;
		for (size_t i = 0; i < tries->n; i++)
			if (tries->tries[i].fd >= 0 && tries->polls[i].revents)
				take_event(p, tries, &tries->tries[i]);
	}
	for (size_t i = 0; i < tries->n; i++) {
		tries->silent += tries->tries[i].fd >= 0;
		close_fdp(&tries->tries[i].fd);
	}
}

/* "10.1.2.3  0x1  0x2  02:00:00:00:00:01  *  jail0" (proc(5)): who is at the other end of the wire has
 * answered. */
static void look_for_neighbours(Probing *p, const ReachTargets *targets)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/net/arp", "re");
	char line[256], address[64], device[64];
	unsigned flags;

	if (!file)
		probing_unclear(p, "who has answered: %s", probing_error(errno));
	while (file && fgets(line, sizeof(line), file)) {
		struct in_addr in;

		if (sscanf(line, "%63s %*s %x %*s %*s %63s", address, &flags, device) != 3 ||
		    !(flags & ARP_COMPLETE) || inet_pton(AF_INET, address, &in) != 1)
			continue;
		for (size_t i = 0; i < targets->n; i++) {
			const struct sockaddr_in *to =
				(const struct sockaddr_in *)&targets->targets[i].address;

			if (to->sin_family == AF_INET && to->sin_addr.s_addr == in.s_addr &&
			    ntohl(in.s_addr) != ROUTES_FAR_END) {
				probing_escaped(p, "%s has answered on %s", address, device);
				break;
			}
		}
	}
}

/* Who is there may be silent: a route that leads out is enough. */
static void look_for_routes(Probing *p, const ReachTargets *targets)
{
	unsigned jail = if_nametoindex(ROUTES_JAIL_DEVICE);
	uint32_t last = 0, device = 0;
	uint8_t type = 0;

	for (size_t i = 0; jail && i < targets->n; i++) {
		const struct sockaddr_in *to = (const struct sockaddr_in *)&targets->targets[i].address;
		uint32_t address = ntohl(to->sin_addr.s_addr);
		int r;

		/* Several ports of one address follow each other. */
		if (to->sin_family != AF_INET || targets->targets[i].token || address == last)
			continue;
		last = address;
		r = dump_lookup(address, &type, &device);
		if (r == 0 && device == jail && type != RTN_LOCAL)
			probing_escaped(p, "the route to %s leads out", targets->targets[i].text);
		else if (r < 0 && probing_is_starved(-r))
			probing_unclear(p, "the route to %s: %s", targets->targets[i].text, probing_error(r));
	}
}

static void start_all(Probing *p, Tries *tries, const ReachWay *way, const ReachTargets *targets,
		      const char *device_name, unsigned device)
{
	for (size_t i = 0; i < targets->n; i++)
		for (int udp = 0; udp < 2; udp++) {
			const ReachTarget *target = &targets->targets[i];

			if ((udp ? way->tcp_only : way->udp_only) ||
			    (udp ? target->tcp_only : target->udp_only))
				continue;
			if (tries->n >= TRIES_MAX) {
				tries->starved++;
				continue;
			}
			start(p, tries,
			      &(Try){ .way = way,
				      .target = target,
				      .udp = udp,
				      .device = device,
				      .device_name = device_name });
		}
}

unsigned reach_try(Probing *p, const ReachWay *tried, size_t n_ways, const ReachTargets *targets)
{
	_cleanup_free_ Try *all = calloc(TRIES_MAX, sizeof(*all));
	_cleanup_free_ struct pollfd *polls = calloc(TRIES_MAX, sizeof(*polls));
	struct if_nameindex *devices = if_nameindex();
	Tries tries = { .tries = all, .polls = polls };
	int64_t start_msec = clock_msec(CLOCK_MONOTONIC);

	if (!all || !polls || !devices) {
		probing_unclear(p, "what is needed for it: %s", probing_error(errno));
		return 0;
	}
	for (size_t i = 0; i < n_ways; i++) {
		if (way_of(&tried[i]) == &ways[WAY_PLAIN] && !tried[i].prepare && !tried[i].mapped)
			look_for_routes(p, targets);
		if (!is_by_device(&tried[i])) {
			start_all(p, &tries, &tried[i], targets, NULL, 0);
			continue;
		}
		for (size_t j = 0; devices[j].if_index; j++)
			start_all(p, &tries, &tried[i], targets, devices[j].if_name, devices[j].if_index);
	}
	/* Where sending takes long answers do too. */
	wait_for_answers(p, &tries,
			 (targets->msec ? targets->msec : REACH_MSEC) +
				 2 * (unsigned)(clock_msec(CLOCK_MONOTONIC) - start_msec));
	look_for_neighbours(p, targets);
	if_freenameindex(devices);
	if (tries.starved > 0 || targets->left_out > 0)
		probing_unclear(p, "%u attempts", tries.starved + targets->left_out);
	if (tries.refused + tries.silent + tries.impossible > 0)
		probing_blocked(
			p, "%zu addresses: %u attempts refused%s%s%s, %u without an answer, %u not possible",
			targets->n, tries.refused, tries.error ? " (" : "",
			tries.error ? probing_error(tries.error) : "", tries.error ? ")" : "", tries.silent,
			tries.impossible);
	return tries.taken;
}
