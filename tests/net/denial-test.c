/* SPDX-License-Identifier: MIT */

/* The denial as it is shipped: applied, tested by itself, read back; for root and for an ordinary user. */

#include "service/net/monitor.h"
#include "service/net/self-test.h"
#include "service/plan/config.h"
#include "tests/net/jail.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

static double now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Entries of jail0: the table is shared by all namespaces of the machine, so the self-test must leave none.
 */
static unsigned count_neighbours(const Denial *denial)
{
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct ndmsg body = { 0 };
	const struct nlmsghdr *header;
	unsigned found = 0;
	size_t offset = 0;

	assert_int_equal(netlink_dump(denial->netlink, RTM_GETNEIGH, &body, sizeof(body), &list), 0);
	while ((header = message_list_next(&list, &offset))) {
		const struct ndmsg *neighbour = NLMSG_DATA(header);

		found += neighbour->ndm_ifindex == (int)denial->devices.jail;
	}
	return found;
}

/* With the table as it is: the whole way, as a launch goes it. */
static void happy(void)
{
	Jail jail;
	Denial denial = { 0 };
	char *problem = NULL;
	double start, applied, tested, read;

	if (jail_start(&jail, &problem) < 0)
		fail_msg("%s", problem);
	start = now_msec();
	if (denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0)
		fail_msg("%s", problem);
	applied = now_msec();
	if (jail_run(&jail, jail_self_test, NULL, &problem) < 0)
		fail_msg("%s", problem);
	tested = now_msec();
	assert_int_equal(count_neighbours(&denial), 1);
	if (denial_read_back(&denial, &problem) < 0)
		fail_msg("%s", problem);
	read = now_msec();
	assert_null(problem);
	assert_null(denial.warnings);
	print_message("%zu rows: applied in %.2f ms, tested in %.2f ms, read back in %.2f ms\n",
		      jail_routes.n_rows, applied - start, tested - applied, read - tested);
	denial_done(&denial);
	jail_stop(&jail);
}

static int close_ledger(const Jail *jail, const char *text, char **ret_problem)
{
	return close(jail->sockets.ledger_fd) < 0 ? -errno : 0;
}

/* Where no tun can be had for it, the prohibits alone are what was meant. */
static void test_without_ledger(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Denial denial = { 0 };
	Jail jail;

	jail_routes_make(0);
	if (jail_start(&jail, &problem) < 0)
		fail_msg("%s", problem);
	jail.sockets.ledger_fd = close_fd(jail.sockets.ledger_fd);
	assert_int_equal(jail_run(&jail, close_ledger, NULL, &problem), 0);
	if (denial_init(&denial, &jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&denial, &problem) < 0 || jail_run(&jail, jail_self_test, NULL, &problem) < 0 ||
	    denial_read_back(&denial, &problem) < 0)
		fail_msg("%s", problem);
	assert_int_equal(denial.devices.ledger, 0);
	denial_done(&denial);
	jail_stop(&jail);
}

static void test_happy(void **state)
{
	jail_routes_make(0);
	happy();
}

static void test_many_rows(void **state)
{
	jail_routes_make(1000);
	happy();
}

/* The table that a launch makes, for a host with networks of its own inside and outside the private ranges.
 */
static void test_made_table(void **state)
{
	HostPrefix subnets[] = {
		{ 0xc0a80100, 24 }, { 0x0a090000, 16 }, { 0x08080000, 24 }, { 0xc0000200, 24 }
	};
	uint32_t addresses[] = { 0xc0a8010a, 0x0a090909, 0x08080005 },
		 gateways[] = { 0xc0a80101, 0x09090909 };
	const HostNetwork host = {
		.subnets = subnets,
		.n_subnets = ELEMENTSOF(subnets),
		.addresses = addresses,
		.n_addresses = ELEMENTSOF(addresses),
		.gateways = gateways,
		.n_gateways = ELEMENTSOF(gateways),
		.uplink = true,
	};
	static const char text[] = "allow-ip = 10.9.0.0/16\nallow-ip = 192.168.1.77\nallow-ip = 10.0.0.1\n";
	_cleanup_free_ char *problem = NULL;
	Config config = CONFIG_INIT;

	if (config_parse("test", text, sizeof(text) - 1, &config, &problem) < 0)
		fail_msg("%s", problem);
	jail_routes_done();
	if (routes_make(&host, &config, &jail_routes, &problem) < 0)
		fail_msg("%s", problem);
	happy();
	jail_routes_done();
	config_done(&config);
}

