/* SPDX-License-Identifier: MIT */

/*
 * The ways round the routes, tried by hand: without filter they carry datagrams and connections to denied
 * destinations (so the tests here try the right thing), with the denial as shipped nothing is seen on the
 * tap.
 */

#include "service/net/link.h"
#include "service/net/tap.h"
#include "service/net/ways.h"
#include "tests/net/jail.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

static bool with_filter;
static const char *device; /* that the ways name */

static int filter_or_not(Denial *denial, MeantKind kind, char **ret_problem)
{
	return with_filter ? tap_step_filter(denial, kind, ret_problem) : 0;
}

/* clang-format off */
const DenialStep denial_steps[] = {
	{ "loopback", link_step_loopback, MEANT_NOTHING },
	{ "tables", denial_part_tables, MEANT_NOTHING },
	{ "address", denial_send, MEANT_ADDRESS },
	{ "filter", filter_or_not, MEANT_NOTHING },
	{ "reverse-path", link_step_reverse_path, MEANT_NOTHING },
	{ "device", link_step_jail, MEANT_NOTHING },
	{ "far-end", denial_send, MEANT_FAR_END },
	{ "neighbour", denial_send, MEANT_NEIGHBOUR },
	{ "prohibits", denial_send, MEANT_PROHIBIT },
	{ "ledger", link_step_ledger, MEANT_LEDGER },
	{ "forwarder", denial_send, MEANT_FORWARDER },
	{ "allow-ip", denial_send, MEANT_ALLOW },
	{ "default", denial_send, MEANT_DEFAULT },
	{ NULL, NULL, MEANT_NOTHING },
};
/* clang-format on */

static void try(int fd, WayNumber way, bool stream, const struct sockaddr_in *to)
{
	if (stream)
		(void)connect(fd, (const struct sockaddr *)to, sizeof(*to));
	else
		(void)way_send(&ways[way], fd, if_nametoindex(device), (const struct sockaddr *)to,
			       sizeof(*to), "x", 1);
}

/* Tell the kernel that the address that it asks for is a machine next door, as pasta does for every address.
 */
static void answer_arp(int tap_fd, const uint8_t *request)
{
	struct ether_arp arp;
	uint8_t frame[ETH_HLEN + sizeof(arp)], sender[4];
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };

	memcpy(&arp, request + ETH_HLEN, sizeof(arp));
	memcpy(sender, arp.arp_spa, 4);
	arp.arp_op = htons(ARPOP_REPLY);
	memcpy(arp.arp_tha, arp.arp_sha, 6);
	memcpy(arp.arp_sha, mac, 6);
	memcpy(arp.arp_spa, arp.arp_tpa, 4);
	memcpy(arp.arp_tpa, sender, 4);
	memcpy(frame, request + 6, 6);
	memcpy(frame + 6, mac, 6);
	memcpy(frame + 12, request + 12, 2);
	memcpy(frame + ETH_HLEN, &arp, sizeof(arp));
	assert_int_equal(write(tap_fd, frame, sizeof(frame)), sizeof(frame));
}

/* Frames that wait on the tap. ARP is answered. Return: how many had an IPv4 packet to the address; *ret_any
 * counts all. */
static unsigned count_frames(int tap_fd, uint32_t address, unsigned *ret_any)
{
	uint8_t frame[2048];
	unsigned found = 0;
	ssize_t n;

	while ((n = read(tap_fd, frame, sizeof(frame))) > 0) {
		uint16_t protocol;
		uint32_t destination;

		(*ret_any)++;
		memcpy(&protocol, frame + 12, 2);
		if (ntohs(protocol) == ETH_P_ARP)
			answer_arp(tap_fd, frame);
		memcpy(&destination, frame + ETH_HLEN + 16, 4);
		if (ntohs(protocol) == ETH_P_IP && ntohl(destination) == address)
			found++;
	}
	return found;
}

/* JailFunction; text: "LEDGER WAY STREAM ADDRESS". Return: 0 nothing, 1 some frame, 2 a packet to the
 * address. */
static int one_try(const Jail *jail, const char *text, char **ret_problem)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	unsigned way, stream, ledger, address, any = 0, found = 0;
	const int on = 1;
	_cleanup_close_ int fd = FD_NONE;

	if (sscanf(text, "%u %u %u %u", &ledger, &way, &stream, &address) != 4)
		return -EINVAL;
	device = ledger ? "deny0" : "jail0";
	to.sin_addr.s_addr = htonl(address);
	fd = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	(void)way_prepare(&ways[way], fd, device, if_nametoindex(device), to.sin_addr.s_addr);
	try(fd, way, stream, &to);
	/* Delivery is within the call; an answered ARP request lets the packet behind it go, within the
	 * write. */
	found = count_frames(jail->sockets.tap_fd, address, &any);
	return found ? 2 : any ? 1 : 0;
}

static const uint32_t destinations[] = {
	0x7f000001, 0x0a000001, 0xac100001, 0xc0a80001, 0x64400001, 0xa9fea9fe, 0xa83f8110, 0xc0000001,
	0xc0000009, 0xc6120001, 0xe0000001, 0xeffffffa, 0xf0000001, 0xffffffff, 0x08080808, 0x0808a001,
};
/* Open by jail0, and not by the ledger. */
#define PUBLIC 0x09090909u

