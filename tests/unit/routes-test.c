/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/config-values.h"
#include "service/plan/routes.h"

#define FILE_NAME "/etc/claude-sandbox.conf"
#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

/* The rows that every host gets, first and in this order. */
static const char static_rows[] =
	"deny 0.0.0.0/8 this network (RFC 791)\n"
	"deny 127.0.0.0/8 loopback (RFC 1122)\n"
	"deny 10.0.0.0/8 private network (RFC 1918)\n"
	"deny 172.16.0.0/12 private network (RFC 1918)\n"
	"deny 192.168.0.0/16 private network (RFC 1918)\n"
	"deny 100.64.0.0/10 shared address space of providers (RFC 6598)\n"
	"deny 169.254.0.0/16 link-local and cloud metadata (RFC 3927)\n"
	"deny 168.63.129.16/32 host service of the Azure cloud\n"
	"deny 192.0.0.0/24 IETF protocol assignments (RFC 6890)\n"
	"deny 198.18.0.0/15 benchmarking (RFC 2544)\n"
	"deny 224.0.0.0/4 multicast (RFC 5771)\n"
	"deny 240.0.0.0/4 reserved, with the broadcast address (RFC 1112, RFC 919)\n";

#define DNS_1 "dns 192.0.2.53/32 name server of the jail\n"
#define DNS_2 "dns 198.51.100.53/32 name server of the jail\n"
#define DNS_3 "dns 203.0.113.53/32 name server of the jail\n"
#define INTERNET "internet default the internet\n"

typedef struct Host {
	const char *name;
	HostPrefix subnets[6];
	uint32_t addresses[6], gateways[6];
	const char *config;
	const char *rows;     /* after the static ones */
	const char *warnings; /* parts, one for each warning, separated by '|'; NULL for none */
	uint32_t forwarder;
} Host;