typedef struct Closed {
	Jail jail;
	Denial denial;
} Closed;

static const Denial *watched; /* of the last closed network */

static void close_network(Closed *closed)
{
	_cleanup_free_ char *problem = NULL;

	jail_routes_make(0);
	watched = &closed->denial;
	if (jail_start(&closed->jail, &problem) < 0 ||
	    denial_init(&closed->denial, &closed->jail.sockets, &jail_routes, &problem) < 0 ||
	    denial_apply(&closed->denial, &problem) < 0)
		fail_msg("%s", problem);
}

static void end_network(Closed *closed)
{
	denial_done(&closed->denial);
	jail_stop(&closed->jail);
}

/* JailFunctions: the tap's descriptor goes, and comes again as pasta's would; a number of neighbours is made.
 */
static int detach(const Jail *jail, const char *text, char **ret_problem)
{
	return close(jail->sockets.tap_fd) < 0 ? -errno : 0;
}

static int attached_fd; /* the holder's */

static int attach(const Jail *jail, const char *text, char **ret_problem)
{
	struct ifreq request = { .ifr_name = "jail0", .ifr_flags = IFF_TAP | IFF_NO_PI };

	attached_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	return attached_fd < 0 || ioctl(attached_fd, TUNSETIFF, &request) < 0 ? -errno : 0;
}

static int detach_again(const Jail *jail, const char *text, char **ret_problem)
{
	attached_fd = close_fd(attached_fd);
	return 0;
}

static int attach_anew(const Jail *jail, const char *text, char **ret_problem)
{
	attached_fd = close_fd(attached_fd);
	return attach(jail, text, ret_problem);
}

/* Pretend to be the kernel: text is the port of the session's watching socket. */
static int forge(const Jail *jail, const char *text, char **ret_problem)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		char name[8];
	} message = {
		.header = { .nlmsg_len = sizeof(message), .nlmsg_type = RTM_DELLINK },
		.link = { .ifi_index = 2 },
		.attribute = { .rta_len = RTA_LENGTH(6), .rta_type = IFLA_IFNAME },
		.name = "jail0",
	};
	struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = (uint32_t)strtoul(text, NULL, 10) };

	return sendto(jail->sockets.route_fd, &message, sizeof(message), 0, (struct sockaddr *)&to,
		      sizeof(to)) < 0
		       ? -errno
		       : 0;
}

static int self_test_again(const Jail *jail, const char *text, char **ret_problem)
{
	return self_test_run(attached_fd, &jail_routes, ret_problem);
}

static int link_flood(const Jail *jail, const char *text, char **ret_problem)
{
	for (unsigned i = 0; i < 64; i++)
		if (jail_ip(jail, i % 2 ? "link set jail0 txqueuelen 100" : "link set jail0 txqueuelen 101",
			    NULL) != 0)
			return -EIO;
	return 0;
}

/* *up stays where no event was about the wire. */
static int read_watch(const JailSockets *sockets, bool *up, unsigned *ret_changes)
{
	Monitor monitor;
	int r;

	assert_int_equal(monitor_init(&monitor, sockets, watched), 0);
	monitor.wire_up = *up;
	r = monitor_read(&monitor);
	*up = monitor.wire_up;
	*ret_changes = monitor.n_events;
	monitor_done(&monitor);
	return r;
}

/*
 * Read the watching socket until it says what is wanted. At once: the kernel's own news of a carrier may be a
 * second late, and a launch must not wait for it.
 */
