/* SPDX-License-Identifier: MIT */

/*
 * Every way by which a process without any privilege can choose its output device, tried for real before the
 * wire is there. The kernel hands a frame to the tap within the call that sends it, so what got through waits
 * on the tap when the call returns; the frame of the public address, sent last, proves that the tap was
 * listening.
 *
 * The far end itself, 192.0.0.1, is no destination of this test: a frame to it carries the one link address
 * that the filter lets pass, whatever the way.
 */

#include "service/net/self-test.h"

#include "base/clock.h"
#include "service/net/netlink.h"
#include "service/net/public-address.h"
#include "service/net/ways.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#define PORT 9 /* discard, RFC 863 */
#define DELIVERY_MSEC 1000
/* Each unresolved destination takes a place in a table that all namespaces share (arp(7), gc_thresh): forget
 * often. */
#define DESTINATIONS_AT_ONCE 32u
#define FRAME_MAX 65536u

/* A way with one of the devices. */
typedef struct Attempt {
	const Way *way;
	unsigned index;
	int fd; /* FD_NONE where the kernel has no such way */
	bool ledger;
} Attempt;

typedef struct SelfTest {
	int tap_fd, index;
	Attempt attempts[2 * WAYS_TO_DEVICES];
	size_t n_attempts;
	Netlink *netlink;
	uint32_t *destinations; /* host order */
	size_t n_destinations;
	uint8_t *frame;
} SelfTest;

static void self_test_done(SelfTest *test)
{
	for (size_t i = 0; i < test->n_attempts; i++)
		close_fdp(&test->attempts[i].fd);
	test->netlink = netlink_free(test->netlink);
	free(test->destinations);
	free(test->frame);
}

static int open_way(const Way *way, const char *device, unsigned index, int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	int r;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) < 0)
		return -errno;
	r = way_prepare(way, fd, device, index, 0);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r == -ENOPROTOOPT ? 0 : r;
}

/* By the ledger's device nothing may come to the tap either. Its plain socket is that of the tap. */
static int open_ways(SelfTest *test)
{
	static const char *const devices[] = { ROUTES_JAIL_DEVICE, ROUTES_LEDGER_DEVICE };

	for (size_t device = 0; device < ELEMENTSOF(devices); device++) {
		unsigned index = if_nametoindex(devices[device]);

		for (size_t i = device; i < WAYS_TO_DEVICES && index > 0; i++) {
			Attempt *attempt = &test->attempts[test->n_attempts++];
			int r;

			*attempt = (Attempt){
				.way = &ways[i], .index = index, .fd = FD_NONE, .ledger = device == 1
			};
			r = open_way(attempt->way, devices[device], index, &attempt->fd);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* An address of the row, counted from one of its ends, that no other row lets out and that is not ours. */
static bool pick(const RouteTable *routes, const RouteRow *row, bool from_end, uint32_t *ret)
{
	uint32_t first = route_row_first(row), last = route_row_last(row);
	/* A network's own number is no host; one after it is a more telling destination. */
	uint32_t address = from_end ? last : first + (last - first > 1);

	for (unsigned attempt = 0; attempt < 256; attempt++) {
		bool out = address == ROUTES_SOURCE;

		for (size_t i = 0; !out && i < routes->n_rows; i++)
			out = (routes->rows[i].verdict == ROUTE_ALLOW ||
			       routes->rows[i].verdict == ROUTE_DNS) &&
			      route_row_covers(&routes->rows[i], address);
		if (!out) {
			*ret = address;
			return true;
		}
		if (address == (from_end ? first : last))
			return false;
		address += from_end ? UINT32_MAX : 1;
	}
	return false;
}

static int choose_destinations(SelfTest *test, const RouteTable *routes)
{
	size_t n = 0;

	test->destinations = calloc(2 * routes->n_rows + 2, sizeof(*test->destinations));
	if (!test->destinations)
		return -ENOMEM;
	test->destinations[n++] = INADDR_LOOPBACK;
	/* The one whose link address the filter lets pass. */
	test->destinations[n++] = ROUTES_FAR_END;
	for (size_t i = 0; i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];
		uint32_t address;

		if (row->verdict != ROUTE_DENY)
			continue;
		if (pick(routes, row, false, &address))
			test->destinations[n++] = address;
		if (row->length < 32 && pick(routes, row, true, &address))
			test->destinations[n++] = address;
	}
	test->n_destinations = n;
	return 0;
}

static int send_probe(const Attempt *attempt, uint32_t address, const void *payload, size_t size)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(address),
	};

	return way_send(attempt->way, attempt->fd, attempt->index, (const struct sockaddr *)&to, sizeof(to),
			payload, size);
}