static const Host hosts[] = {
	{
		.name = "no network at all",
		.rows = DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a cloud machine: everything of the host lies in denied ranges",
		.subnets = { { IP(10, 0, 0, 0), 24 }, { IP(127, 0, 0, 0), 8 }, { IP(172, 17, 0, 0), 16 } },
		.addresses = { IP(10, 0, 0, 4), IP(127, 0, 0, 1), IP(172, 17, 0, 1) },
		.gateways = { IP(10, 0, 0, 1), IP(10, 0, 0, 1) },
		.rows = DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a public address in a network of its own",
		.subnets = { { IP(203, 0, 112, 0), 24 } },
		.addresses = { IP(203, 0, 112, 9) },
		.gateways = { IP(203, 0, 112, 1) },
		.rows = "deny 203.0.112.0/24 network of the host\n" DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "two uplinks, one with host bits left in the subnet, listed twice",
		.subnets = { { IP(198, 51, 99, 7), 25 },
			     { IP(203, 0, 112, 0), 24 },
			     { IP(203, 0, 112, 0), 24 } },
		.addresses = { IP(198, 51, 99, 7), IP(203, 0, 112, 9) },
		.gateways = { IP(198, 51, 99, 1), IP(203, 0, 112, 1) },
		.rows = "deny 203.0.112.0/24 network of the host\n"
			"deny 198.51.99.0/25 network of the host\n" DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a gateway and an address outside of every subnet",
		.addresses = { IP(51, 15, 1, 2) },
		.gateways = { IP(0, 0, 0, 0), IP(62, 210, 0, 1) },
		.rows = "deny 51.15.1.2/32 address of the host\n"
			"deny 62.210.0.1/32 gateway of the host\n" DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a VPN: a peer, and the default route in three spellings",
		.subnets = { { IP(51, 15, 9, 9), 32 },
			     { IP(0, 0, 0, 0), 0 },
			     { IP(0, 0, 0, 0), 1 },
			     { IP(128, 0, 0, 0), 1 } },
		.addresses = { IP(10, 8, 0, 2) },
		.gateways = { IP(10, 8, 0, 1) },
		.rows = "deny 51.15.9.9/32 peer of the host\n" DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a route to a device that is too wide for a network",
		.subnets = { { IP(64, 0, 0, 0), 2 }, { IP(9, 0, 0, 0), 8 } },
		.rows = "deny 9.0.0.0/8 network of the host\n" DNS_1 INTERNET,
		.warnings = "64.0.0.0/2",
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "a host in 192.0.2.0/24",
		.subnets = { { IP(192, 0, 2, 0), 24 } },
		.addresses = { IP(192, 0, 2, 15) },
		.gateways = { IP(192, 0, 2, 1) },
		.rows = "deny 192.0.2.0/24 network of the host\n" DNS_2 INTERNET,
		.forwarder = IP(198, 51, 100, 53),
	},
	{
		.name = "forwarders that are an own address, and a gateway",
		.addresses = { IP(192, 0, 2, 53) },
		.gateways = { IP(198, 51, 100, 53) },
		.rows = "deny 192.0.2.53/32 address of the host\n"
			"deny 198.51.100.53/32 gateway of the host\n" DNS_3 INTERNET,
		.forwarder = IP(203, 0, 113, 53),
	},
	{
		.name = "all three forwarders taken",
		.subnets = { { IP(192, 0, 2, 0), 24 },
			     { IP(198, 51, 100, 48), 29 },
			     { IP(203, 0, 113, 53), 32 } },
		.rows = "deny 192.0.2.0/24 network of the host\n"
			"deny 198.51.100.48/29 network of the host\n"
			"deny 203.0.113.53/32 peer of the host\n" INTERNET,
		.warnings = "no names will resolve inside",
		.forwarder = 0,
	},
	{
		.name = "a forwarder that an allow-ip needs",
		.config = "allow-ip = 192.0.2.53\nallow-ip = 198.51.100.0/24\n",
		.rows = DNS_3 "allow 192.0.2.53/32 allow-ip, " FILE_NAME ":1\n"
			      "allow 198.51.100.0/24 allow-ip, " FILE_NAME ":2\n" INTERNET,
		.forwarder = IP(203, 0, 113, 53),
	},
	{
		.name = "the other half of a network than the forwarder's",
		.subnets = { { IP(192, 0, 2, 128), 25 } },
		.rows = "deny 192.0.2.128/25 network of the host\n" DNS_1 INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip: an address in a denied range that is not the host's",
		.subnets = { { IP(10, 0, 0, 0), 24 } },
		.addresses = { IP(10, 0, 0, 4) },
		.gateways = { IP(10, 0, 0, 1) },
		.config = "# printers\nallow-ip = 10.0.0.7 # printer\nallow-ip = 192.168.7.7\n",
		.rows = DNS_1 "allow 10.0.0.7/32 allow-ip, " FILE_NAME ":2\n"
			      "allow 192.168.7.7/32 allow-ip, " FILE_NAME ":3\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip around everything of the host: each denial inside needs its row",
		.subnets = { { IP(10, 1, 2, 0), 24 } },
		.addresses = { IP(10, 1, 2, 4), IP(10, 1, 9, 9), IP(10, 2, 0, 1) },
		.gateways = { IP(10, 1, 2, 1), IP(10, 1, 8, 8) },
		.config = "allow-ip = 10.1.0.0/16\n",
		.rows = "deny 10.1.2.0/24 network of the host\n"
			"deny 10.1.8.8/32 gateway of the host\n"
			"deny 10.1.9.9/32 address of the host\n" DNS_1
			"allow 10.1.0.0/16 allow-ip, " FILE_NAME ":1\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip equal to the host's network: its own address and gateway stay denied",
		.subnets = { { IP(10, 1, 0, 0), 16 } },
		.addresses = { IP(10, 1, 0, 4) },
		.gateways = { IP(10, 1, 0, 1) },
		.config = "allow-ip = 10.1.0.0/16\n",
		.rows = "deny 10.1.0.0/16 network of the host\n"
			"deny 10.1.0.1/32 gateway of the host\n"
			"deny 10.1.0.4/32 address of the host\n" DNS_1
			"allow 10.1.0.0/16 allow-ip, " FILE_NAME ":1\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip inside the host's network and around an address of it",
		.subnets = { { IP(10, 1, 0, 0), 16 } },
		.addresses = { IP(10, 1, 0, 4), IP(10, 1, 7, 7) },
		.config = "allow-ip = 10.1.7.0/24\n",
		.rows = "deny 10.1.7.7/32 address of the host\n" DNS_1
			"allow 10.1.7.0/24 allow-ip, " FILE_NAME ":1\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip around one network of the host that lies in another",
		.subnets = { { IP(51, 0, 0, 0), 8 }, { IP(51, 1, 0, 0), 16 }, { IP(51, 2, 2, 0), 24 } },
		.config = "allow-ip = 51.2.0.0/16\n",
		.rows = "deny 51.0.0.0/8 network of the host\n"
			"deny 51.2.2.0/24 network of the host\n" DNS_1
			"allow 51.2.0.0/16 allow-ip, " FILE_NAME ":1\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip that is exactly an own address and a gateway",
		.subnets = { { IP(10, 0, 0, 0), 24 } },
		.addresses = { IP(10, 0, 0, 4) },
		.gateways = { IP(10, 0, 0, 1) },
		.config = "allow-ip = 10.0.0.4\nallow-ip = 10.0.0.1\n",
		.rows = "deny 10.0.0.1/32 gateway of the host\n"
			"deny 10.0.0.4/32 address of the host\n" DNS_1
			"allow 10.0.0.4/32 allow-ip, " FILE_NAME ":1\n"
			"allow 10.0.0.1/32 allow-ip, " FILE_NAME ":2\n" INTERNET,
		.warnings = "allow-ip 10.0.0.4 is the address of the host|allow-ip 10.0.0.1 is the gateway "
			    "of the host",
		.forwarder = IP(192, 0, 2, 53),
	},
	{
		.name = "allow-ip equal to static denials: the prohibits stay",
		.config = "allow-ip = 169.254.0.0/16\nallow-ip = 192.168.0.0/16\nallow-ip = 168.63.129.16\n",
		.rows = DNS_1 "allow 169.254.0.0/16 allow-ip, " FILE_NAME ":1\n"
			      "allow 192.168.0.0/16 allow-ip, " FILE_NAME ":2\n"
			      "allow 168.63.129.16/32 allow-ip, " FILE_NAME ":3\n" INTERNET,
		.forwarder = IP(192, 0, 2, 53),
	},
};

