/* SPDX-License-Identifier: MIT */

/*
 * The table of a namespace changed while something inside sends all the while: what neither table allows
 * never leaves, what both allow always does, and what is there afterwards is what was meant.
 */

#include "service/net/denial.h"
#include "service/net/diag.h"
#include "tests/net/jail.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CHANGES 300u
#define PORT 9

/* Shared with the sender: written by it while it runs. */
static struct Seen {
	unsigned n_frames, n_rounds;
	uint32_t forbidden; /* where a frame went that neither table allows, or 0 */
} * seen;

static HostNetwork host;
static HostPrefix subnets[] = { { 0x0a090100, 24 }, { 0x08080000, 16 } };

/* What the configuration text and the host (n_subnets of subnets) make. */
static RouteTable table_of(const char *text, size_t n_subnets)
{
	_cleanup_free_ char *problem = NULL;
	_cleanup_(config_done) Config config = CONFIG_INIT;
	RouteTable table = { 0 };

	host = (HostNetwork){ .subnets = subnets, .n_subnets = n_subnets, .uplink = true };
	if (config_parse("test", text, strlen(text), &config, &problem) < 0 ||
	    routes_make_again(&host, &config, 0xc6336435, &table, &problem) < 0)
		fail_msg("%s", problem);
	return table;
}

static pid_t sender;

/* In neither table of any test; 192.0.0.1 is the far end, which a route may name and no socket reach. */
static const uint32_t forbidden[] = { ROUTES_FAR_END, 0x0a090105, 0x0ac80001, 0xa9fea9fe, 0x0a010204 };

static void send_to(int fd, uint32_t address)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(address) };

	(void)sendto(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to, sizeof(to));
}

static void read_frames(int tap_fd)
{
	uint8_t frame[2048];
	ssize_t n;

	while ((n = read(tap_fd, frame, sizeof(frame))) > 0) {
		struct iphdr ip;

		if ((size_t)n < 14 + sizeof(ip) || frame[12] != 0x08 || frame[13] != 0)
			continue;
		memcpy(&ip, frame + 14, sizeof(ip));
		seen->n_frames++;
		for (size_t i = 0; i < ELEMENTSOF(forbidden); i++)
			if (ip.daddr == htonl(forbidden[i]))
				seen->forbidden = forbidden[i];
	}
}

static _noreturn_ void send_always(int tap_fd)
{
	int plain = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), bound, near, on = 1;

	bound = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	near = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (plain < 0 || bound < 0 || near < 0 || fcntl(tap_fd, F_SETFL, O_NONBLOCK) < 0)
		_exit(1);
	for (int fd = bound;; fd = near) {
		if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ROUTES_JAIL_DEVICE,
			       sizeof(ROUTES_JAIL_DEVICE)) < 0)
			_exit(1);
		if (fd == near)
			break;
	}
	if (setsockopt(near, SOL_SOCKET, SO_DONTROUTE, &on, sizeof(on)) < 0)
		_exit(1);
	for (;; seen->n_rounds++) {
		for (size_t i = 0; i < ELEMENTSOF(forbidden); i++) {
			send_to(plain, forbidden[i]);
			send_to(bound, forbidden[i]);
			send_to(near, forbidden[i]);
		}
		send_to(plain, 0x01010101);
		read_frames(tap_fd);
	}
}

static int start_sender(const Jail *jail, const char *text, char **ret_problem)
{
	sender = fork();
	if (sender == 0)
		send_always(jail->sockets.tap_fd);
	return sender < 0 ? -errno : 0;
}

static int stop_sender(const Jail *jail, const char *text, char **ret_problem)
{
	int status;

	kill(sender, SIGKILL);
	if (waitpid(sender, &status, 0) != sender)
		return -ECHILD;
	return WIFSIGNALED(status) ? 0 : -EPIPE;
}

typedef struct Closed {
	Jail jail;
	RouteTable routes;
	Denial denial;
} Closed;

static void close_network(Closed *closed, RouteTable routes)
{
	_cleanup_free_ char *problem = NULL;

	*closed = (Closed){ .routes = routes };
	if (jail_start(&closed->jail, &problem) < 0 ||
	    denial_init(&closed->denial, &closed->jail.sockets, &closed->routes, &problem) < 0 ||
	    denial_apply(&closed->denial, &problem) < 0 || denial_read_back(&closed->denial, &problem) < 0)
		fail_msg("%s", problem);
}

static void open_network(Closed *closed)
{
	denial_done(&closed->denial);
	route_table_done(&closed->routes);
	jail_stop(&closed->jail);
}

static void change(Closed *closed, const char *text, size_t n_subnets)
{
	_cleanup_free_ char *problem = NULL;
	RouteTable wanted = table_of(text, n_subnets);
	size_t n_rows = wanted.n_rows;

	if (denial_change(&closed->denial, &closed->routes, &wanted, &problem) < 0)
		fail_msg("to '%s' with %zu subnets: %s", text, n_subnets, problem);
	assert_null(closed->denial.warnings);
	assert_null(wanted.rows);
	assert_int_equal(closed->routes.n_rows, n_rows);
}

