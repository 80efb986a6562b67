/* SPDX-License-Identifier: MIT */

/* host_network_read() against networks that ip(8) builds in namespaces of their own. */

#include "service/net/host.h"
#include "service/net/netlink.h"
#include "tests/net/jail.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

/* e0 and e1 have carrier, p0 and p1 are their other ends. */
#define BASE                                                                                    \
	"link set lo up;link add e0 type veth peer name p0;link add e1 type veth peer name p1;" \
	"link set e0 up;link set p0 up;link set e1 up;link set p1 up;"
#define ONE BASE "addr add 192.168.1.10/24 dev e0;"

typedef struct Case {
	const char *name, *commands, *expected;
} Case;

static const Case cases[] = {
	{ "nothing", "link set lo up", "subnets; addresses; gateways; offline" },
	{ "no default", ONE, "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; offline" },
	{ "one uplink", ONE "route add default via 192.168.1.1",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; uplink" },
	{ "two uplinks",
	  ONE "addr add 10.1.0.5/16 dev e1;route add default via 192.168.1.1 metric 100;"
	      "route add default via 10.1.0.1 metric 200",
	  "subnets 10.1.0.0/16 192.168.1.0/24; addresses 10.1.0.5 192.168.1.10; gateways 10.1.0.1 "
	  "192.168.1.1; uplink" },
	{ "several addresses", ONE "addr add 192.168.1.11/24 dev e0;addr add 10.255.255.254/32 dev lo",
	  "subnets 192.168.1.0/24; addresses 10.255.255.254 192.168.1.10 192.168.1.11; gateways; offline" },
	{ "default without gateway", ONE "route add default dev e0",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; uplink" },
	{ "VPN in two halves",
	  ONE "addr add 10.8.0.2/32 dev e1;route add default via 192.168.1.1;route add 0.0.0.0/1 dev e1;"
	      "route add 128.0.0.0/1 dev e1;route add 198.51.100.7 via 192.168.1.1",
	  "subnets 192.168.1.0/24; addresses 10.8.0.2 192.168.1.10; gateways 192.168.1.1; uplink" },
	{ "only the two halves",
	  ONE "route add 0.0.0.0/1 via 192.168.1.1;route add 128.0.0.0/1 via 192.168.1.2",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1 192.168.1.2; uplink" },
	{ "one half only", ONE "route add 0.0.0.0/2 via 192.168.1.1;route add 64.0.0.0/3 via 192.168.1.1",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; offline" },
	{ "VPN of many prefixes",
	  ONE "addr add 10.8.0.2/24 dev e1;route add default via 192.168.1.1;route add 0.0.0.0/5 dev e1;"
	      "route add 8.0.0.0/7 dev e1;route add 11.0.0.0/8 dev e1;route add 12.0.0.0/6 dev e1;"
	      "route add 16.0.0.0/4 dev e1;route add 32.0.0.0/3 dev e1;route add 64.0.0.0/2 dev e1;"
	      "route add 128.0.0.0/3 dev e1",
	  "subnets 10.8.0.0/24 192.168.1.0/24; addresses 10.8.0.2 192.168.1.10; gateways 192.168.1.1; "
	  "uplink" },
	{ "VPN to one company",
	  ONE "addr add 10.8.0.2/32 dev e1;route add default via 192.168.1.1;route add 203.0.112.0/20 dev e1",
	  "subnets 192.168.1.0/24 203.0.112.0/20; addresses 10.8.0.2 192.168.1.10; gateways 192.168.1.1; "
	  "uplink" },
	{ "point to point",
	  BASE "addr add 10.9.0.2 peer 10.9.0.1/32 dev e0;route add default via 10.9.0.1 dev e0",
	  "subnets 10.9.0.1; addresses 10.9.0.2; gateways 10.9.0.1; uplink" },
	{ "point to point, default by the device",
	  BASE "addr add 10.9.0.2 peer 10.9.0.1/32 dev e0;route add default dev e0",
	  "subnets 10.9.0.1; addresses 10.9.0.2; gateways; uplink" },
	{ "several next hops",
	  ONE "addr add 10.1.0.5/16 dev e1;route add default nexthop via 192.168.1.1 nexthop via 10.1.0.1",
	  "subnets 10.1.0.0/16 192.168.1.0/24; addresses 10.1.0.5 192.168.1.10; gateways 10.1.0.1 "
	  "192.168.1.1; uplink" },
	{ "nexthop object", ONE "nexthop add id 7 via 192.168.1.1 dev e0;route add default nhid 7",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; uplink" },
	{ "group of nexthop objects",
	  ONE "addr add 10.1.0.5/16 dev e1;nexthop add id 7 via 192.168.1.1 dev e0;"
	      "nexthop add id 8 via 10.1.0.1 dev e1;nexthop add id 9 group 7/8;route add default nhid 9",
	  "subnets 10.1.0.0/16 192.168.1.0/24; addresses 10.1.0.5 192.168.1.10; gateways 10.1.0.1 "
	  "192.168.1.1; uplink" },
	{ "nexthop object of a device", ONE "nexthop add id 7 dev e1;route add 203.0.113.0/24 nhid 7",
	  "subnets 192.168.1.0/24 203.0.113.0/24; addresses 192.168.1.10; gateways; offline" },
	{ "nexthop object that discards", ONE "nexthop add id 7 blackhole;route add default nhid 7",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; offline" },
	{ "gateway of IPv6", ONE "-4 route add 0.0.0.0/0 via inet6 fe80::1 dev e0",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; uplink" },
	{ "default that refuses", ONE "route add unreachable default;route add blackhole default metric 5",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; offline" },
	{ "default of another table", ONE "route add default via 192.168.1.1 table 100",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; offline" },
	{ "default of the table default", ONE "route add default via 192.168.1.1 table 253",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; uplink" },
	{ "no carrier", ONE "route add default via 192.168.1.1;link set p0 down",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.1; offline" },
	{ "a range of own addresses",
	  ONE "route add local 203.0.113.0/24 dev lo;route add local 198.51.100.9 dev lo",
	  "subnets 192.168.1.0/24 203.0.113.0/24; addresses 192.168.1.10 198.51.100.9; gateways; offline" },
	{ "a transparent proxy", ONE "route add local 0.0.0.0/0 dev lo table 100",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways; offline" },
	{ "networks behind gateways",
	  ONE "route add 172.20.0.0/16 via 192.168.1.7;route add 172.21.0.0/16 via 192.168.1.7",
	  "subnets 192.168.1.0/24; addresses 192.168.1.10; gateways 192.168.1.7; offline" },
};

static void describe(const HostNetwork *host, FILE *f)
{
	char name[ADDRESS_TEXT_MAX];

	fprintf(f, "subnets");
	for (size_t i = 0; i < host->n_subnets; i++)
		fprintf(f, " %s", ipv4_to_text(host->subnets[i].address, host->subnets[i].length, name));
	fprintf(f, "; addresses");
	for (size_t i = 0; i < host->n_addresses; i++)
		fprintf(f, " %s", ipv4_to_text(host->addresses[i], 32, name));
	fprintf(f, "; gateways");
	for (size_t i = 0; i < host->n_gateways; i++)
		fprintf(f, " %s", ipv4_to_text(host->gateways[i], 32, name));
	fprintf(f, "; %s", host->uplink ? "uplink" : "offline");
}

/* What the namespace's network is, in words to be freed. */
static char *read_network(void)
{
	_cleanup_free_ char *problem = NULL;
	HostNetwork host = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (host_network_read(&host, &problem) < 0)
		return TAKE_PTR(problem);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	describe(&host, f);
	fclose(f);
	free(host.subnets);
	free(host.addresses);
	free(host.gateways);
	return text;
}

/*
 * In a child of the test. The kernel takes note of carriers in a work queue, so a description that is not the
 * expected one is tried again at each event. Return: an exit status.
 */
static int build_and_compare(const Case *one)
{
	_cleanup_free_ char *copy = strdup(one->commands), *text = NULL;
	_cleanup_close_ int watch_fd = FD_NONE;
	char *save = NULL;

	if (namespace_enter() < 0 || netlink_open(NETLINK_ROUTE, RTMGRP_LINK, &watch_fd) < 0)
		return 1;
	for (char *command = strtok_r(copy, ";", &save); command; command = strtok_r(NULL, ";", &save))
		if (jail_ip(NULL, command, NULL) != 0) {
			print_error("%s: ip %s failed\n", one->name, command);
			return 1;
		}
	for (;;) {
		struct pollfd p = { .fd = watch_fd, .events = POLLIN };
		char dropped[8192];

		free(text);
		text = read_network();
		if (streq(text, one->expected))
			return 0;
		if (poll(&p, 1, 2500) <= 0 || recv(watch_fd, dropped, sizeof(dropped), MSG_DONTWAIT) < 0)
			break;
	}
	print_error("%s:\n  found    %s\n  expected %s\n", one->name, text, one->expected);
	return 1;
}

static void test_cases(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			status = build_and_compare(&cases[i]);
			fflush(NULL);
			_exit(status);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		wrong += status != 0;
	}
	assert_int_equal(wrong, 0);
}

/* What went stays known, what is there already is no news, the uplink is that of now. */
static void test_join(void **state)
{
	HostPrefix old_subnets[] = { { 0x0a000000, 8 }, { 0xc0000200, 24 } };
	HostPrefix new_subnets[] = { { 0xc0000200, 24 }, { 0xc0000200, 25 } };
	uint32_t old_numbers[] = { 1, 2 }, new_numbers[] = { 2, 3 };
	const HostNetwork known = { old_subnets, 2, old_numbers, 2, old_numbers, 1, true };
	const HostNetwork now = { new_subnets, 2, new_numbers, 2, new_numbers, 1, false };
	HostNetwork joined, again;

	assert_int_equal(host_network_join(&known, &now, &joined), 1);
	assert_int_equal(joined.n_subnets, 3);
	assert_int_equal(joined.subnets[2].length, 25);
	assert_int_equal(joined.n_addresses, 3);
	assert_int_equal(joined.addresses[2], 3);
	assert_int_equal(joined.n_gateways, 2);
	assert_false(joined.uplink);
	assert_int_equal(host_network_join(&joined, &known, &again), 0);
	assert_int_equal(again.n_subnets, 3);
	assert_true(again.uplink);
	host_network_done(&joined);
	host_network_done(&again);
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_join) };

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