static void wait_for_wire(const JailSockets *sockets, bool wanted)
{
	double start = now_msec();
	bool up = !wanted;

	while (up != wanted) {
		struct pollfd p = { .fd = sockets->watch_fd, .events = POLLIN };
		unsigned changes;

		if (poll(&p, 1, 5000) <= 0)
			fail_msg("no event says that the wire is %s", wanted ? "up" : "down");
		assert_int_equal(read_watch(sockets, &up, &changes), 0);
	}
	assert_int_equal(monitor_wire_is_up(sockets->route_fd), wanted);
	if (wanted)
		assert_true(now_msec() - start < 300);
}

static int flags_of_jail(const Jail *jail, const char *text, char **ret_problem)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "jail0" };

	return ioctl(fd, SIOCGIFFLAGS, &request) < 0 ? -errno : (unsigned short)request.ifr_flags;
}

/* Until the kernel's work queue has done its part. */
static void wait_for_flag(Jail *jail, int flag, bool wanted)
{
	while (!!(jail_run(jail, flags_of_jail, NULL, NULL) & flag) != wanted) {
		struct pollfd p = { .fd = jail->sockets.watch_fd, .events = POLLIN };
		unsigned changes;
		bool up = false;

		if (poll(&p, 1, 5000) <= 0)
			fail_msg("the flag 0x%x of jail0 does not change", (unsigned)flag);
		assert_int_equal(read_watch(&jail->sockets, &up, &changes), 0);
	}
}

/* The wire comes and goes; the denial does not notice, and the filter outlives every owner of the descriptor.
 */
static void test_wire(void **state)
{
	_cleanup_free_ char *problem = NULL;
	unsigned changes = 0;
	bool up = false;
	Closed closed;

	close_network(&closed);
	assert_int_equal(read_watch(&closed.jail.sockets, &up, &changes), 0);
	assert_true(up);
	assert_true(changes > jail_routes.n_rows);
	assert_int_equal(monitor_wire_is_up(closed.jail.sockets.route_fd), 1);

	closed.jail.sockets.tap_fd = close_fd(closed.jail.sockets.tap_fd);
	assert_int_equal(jail_run(&closed.jail, detach, NULL, &problem), 0);
	wait_for_wire(&closed.jail.sockets, false);
	assert_int_equal(monitor_wire_is_up(closed.jail.sockets.route_fd), 0);
	if (denial_read_back(&closed.denial, &problem) < 0)
		fail_msg("without the wire: %s", problem);

	/* Up means that frames pass at once, however often it was down. */
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(jail_run(&closed.jail, attach, NULL, &problem), 0);
		wait_for_wire(&closed.jail.sockets, true);
		if (jail_run(&closed.jail, self_test_again, NULL, &problem) < 0)
			fail_msg("attached again: %s", problem);
		/* The kernel takes the device's queue away when it notices, and must give it back. */
		if (i == 0) {
			assert_int_equal(jail_run(&closed.jail, detach_again, NULL, &problem), 0);
			wait_for_flag(&closed.jail, IFF_RUNNING, false);
			continue;
		}
		/* Every second time another comes before the kernel's work queue has seen that one went. */
		assert_int_equal(jail_run(&closed.jail, i % 2 ? attach_anew : detach_again, NULL, &problem),
				 0);
		wait_for_wire(&closed.jail.sockets, i % 2);
		if (i % 2)
			assert_int_equal(jail_run(&closed.jail, detach_again, NULL, &problem), 0);
	}
	assert_int_equal(jail_run(&closed.jail, attach, NULL, &problem), 0);
	wait_for_wire(&closed.jail.sockets, true);
	if (denial_read_back(&closed.denial, &problem) < 0)
		fail_msg("with the wire again: %s", problem);

	end_network(&closed);
}