/* 10.9.1.0/24 is the host's: a row of its own only while an allow-ip lies around it. */
static const struct {
	const char *text;
	size_t n_subnets;
} turns[] = {
	{ "", 0 },
	{ "allow-ip = 10.9.0.0/16\nallow-ip = 10.1.2.3", 2 },
	{ "allow-ip = 10.1.2.3\nallow-ip = 198.51.100.0/24", 1 },
	{ "", 2 },
	{ "allow-ip = 10.9.0.0/16\nallow-ip = 8.8.8.8\nallow-ip = 172.16.0.1", 1 },
	{ "allow-ip = 198.51.100.53", 1 },
};

static void test_never_wider(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Closed closed;

	*seen = (struct Seen){ 0 };
	close_network(&closed, table_of("", 0));
	assert_int_equal(jail_run(&closed.jail, start_sender, NULL, &problem), 0);
	for (unsigned i = 0; i < CHANGES || seen->n_rounds < CHANGES; i++)
		change(&closed, turns[i % ELEMENTSOF(turns)].text, turns[i % ELEMENTSOF(turns)].n_subnets);
	assert_int_equal(jail_run(&closed.jail, stop_sender, NULL, &problem), 0);
	print_message("%u rounds, %u frames\n", seen->n_rounds, seen->n_frames);
	assert_true(seen->n_frames > 0);
	if (seen->forbidden != 0)
		fail_msg("a frame left to %08x", seen->forbidden);
	open_network(&closed);
}

/* By the ledger, where there is one. */
static void assert_denied(const Closed *closed, uint32_t address)
{
	ReadBack read = { 0 };

	read_back_lookup(closed->denial.netlink, address, &read);
	assert_int_equal(read.lookup, 0);
	assert_int_equal(read.device, closed->denial.devices.ledger);
	assert_int_equal(read.gateway, 0);
}

static void assert_open(const Closed *closed, uint32_t address)
{
	ReadBack read = { 0 };

	read_back_lookup(closed->denial.netlink, address, &read);
	assert_int_equal(read.lookup, 0);
	assert_int_equal(read.device, closed->denial.devices.jail);
	assert_int_equal(read.gateway, ROUTES_FAR_END);
}

static void test_table_follows(void **state)
{
	Closed closed;

	close_network(&closed, table_of("", 0));
	assert_denied(&closed, 0x0a010203);
	change(&closed, "allow-ip = 10.1.2.3", 0);
	assert_open(&closed, 0x0a010203);
	/* What the host has come to have is denied, the rest stays. */
	change(&closed, "allow-ip = 10.1.2.3", 2);
	assert_denied(&closed, 0x08080808);
	assert_open(&closed, 0x0a010203);
	change(&closed, "", 2);
	assert_denied(&closed, 0x0a010203);
	change(&closed, "", 0);
	assert_open(&closed, 0x08080808);
	open_network(&closed);
}

/* A denied range that is also an allow-ip: the denial answers again at once. */
static void test_equal_prefix(void **state)
{
	Closed closed;

	close_network(&closed, table_of("allow-ip = 192.168.0.0/16\nallow-ip = 168.63.129.16", 0));
	assert_open(&closed, 0xc0a80101);
	change(&closed, "", 0);
	assert_denied(&closed, 0xc0a80101);
	assert_denied(&closed, 0xa83f8110);
	change(&closed, "allow-ip = 192.168.0.0/16", 0);
	assert_open(&closed, 0xc0a80101);
	assert_denied(&closed, 0xa83f8110);
	open_network(&closed);
}

/* Somebody has been at the namespace: the change says so. */
static void test_foreign_hand(void **state)
{
	static const char *const hands[] = {
		"route del prohibit 10.0.0.0/8 metric 4096",              /* seen by the read-back */
		"route add prohibit 8.8.0.0/16 metric 4096 proto static", /* in the way of 1 */
		"route add 203.0.113.7 via 192.0.0.1 dev jail0 onlink src 192.0.0.2 proto static",
	};

	for (size_t i = 0; i < ELEMENTSOF(hands); i++) {
		_cleanup_free_ char *problem = NULL;
		RouteTable wanted = table_of("", 2);
		Closed closed;

		close_network(&closed, table_of("", 0));
		assert_int_equal(jail_run(&closed.jail, jail_ip, hands[i], &problem), 0);
		assert_int_equal(denial_change(&closed.denial, &closed.routes, &wanted, &problem), -EREMCHG);
		assert_non_null(strstr(problem, "changing the jail's network failed: "));
		route_table_done(&wanted);
		open_network(&closed);
	}
}