static unsigned try_all(bool filter, bool ledger, unsigned packets[WAY_MAX][2])
{
	_cleanup_free_ char *problem = NULL;
	Denial denial = { 0 };
	unsigned frames = 0;
	Jail jail;

	with_filter = filter;
	jail_routes_make(0);
	if (jail_start(&jail, &problem) < 0 ||
	    denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0)
		fail_msg("%s", problem);
	for (unsigned way = 0; way < WAY_MAX; way++)
		for (unsigned stream = 0; stream < 2; stream++)
			for (size_t i = 0; i < ELEMENTSOF(destinations) + ledger; i++) {
				uint32_t to = i < ELEMENTSOF(destinations) ? destinations[i] : PUBLIC;
				char text[64];
				int r;

				if (to == PUBLIC && !ways[way].by_device)
					continue;
				/* Only for a datagram do these choose; a connection takes the route. */
				if (to == PUBLIC && (way == WAY_PACKET_INFO || way == WAY_UNICAST) && stream)
					continue;
				snprintf(text, sizeof(text), "%u %u %u %u", ledger, way, stream, to);
				r = jail_run(&jail, one_try, text, &problem);
				assert_true(r >= 0);
				packets[way][stream] += r == 2;
				frames += r > 0;
				if (r > 0 && filter)
					print_error("%s, %s: 0x%08x\n", ways[way].name,
						    stream ? "TCP" : "UDP", to);
			}
	/* What such tries leave in the neighbour table is the kernel's own doing, and no reason to end a
	 * session. */
	if (filter && denial_read_back(&denial, &problem) < 0)
		fail_msg("after the tries: %s", problem);
	denial_done(&denial);
	jail_stop(&jail);
	return frames;
}

static void test_without_filter(void **state)
{
	unsigned packets[WAY_MAX][2] = { 0 };

	assert_true(try_all(false, false, packets) > 0);
	for (unsigned way = 0; way < WAY_MAX; way++)
		print_message("%-24s reached %2u of %zu denied destinations by UDP, %2u by TCP\n",
			      ways[way].name, packets[way][0], ELEMENTSOF(destinations), packets[way][1]);
	assert_true(packets[WAY_DEVICE][0] > 8 && packets[WAY_DEVICE][1] > 8);
	assert_true(packets[WAY_INDEX][0] > 8 && packets[WAY_INDEX][1] > 8);
	assert_true(packets[WAY_UNICAST][0] > 8);
	assert_true(packets[WAY_PACKET_INFO][0] > 8);
	assert_true(packets[WAY_MULTICAST][0] > 0);
	assert_true(packets[WAY_DEVICE_NO_ROUTE][0] > 8);
	assert_int_equal(packets[WAY_PLAIN][1], 0);
}

static void test_with_filter(void **state)
{
	unsigned packets[WAY_MAX][2] = { 0 };

	assert_int_equal(try_all(true, false, packets), 0);
}

static int close_ledger(const Jail *jail, const char *text, char **ret_problem)
{
	return close(jail->sockets.ledger_fd) < 0 ? -errno : 0;
}

/* The prohibit answers in the ledger's stead. */
static int is_refused(const Jail *jail, const char *text, char **ret_problem)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };

	for (size_t i = 1; i < ELEMENTSOF(destinations); i++) {
		/* The far end's address is the jail's own. */
		if (destinations[i] == 0xc0000001)
			continue;
		to.sin_addr.s_addr = htonl(destinations[i]);
		if (if_nametoindex("deny0") != 0 ||
		    sendto(fd, "x", 1, MSG_NOSIGNAL, (const struct sockaddr *)&to, sizeof(to)) >= 0)
			return 1;
	}
	return 0;
}

/* By the ledger's device nothing comes to the tap, wherever it is to go, and filter or not. */
static void test_by_ledger(void **state)
{
	unsigned packets[WAY_MAX][2] = { 0 };

	assert_int_equal(try_all(true, true, packets), 0);
	assert_int_equal(try_all(false, true, packets), 0);
}

/* What a killed session leaves: deny0 is gone with its descriptors, its routes with it. */
static void test_without_reader(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Denial denial = { 0 };
	Jail jail;

	with_filter = true;
	jail_routes_make(0);
	if (jail_start(&jail, &problem) < 0 ||
	    denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0)
		fail_msg("%s", problem);
	assert_int_equal(jail_run(&jail, close_ledger, NULL, &problem), 0);
	jail.sockets.ledger_fd = close_fd(jail.sockets.ledger_fd);
	assert_int_equal(jail_run(&jail, is_refused, NULL, &problem), 0);
	if (jail_run(&jail, jail_self_test, NULL, &problem) < 0)
		fail_msg("%s", problem);
	assert_int_equal(denial_read_back(&denial, &problem), -EREMCHG);
	assert_non_null(strstr(problem, "deny0"));
	denial_done(&denial);
	jail_stop(&jail);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_filter),
		cmocka_unit_test(test_with_filter),
		cmocka_unit_test(test_by_ledger),
		cmocka_unit_test(test_without_reader),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