static size_t count(const void *items, size_t item_size, size_t most)
{
	static const uint8_t zero[sizeof(HostPrefix)];
	size_t n = most;

	while (n > 0 && memcmp((const uint8_t *)items + (n - 1) * item_size, zero, item_size) == 0)
		n--;
	return n;
}

static Config parsed(const char *text)
{
	_cleanup_free_ char *problem = NULL;
	Config config = CONFIG_INIT;

	if (config_parse(FILE_NAME, text, strlen(text), &config, &problem) < 0)
		fail_msg("%s", problem);
	return config;
}

static char *table_text(const RouteTable *table)
{
	char *text = strdup("");

	for (size_t i = 0; i < table->n_rows; i++) {
		const RouteRow *row = &table->rows[i];
		char prefix[ROUTE_TEXT_MAX];

		assert_int_equal(refuse(&text, 0, "%s%s %s %s\n", text, route_verdict_to_string(row->verdict),
					route_to_string(row->address, row->length, prefix), row->reason),
				 0);
	}
	return text;
}

static void check_warnings(const Host *host, char *const *warnings)
{
	_cleanup_free_ char *wanted = strdup(host->warnings ?: "");
	char *rest = wanted, *part;
	size_t n = 0;

	while (*wanted && (part = strsep(&rest, "|"))) {
		if (n >= strings_count(warnings) || !strstr(warnings[n], part))
			fail_msg("%s: no warning '%s'", host->name, part);
		n++;
	}
	assert_int_equal(strings_count(warnings), n);
}