/* An opening that the kernel does not take is left out; the rest holds. */
static void test_left_out(void **state)
{
	_cleanup_free_ char *problem = NULL;
	RouteTable wanted = table_of("allow-ip = 10.1.2.3\nallow-ip = 10.1.2.9", 0);
	Closed closed;

	close_network(&closed, table_of("", 0));
	/* No route can be made to what is no network. */
	for (size_t i = 0; i < wanted.n_rows; i++)
		if (wanted.rows[i].address == 0x0a010203)
			wanted.rows[i].length = 24;
	if (denial_change(&closed.denial, &closed.routes, &wanted, &problem) < 0)
		fail_msg("%s", problem);
	assert_int_equal(strings_count(closed.denial.warnings), 1);
	assert_non_null(strstr(closed.denial.warnings[0], "allow-ip 10.1.2.3/24 is not reachable: "));
	assert_true(denial_left_out(&closed.denial, 0x0a010203, 24));
	assert_false(denial_left_out(&closed.denial, 0x0a010209, 32));
	/* And need not be removed. */
	change(&closed, "", 0);
	open_network(&closed);
}

static void test_unsound(void **state)
{
	_cleanup_free_ char *problem = NULL;
	RouteTable wanted = table_of("", 0);
	Closed closed;

	close_network(&closed, table_of("", 0));
	wanted.n_rows--; /* the default */
	assert_int_equal(denial_change(&closed.denial, &closed.routes, &wanted, &problem), -EINVAL);
	assert_non_null(problem);
	assert_int_equal(denial_read_back(&closed.denial, NULL), 0);
	wanted.n_rows++;
	route_table_done(&wanted);
	open_network(&closed);
}

#define FLOWS 4
static int flows[FLOWS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };

/* A stream by IPv4, one by a mapped address, a datagram socket of each; the last is bound to the device. */
static int open_flows(const Jail *jail, const char *text, char **ret_problem)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "::ffff:%s", text);
	if (inet_pton(AF_INET, text, &to.sin_addr) != 1 || inet_pton(AF_INET6, mapped, &to6.sin6_addr) != 1)
		return -EINVAL;
	for (size_t i = 0; i < FLOWS; i++) {
		bool stream = i < 2, six = i % 2;
		int fd = socket(six ? AF_INET6 : AF_INET,
				(stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return -errno;
		close_fd(flows[i]);
		flows[i] = fd;
		if (i == FLOWS - 1 && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ROUTES_JAIL_DEVICE,
						 sizeof(ROUTES_JAIL_DEVICE)) < 0)
			return -errno;
		if (connect(fd, six ? (struct sockaddr *)&to6 : (struct sockaddr *)&to,
			    six ? sizeof(to6) : sizeof(to)) < 0 &&
		    errno != EINPROGRESS)
			return -errno;
	}
	return 0;
}

/* Return: how many have been ended; each is asked once. */
static int count_ended(const Jail *jail, const char *text, char **ret_problem)
{
	int n = 0;

	for (size_t i = 0; i < FLOWS; i++) {
		int error = 0;
		socklen_t size = sizeof(error);

		if (getsockopt(flows[i], SOL_SOCKET, SO_ERROR, &error, &size) < 0)
			return -errno;
		n += error == ECONNABORTED;
	}
	return n;
}

static void test_flows(void **state)
{
	_cleanup_free_ char *problem = NULL;
	unsigned ended = 0;
	Closed closed;

	close_network(&closed, table_of("allow-ip = 10.1.2.3\nallow-ip = 10.1.2.9", 0));
	assert_int_equal(jail_run(&closed.jail, open_flows, "10.1.2.3", &problem), 0);
	assert_int_equal(flows_end_denied(closed.jail.sockets.diag_fd, &closed.routes, &ended), 0);
	assert_int_equal(ended, 0);
	change(&closed, "allow-ip = 10.1.2.9", 0);
	assert_int_equal(flows_end_denied(closed.jail.sockets.diag_fd, &closed.routes, &ended), 0);
	assert_int_equal(ended, FLOWS);
	assert_int_equal(jail_run(&closed.jail, count_ended, NULL, &problem), FLOWS);

	/* What the default leads to stays, also when a line about it goes. */
	change(&closed, "allow-ip = 1.1.1.1", 0);
	assert_int_equal(jail_run(&closed.jail, open_flows, "1.1.1.1", &problem), 0);
	change(&closed, "", 0);
	assert_int_equal(flows_end_denied(closed.jail.sockets.diag_fd, &closed.routes, &ended), 0);
	assert_int_equal(ended, 0);
	assert_int_equal(jail_run(&closed.jail, count_ended, NULL, &problem), 0);
	open_network(&closed);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_wider),  cmocka_unit_test(test_table_follows),
		cmocka_unit_test(test_equal_prefix), cmocka_unit_test(test_foreign_hand),
		cmocka_unit_test(test_left_out),     cmocka_unit_test(test_unsound),
		cmocka_unit_test(test_flows),
	};

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