static int ignore_without_carrier(const Jail *jail, const char *text, char **ret_problem)
{
	_cleanup_close_ int fd =
		open("/proc/sys/net/ipv4/conf/jail0/ignore_routes_with_linkdown", O_RDWR | O_CLOEXEC);
	char found = '?';

	/* as it was made, whatever the host has */
	if (fd < 0 || read(fd, &found, 1) != 1 || found != '0' || pwrite(fd, "1", 1, 0) != 1)
		return -EIO;
	return detach(jail, text, ret_problem);
}

/* Routes that count for nothing while the wire is away: the setting is not inherited, and refused where it
 * is. */
static void test_routes_without_carrier(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Closed closed;

	close_network(&closed);
	closed.jail.sockets.tap_fd = close_fd(closed.jail.sockets.tap_fd);
	assert_int_equal(jail_run(&closed.jail, ignore_without_carrier, NULL, &problem), 0);
	wait_for_flag(&closed.jail, IFF_RUNNING, false);
	assert_int_equal(denial_read_back(&closed.denial, &problem), -EREMCHG);
	assert_non_null(problem);
	end_network(&closed);
}

/* Only the kernel is believed. */
static void test_forged_events(void **state)
{
	_cleanup_free_ char *problem = NULL;
	struct sockaddr_nl local;
	socklen_t length = sizeof(local);
	unsigned changes = 0;
	bool up = false;
	char port[16];
	Closed closed;

	close_network(&closed);
	assert_int_equal(read_watch(&closed.jail.sockets, &up, &changes), 0);
	assert_true(up);
	assert_int_equal(getsockname(closed.jail.sockets.watch_fd, (struct sockaddr *)&local, &length), 0);
	snprintf(port, sizeof(port), "%u", local.nl_pid);
	assert_int_equal(jail_run(&closed.jail, forge, port, &problem), 0);
	assert_int_equal(read_watch(&closed.jail.sockets, &up, &changes), 0);
	assert_int_equal(changes, 0);
	assert_true(up);
	end_network(&closed);
}

/* The device itself goes, and everything that stood on it. */
static void test_device_gone(void **state)
{
	_cleanup_free_ char *problem = NULL;
	unsigned changes = 0;
	bool up = true;
	Closed closed;

	close_network(&closed);
	assert_int_equal(jail_run(&closed.jail, jail_ip, "link del jail0", &problem), 0);
	assert_int_equal(read_watch(&closed.jail.sockets, &up, &changes), 0);
	assert_false(up);
	assert_true(changes > 0);
	assert_int_equal(monitor_wire_is_up(closed.jail.sockets.route_fd), -ENODEV);
	assert_int_equal(denial_read_back(&closed.denial, &problem), -EREMCHG);
	assert_non_null(strstr(problem, "device jail0"));
	end_network(&closed);
}

static void test_lost_events(void **state)
{
	_cleanup_free_ char *problem = NULL;
	unsigned changes = 0;
	bool up = false;
	int size = 1, r;
	Closed closed;

	close_network(&closed);
	assert_int_equal(setsockopt(closed.jail.sockets.watch_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)),
			 0);
	assert_int_equal(jail_run(&closed.jail, link_flood, NULL, &problem), 0);
	r = read_watch(&closed.jail.sockets, &up, &changes);
	if (r == 0) /* what was before the loss comes first */
		r = read_watch(&closed.jail.sockets, &up, &changes);
	assert_int_equal(r, -ENOBUFS);
	end_network(&closed);
}

static void add_row(uint32_t address, uint8_t length, RouteVerdict verdict)
{
	RouteRow internet = jail_routes.rows[--jail_routes.n_rows];

	jail_routes.rows = reallocarray(jail_routes.rows, jail_routes.n_rows + 2, sizeof(*jail_routes.rows));
	jail_routes.rows[jail_routes.n_rows++] =
		(RouteRow){ address, length, verdict, strdup("of the test") };
	jail_routes.rows[jail_routes.n_rows++] = internet;
}