/* The verdict of the kernel's look-up: the longest prefix, then the smaller metric. */
static RouteVerdict lookup(const RouteTable *table, uint32_t address)
{
	const RouteRow *best = NULL;

	for (size_t i = 0; i < table->n_rows; i++) {
		const RouteRow *row = &table->rows[i];
		uint32_t mask = row->length ? UINT32_MAX << (32 - row->length) : 0;

		if ((address & mask) != row->address)
			continue;
		if (!best || row->length > best->length ||
		    (row->length == best->length && row->verdict != ROUTE_DENY))
			best = row;
	}
	assert_non_null(best);
	return best->verdict;
}

static bool is_opened(const RouteTable *table, uint32_t address)
{
	for (size_t i = 0; i < table->n_rows; i++)
		if (table->rows[i].verdict == ROUTE_ALLOW && table->rows[i].length == 32 &&
		    table->rows[i].address == address)
			return true;
	return false;
}

/* Whatever the rows look like: what of the host is not named exactly by an allow-ip is denied. */
static void check_own_denied(const Host *host, const RouteTable *table)
{
	for (size_t i = 0; i < ELEMENTSOF(host->addresses); i++) {
		if (host->addresses[i] && !is_opened(table, host->addresses[i]))
			assert_int_equal(lookup(table, host->addresses[i]), ROUTE_DENY);
		if (host->gateways[i] && !is_opened(table, host->gateways[i]))
			assert_int_equal(lookup(table, host->gateways[i]), ROUTE_DENY);
	}
}

static void test_hosts(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
		const Host *host = &hosts[i];
		const HostNetwork network = {
			.subnets = (HostPrefix *)host->subnets,
			.n_subnets =
				count(host->subnets, sizeof(host->subnets[0]), ELEMENTSOF(host->subnets)),
			.addresses = (uint32_t *)host->addresses,
			.n_addresses = count(host->addresses, sizeof(uint32_t), ELEMENTSOF(host->addresses)),
			.gateways = (uint32_t *)host->gateways,
			.n_gateways = count(host->gateways, sizeof(uint32_t), ELEMENTSOF(host->gateways)),
		};
		_cleanup_(config_done) Config config = parsed(host->config ?: "");
		_cleanup_(route_table_done) RouteTable table = { 0 };
		_cleanup_free_ char *problem = NULL, *text = NULL, *wanted = NULL;

		if (routes_make(&network, &config, &table, &problem) < 0)
			fail_msg("%s: %s", host->name, problem);
		text = table_text(&table);
		assert_int_equal(refuse(&wanted, 0, "%s%s", static_rows, host->rows), 0);
		if (!streq(text, wanted))
			fail_msg("%s:\n%s\nnot\n%s", host->name, text, wanted);
		assert_int_equal(table.forwarder, host->forwarder);
		check_warnings(host, table.warnings);
		check_own_denied(host, &table);
		assert_int_equal(lookup(&table, IP(1, 1, 1, 1)), ROUTE_INTERNET);
	}
}

