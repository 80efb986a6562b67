/* SPDX-License-Identifier: MIT */

/*
 * One row more in the list of denied ranges, and everybody follows it: the program is linked with a list of
 * its own.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/inside/probe-reach.h"
#include "service/net/meant.h"

#define MADE_UP 0x2c000000u /* 44.0.0.0/8 */

const DeniedRange denied_ranges[] = {
	{ { MADE_UP, 8 }, "made up", "is made up" },
	{ { 0xc0000000u, 24 }, "the far end's", NULL },
	{ .reason = NULL },
};

static void test_table(void **state)
{
	_cleanup_(route_table_done) RouteTable table = { 0 };
	const JailDevices devices = { .lo = 1, .jail = 2, .ledger = 3 };
	_cleanup_free_ char *problem = NULL;
	_cleanup_(meant_done) Meant meant = { 0 };
	const HostNetwork host = { .uplink = true };
	Config config = CONFIG_INIT;
	unsigned prohibits = 0, explained = 0;

	assert_int_equal(routes_make(&host, &config, &table, &problem), 0);
	assert_int_equal(routes_verdict(&table, MADE_UP + 5), ROUTE_DENY);
	assert_string_equal(routes_find(&table, MADE_UP + 5)->reason, "made up");
	/* Nothing else is in the list. */
	assert_int_equal(routes_verdict(&table, 0x0a000001u), ROUTE_INTERNET);

	assert_int_equal(meant_make(&table, &devices, &meant), 0);
	for (size_t i = 0; i < meant.n; i++)
		if (meant.rows[i].row && meant.rows[i].row->address == MADE_UP) {
			prohibits += meant.rows[i].kind == MEANT_PROHIBIT;
			explained += meant.rows[i].kind == MEANT_LEDGER;
		}
	assert_int_equal(prohibits, 1);
	assert_int_equal(explained, 1);
}

static void test_allow_ip(void **state)
{
	_cleanup_free_ char *problem = NULL;
	uint32_t address;
	unsigned length;

	assert_int_equal(config_parse_address("44.1.2.3", &address, &length, &problem), -EINVAL);
	assert_string_equal(problem, "'44.1.2.3' is made up; leave it out");
	assert_int_equal(config_parse_address("192.0.0.9", &address, &length, &problem), 0);
}

static void test_probes(void **state)
{
	static ReachTargets targets;
	const Probing probing = { 0 };

	reach_add_denied(&probing, &targets);
	assert_int_equal(targets.n, 2);
	assert_string_equal(targets.targets[0].text, "44.0.0.1:80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_allow_ip),
		cmocka_unit_test(test_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