/* A single allow-ip may fail: a warning, and the rest is as it was meant. */
static void test_soft_failure(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Denial denial;
	Jail jail;

	jail_routes_make(0);
	add_row(0x0a010203, 32, ROUTE_ALLOW); /* the second of its kind: the kernel has it already */
	assert_int_equal(jail_start(&jail, &problem), 0);
	assert_int_equal(denial_init(&denial, &jail.sockets, &jail_routes, &problem), 0);
	if (denial_apply(&denial, &problem) < 0)
		fail_msg("%s", problem);
	assert_non_null(denial.warnings);
	assert_non_null(strstr(denial.warnings[0], "allow-ip 10.1.2.3"));
	assert_null(denial.warnings[1]);
	if (jail_run(&jail, jail_self_test, NULL, &problem) < 0 || denial_read_back(&denial, &problem) < 0)
		fail_msg("%s", problem);
	denial_done(&denial);
	jail_stop(&jail);
}

/* A denial may not. */
static void test_hard_failure(void **state)
{
	_cleanup_free_ char *problem = NULL;
	Denial denial;
	Jail jail;

	jail_routes_make(0);
	add_row(0x0a000000, 8, ROUTE_DENY);
	assert_int_equal(jail_start(&jail, &problem), 0);
	assert_int_equal(denial_init(&denial, &jail.sockets, &jail_routes, &problem), 0);
	assert_int_equal(denial_apply(&denial, &problem), -EEXIST);
	assert_non_null(strstr(problem, "'prohibits'"));
	assert_non_null(strstr(problem, "10.0.0.0/8"));
	denial_done(&denial);
	jail_stop(&jail);
}

static void test_unsound_tables(void **state)
{
	_cleanup_free_ char *problem = NULL;
	RouteRow deny = { 0x0a000000, 8, ROUTE_DENY, (char *)"" },
		 internet = { 0, 0, ROUTE_INTERNET, (char *)"" };
	RouteRow everything = { 0, 0, ROUTE_DENY, (char *)"" },
		 wide = { 0x0a000000, 33, ROUTE_DENY, (char *)"" };
	RouteRow tables[][2] = {
		{ deny, deny },
		{ internet, internet },
		{ internet, everything },
		{ internet, wide },
	};
	RouteTable empty = { 0 };
	Denial denial;
	Jail jail;

	assert_int_equal(jail_start(&jail, &problem), 0);
	for (size_t i = 0; i < ELEMENTSOF(tables); i++) {
		RouteTable table = { .rows = tables[i], .n_rows = 2 };

		assert_int_equal(denial_init(&denial, &jail.sockets, &table, &problem), -EINVAL);
	}
	assert_int_equal(denial_init(&denial, &jail.sockets, &empty, &problem), -EINVAL);
	jail_stop(&jail);
}

/* Sockets that are none, of another protocol, or not bound. */
static void test_wrong_sockets(void **state)
{
	_cleanup_free_ char *problem = NULL;
	JailSockets sockets = JAIL_SOCKETS_INIT;
	Denial denial;
	int fds[] = {
		open("/dev/null", O_RDWR | O_CLOEXEC),
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE),
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		FD_NONE,
	};

	jail_routes_make(0);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
		sockets.route_fd = fds[i];
		assert_true(denial_init(&denial, &sockets, &jail_routes, &problem) < 0);
		assert_non_null(problem);
		close_fd(fds[i]);
	}
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_happy),          cmocka_unit_test(test_many_rows),
		cmocka_unit_test(test_without_ledger), cmocka_unit_test(test_made_table),
		cmocka_unit_test(test_wire),           cmocka_unit_test(test_device_gone),
		cmocka_unit_test(test_forged_events),  cmocka_unit_test(test_routes_without_carrier),
		cmocka_unit_test(test_lost_events),    cmocka_unit_test(test_soft_failure),
		cmocka_unit_test(test_hard_failure),   cmocka_unit_test(test_unsound_tables),
		cmocka_unit_test(test_wrong_sockets),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