static void test_verdicts(void **state)
{
	static const uint32_t denied[] = {
		IP(0, 0, 0, 1),         IP(0, 255, 255, 255),   IP(10, 0, 0, 0),
		IP(10, 255, 255, 255),  IP(127, 0, 0, 1),       IP(127, 255, 255, 255),
		IP(172, 16, 0, 0),      IP(172, 31, 255, 255),  IP(192, 168, 0, 0),
		IP(192, 168, 255, 255), IP(100, 64, 0, 0),      IP(100, 127, 255, 255),
		IP(169, 254, 0, 0),     IP(169, 254, 169, 254), IP(169, 254, 255, 255),
		IP(168, 63, 129, 16),   IP(192, 0, 0, 0),       IP(192, 0, 0, 1),
		IP(192, 0, 0, 255),     IP(198, 18, 0, 0),      IP(198, 19, 255, 255),
		IP(224, 0, 0, 0),       IP(239, 255, 255, 255), IP(240, 0, 0, 0),
		IP(255, 255, 255, 255),
	};
	static const uint32_t reached[] = {
		IP(1, 0, 0, 0),     IP(9, 255, 255, 255),  IP(11, 0, 0, 0),      IP(126, 255, 255, 255),
		IP(128, 0, 0, 0),   IP(172, 15, 255, 255), IP(172, 32, 0, 0),    IP(192, 167, 255, 255),
		IP(192, 169, 0, 0), IP(100, 63, 255, 255), IP(100, 128, 0, 0),   IP(169, 253, 255, 255),
		IP(169, 255, 0, 0), IP(168, 63, 129, 15),  IP(168, 63, 129, 17), IP(191, 255, 255, 255),
		IP(192, 0, 1, 0),   IP(198, 17, 255, 255), IP(198, 20, 0, 0),    IP(223, 255, 255, 255),
	};
	_cleanup_(route_table_done) RouteTable table = { 0 };
	HostNetwork network = { 0 };
	Config config = CONFIG_INIT;

	assert_int_equal(routes_make(&network, &config, &table, NULL), 0);
	for (size_t i = 0; i < ELEMENTSOF(denied); i++)
		if (lookup(&table, denied[i]) != ROUTE_DENY)
			fail_msg("%08x is not denied", denied[i]);
	for (size_t i = 0; i < ELEMENTSOF(reached); i++)
		if (lookup(&table, reached[i]) != ROUTE_INTERNET)
			fail_msg("%08x is not reached", reached[i]);
	assert_int_equal(lookup(&table, IP(192, 0, 2, 53)), ROUTE_DNS);
}

/* What was refused before it was allowed has its reason still. */
static void test_denial_behind_an_opening(void **state)
{
	_cleanup_(route_table_done) RouteTable table = { 0 };
	HostNetwork network = { 0 };
	_cleanup_(config_done) Config config = parsed("allow-ip = 10.0.0.5\n");
	const RouteRow *row;

	assert_int_equal(routes_make(&network, &config, &table, NULL), 0);
	assert_int_equal(lookup(&table, IP(10, 0, 0, 5)), ROUTE_ALLOW);
	row = routes_find_denial(&table, IP(10, 0, 0, 5));
	assert_non_null(row);
	assert_string_equal(row->reason, routes_find(&table, IP(10, 0, 0, 6))->reason);
	assert_null(routes_find_denial(&table, IP(9, 9, 9, 9)));
}

/* The host with many networks, and an administrator with many lines. */
static void test_bounds(void **state)
{
	_cleanup_(route_table_done) RouteTable table = { 0 };
	_cleanup_(host_network_done) HostNetwork network = { 0 };
	_cleanup_free_ char *problem = NULL;
	Config config = CONFIG_INIT;
	size_t n_static = 0;

	while (denied_ranges[n_static].reason)
		n_static++;
	assert_int_equal(n_static, 12);

	network.addresses = calloc(ROUTES_MAX, sizeof(uint32_t));
	assert_non_null(network.addresses);
	/* With the forwarder and the default just as many as there may be; and one more. */
	network.n_addresses = ROUTES_MAX - n_static - 2;
	for (size_t i = 0; i <= network.n_addresses; i++)
		network.addresses[i] = IP(51, 0, 0, 0) + (uint32_t)i;
	assert_int_equal(routes_make(&network, &config, &table, &problem), 0);
	assert_int_equal(table.n_rows, ROUTES_MAX);
	route_table_done(&table);

	network.n_addresses++;
	assert_int_equal(routes_make(&network, &config, &table, &problem), -E2BIG);
	assert_non_null(strstr(problem, "more than 1024 routes"));
	assert_null(table.rows);
}