/* Return: the size of a frame that waits, 0 for none, a negative errno. */
static ssize_t read_frame(SelfTest *test)
{
	for (;;) {
		ssize_t n = read(test->tap_fd, test->frame, FRAME_MAX);

		if (n > 0)
			return n;
		if (n == 0)
			return -EIO;
		if (errno == EAGAIN)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* What the frame was for, as far as it says: the IPv4 destination, or the address that ARP asks for (RFC
 * 826). */
static uint32_t frame_destination(const uint8_t *frame, size_t size)
{
	uint16_t protocol;
	uint32_t address = 0;
	size_t offset;

	if (size < ETH_HLEN)
		return 0;
	memcpy(&protocol, frame + 12, sizeof(protocol));
	offset = ntohs(protocol) == ETH_P_IP    ? ETH_HLEN + 16
		 : ntohs(protocol) == ETH_P_ARP ? ETH_HLEN + 24
						: size;
	if (size < offset + sizeof(address))
		return 0;
	memcpy(&address, frame + offset, sizeof(address));
	return ntohl(address);
}

static int got_through(SelfTest *test, const char *way, size_t size, char **ret_problem)
{
	uint32_t destination = frame_destination(test->frame, size);
	char name[ADDRESS_TEXT_MAX];

	if (destination == 0)
		return refuse(ret_problem, -ENOTUNIQ,
			      "%s: a frame got through the filter of " ROUTES_JAIL_DEVICE, way);
	return refuse(ret_problem, -ENOTUNIQ,
		      "%s: a frame to %s got through the filter of " ROUTES_JAIL_DEVICE, way,
		      ipv4_to_text(destination, 32, name));
}

static int nothing_waits(SelfTest *test, const char *way, char **ret_problem)
{
	ssize_t n = read_frame(test);

	if (n < 0)
		return refuse(ret_problem, (int)n, "the tap cannot be read: %s", strerror((int)-n));
	return n > 0 ? got_through(test, way, (size_t)n, ret_problem) : 0;
}

static int try_way(SelfTest *test, const Attempt *attempt, const uint32_t *destinations, size_t n,
		   char **ret_problem)
{
	static const char payload[] = "denied";

	if (attempt->fd < 0)
		return 0;
	/* How a denied one fails says nothing about the frame: only the tap counts. */
	for (size_t i = 0; i < n; i++)
		(void)send_probe(attempt, destinations[i], payload, sizeof(payload));
	return nothing_waits(test, attempt->way->name, ret_problem);
}

/* The unresolved entries, never the far end's. One that is not there is no error. */
static int forget_neighbours(SelfTest *test, const uint32_t *addresses, size_t n)
{
	struct nlmsghdr *messages[DESTINATIONS_AT_ONCE] = { 0 };
	NetlinkAnswer *answers = calloc(DESTINATIONS_AT_ONCE, sizeof(*answers));
	size_t used = 0;
	int r = answers ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct {
			struct ndmsg body;
			struct rtattr attribute;
			uint32_t address;
		} request = { { .ndm_family = AF_INET, .ndm_ifindex = test->index },
			      { RTA_LENGTH(sizeof(uint32_t)), NDA_DST },
			      htonl(addresses[i]) };

		if (addresses[i] == ROUTES_FAR_END)
			continue;
		messages[used] = netlink_request(RTM_DELNEIGH, 0, &request, sizeof(request));
		r = messages[used++] ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = netlink_program(test->netlink, messages, used, answers);
	for (size_t i = 0; i < used; i++)
		free(messages[i]);
	netlink_answers_free(answers, DESTINATIONS_AT_ONCE);
	return r;
}

static int try_denied(SelfTest *test, uint32_t public_address, char **ret_problem)
{
	int r = 0;

	for (size_t done = 0; r >= 0 && done < test->n_destinations; done += DESTINATIONS_AT_ONCE) {
		size_t n = MIN_OF(test->n_destinations - done, (size_t)DESTINATIONS_AT_ONCE);

		for (size_t w = 0; r >= 0 && w < test->n_attempts; w++)
			r = try_way(test, &test->attempts[w], test->destinations + done, n, ret_problem);
		if (r < 0)
			break;
		r = forget_neighbours(test, test->destinations + done, n);
		if (r < 0)
			return refuse(ret_problem, r, "cannot clear the neighbours after the self-test: %s",
				      strerror(-r));
	}
	/* What is for the ledger alone does not become more because it has another destination. */
	for (size_t w = 0; r >= 0 && w < test->n_attempts; w++)
		if (test->attempts[w].ledger && test->attempts[w].way->by_device)
			r = try_way(test, &test->attempts[w], &public_address, 1, ret_problem);
	return r;
}

typedef struct ProbeFrame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t token[16];
} __attribute__((packed)) ProbeFrame;

static bool is_probe(const uint8_t *bytes, size_t size, uint32_t address, const uint8_t token[static 16])
{
	static const uint8_t far_end[ETH_ALEN] = ROUTES_FAR_END_MAC;
	ProbeFrame frame;

	if (size != sizeof(frame))
		return false;
	memcpy(&frame, bytes, sizeof(frame));
	return memcmp(frame.ethernet.h_dest, far_end, ETH_ALEN) == 0 &&
	       ntohs(frame.ethernet.h_proto) == ETH_P_IP && frame.ip.version == 4 && frame.ip.ihl == 5 &&
	       frame.ip.protocol == IPPROTO_UDP && ntohl(frame.ip.saddr) == ROUTES_SOURCE &&
	       ntohl(frame.ip.daddr) == address && ntohs(frame.udp.dest) == PORT &&
	       memcmp(frame.token, token, sizeof(frame.token)) == 0;
}

static int try_public(SelfTest *test, uint32_t address, char **ret_problem)
{
	const char *way = ways[WAY_PLAIN].name;
	int64_t deadline = clock_msec(CLOCK_MONOTONIC) + DELIVERY_MSEC;
	char name[ADDRESS_TEXT_MAX];
	uint8_t token[16];
	ssize_t n;
	int r;

	ipv4_to_text(address, 32, name);
	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return -EIO;
	r = send_probe(&test->attempts[0], address, token, sizeof(token));
	if (r < 0)
		return refuse(ret_problem, -ENOTUNIQ, "nothing can be sent to the public address %s: %s",
			      name, strerror(-r));

	while ((n = read_frame(test)) == 0) {
		struct pollfd p = { .fd = test->tap_fd, .events = POLLIN };
		int64_t left = deadline - clock_msec(CLOCK_MONOTONIC);

		if (left <= 0)
			return refuse(ret_problem, -ENOTUNIQ,
				      "the frame to the public address %s did not reach " ROUTES_JAIL_DEVICE,
				      name);
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
	}
	if (n < 0)
		return refuse(ret_problem, (int)n, "the tap cannot be read: %s", strerror((int)-n));
	if (!is_probe(test->frame, (size_t)n, address, token))
		return got_through(test, way, (size_t)n, ret_problem);
	return nothing_waits(test, way, ret_problem);
}

int self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem)
{
	_cleanup_(self_test_done) SelfTest test = { .tap_fd = tap_fd };
	_cleanup_close_ int fd = FD_NONE;
	uint32_t address;
	int r, flags;

	flags = fcntl(tap_fd, F_GETFL);
	if (flags < 0 || fcntl(tap_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return refuse(ret_problem, -errno, "the tap cannot be read: %s", strerror(errno));
	test.index = (int)if_nametoindex(ROUTES_JAIL_DEVICE);
	if (test.index <= 0)
		return refuse(ret_problem, -ENODEV, "there is no " ROUTES_JAIL_DEVICE " to test");
	test.frame = malloc(FRAME_MAX);
	if (!test.frame)
		return -ENOMEM;

	r = public_address_find(routes, &address);
	if (r < 0)
		return refuse(ret_problem, r, "the denied ranges leave no public address");
	r = choose_destinations(&test, routes);
	if (r < 0)
		return r;
	r = netlink_open(NETLINK_ROUTE, 0, &fd);
	if (r >= 0)
		r = netlink_new(fd, NETLINK_ROUTE, &test.netlink);
	if (r >= 0)
		r = open_ways(&test);
	if (r < 0)
		return refuse(ret_problem, r, "the self-test cannot be prepared: %s", strerror(-r));

	r = nothing_waits(&test, "before the first probe", ret_problem);
	if (r >= 0)
		r = try_denied(&test, address, ret_problem);
	if (r >= 0)
		r = try_public(&test, address, ret_problem);
	return r;
}