static void test_bad_input(void **state)
{
	_cleanup_(config_done) Config config = parsed("allow-ip = 10.0.0.1\n");
	HostPrefix odd = { IP(10, 0, 0, 0), 33 };
	HostNetwork network = { .subnets = &odd, .n_subnets = 1 }, none = { 0 };
	_cleanup_free_ char *problem = NULL;
	RouteTable table = { 0 };

	assert_int_equal(routes_make(&network, &config, &table, &problem), -EINVAL);
	assert_non_null(strstr(problem, "33"));

	/* A value that did not come through the parser. */
	config.values[0].text[0] = 'x';
	assert_int_equal(routes_make(&none, &config, &table, &problem), -EINVAL);
	assert_non_null(strstr(problem, FILE_NAME ":1: allow-ip: 'x0.0.0.1'"));
	assert_null(table.rows);

	/* Nor did this: the same address twice is one row. */
	config.values[0].text[0] = '1';
	assert_int_equal(config_append(&config, CONFIG_ALLOW_IP, "10.0.0.1/32", "", "elsewhere"), 0);
	assert_int_equal(routes_make(&none, &config, &table, NULL), 0);
	assert_int_equal(table.n_rows, 12 + 3);
	assert_string_equal(table.rows[13].reason, "allow-ip, " FILE_NAME ":1");
	route_table_done(&table);
}

static void test_words(void **state)
{
	char buffer[ROUTE_TEXT_MAX];

	assert_string_equal(route_to_string(0, 0, buffer), "default");
	assert_string_equal(route_to_string(0, 8, buffer), "0.0.0.0/8");
	assert_string_equal(route_to_string(UINT32_MAX, 32, buffer), "255.255.255.255/32");
	assert_string_equal(route_verdict_to_string(ROUTE_DENY), "deny");
	assert_string_equal(route_verdict_to_string(ROUTE_DNS), "dns");
	assert_string_equal(route_verdict_to_string(ROUTE_ALLOW), "allow");
	assert_string_equal(route_verdict_to_string(ROUTE_INTERNET), "internet");
}

static size_t count_rows(const RouteTable *table, RouteVerdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		n += table->rows[i].verdict == verdict;
	return n;
}

/* A session that runs keeps its name server, or has none. */
static void test_again(void **state)
{
	static const uint32_t forwarder = IP(198, 51, 100, 53);
	static const struct {
		const char *config, *warning; /* one, or NULL */
		size_t n_dns, n_allow;
		HostPrefix subnet;
		uint32_t forwarder;
	} cases[] = {
		/* The first of the three is free again: what the session was started with stays. */
		{ "", NULL, 1, 0, { IP(10, 0, 0, 0), 24 }, forwarder },
		{ "allow-ip = 198.51.100.0/24", NULL, 1, 1, { IP(10, 0, 0, 0), 24 }, forwarder },
		{ "allow-ip = 198.51.100.53\nallow-ip = 10.1.1.1",
		  "is the name server of this session",
		  1,
		  1,
		  { IP(10, 0, 0, 0), 24 },
		  forwarder },
		{ "",
		  "a network of the host has come to hold",
		  0,
		  0,
		  { IP(198, 51, 100, 0), 24 },
		  forwarder },
		{ "", NULL, 0, 0, { IP(10, 0, 0, 0), 24 }, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(route_table_done) RouteTable table = { 0 };
		_cleanup_(config_done) Config config = CONFIG_INIT;
		_cleanup_free_ char *problem = NULL;
		HostPrefix subnet = cases[i].subnet;
		HostNetwork host = { .subnets = &subnet, .n_subnets = 1 };

		assert_int_equal(
			config_parse(FILE_NAME, cases[i].config, strlen(cases[i].config), &config, &problem),
			0);
		assert_int_equal(routes_make_again(&host, &config, cases[i].forwarder, &table, &problem), 0);
		assert_int_equal(table.forwarder, cases[i].forwarder);
		assert_int_equal(count_rows(&table, ROUTE_DNS), cases[i].n_dns);
		assert_int_equal(count_rows(&table, ROUTE_ALLOW), cases[i].n_allow);
		assert_int_equal(strings_count(table.warnings), cases[i].warning ? 1 : 0);
		if (cases[i].warning)
			assert_non_null(strstr(table.warnings[0], cases[i].warning));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_denial_behind_an_opening),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
