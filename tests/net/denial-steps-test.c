/* SPDX-License-Identifier: MIT */

/*
 * Each step of the denial left out, one at a time: the program is linked with a table of its own, and
 * whatever is missing must be refused by the steps, the self-test or the read-back.
 */

#include "service/net/address.h"
#include "service/net/ledger-device.h"
#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/route.h"
#include "service/net/rule.h"
#include "service/net/tap.h"
#include "tests/net/jail.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *left_out; /* the step's name */

#define STEP(function, title)                                                                  \
	static int without_##function(Denial *denial, char **ret_problem)                      \
	{                                                                                      \
		return left_out && streq(left_out, title) ? 0 : function(denial, ret_problem); \
	}

STEP(link_step_loopback, "loopback")
STEP(rule_step_tables, "tables")
STEP(address_step, "address")
STEP(tap_step_filter, "filter")
STEP(link_step_reverse_path, "reverse-path")
STEP(link_step_jail, "device")
STEP(neighbour_step, "neighbour")
STEP(route_step_prohibits, "prohibits")
STEP(ledger_step, "ledger")
STEP(route_step_forwarder, "forwarder")
STEP(route_step_allow_ip, "allow-ip")
STEP(route_step_default, "default")
STEP(route_step_far_end, "far-end")

/* clang-format off */
const DenialStep denial_steps[] = {
	{ "loopback", without_link_step_loopback },
	{ "tables", without_rule_step_tables },
	{ "address", without_address_step },
	{ "filter", without_tap_step_filter },
	{ "reverse-path", without_link_step_reverse_path },
	{ "device", without_link_step_jail },
	{ "far-end", without_route_step_far_end },
	{ "neighbour", without_neighbour_step },
	{ "prohibits", without_route_step_prohibits },
	{ "ledger", without_ledger_step },
	{ "forwarder", without_route_step_forwarder },
	{ "allow-ip", without_route_step_allow_ip },
	{ "default", without_route_step_default },
	{ NULL, NULL },
};
/* clang-format on */

/* Whoever refuses first. Return: its name, or NULL when nobody did; *ret_problem says what it said. */
static const char *refused_by(char **ret_problem, bool self_test_only)
{
	const char *by = NULL;
	Denial denial = { 0 };
	Jail jail;

	jail_routes_make(0);
	if (jail_start(&jail, ret_problem) < 0)
		fail_msg("%s", *ret_problem);
	if (denial_init(&denial, &jail.sockets, &jail_routes, ret_problem) < 0)
		fail_msg("%s", *ret_problem);
	if (denial_apply(&denial, ret_problem) < 0)
		by = "its step";
	else if (jail_run(&jail, jail_self_test, NULL, ret_problem) < 0)
		by = "the self-test";
	else if (!self_test_only && denial_read_back(&denial, ret_problem) < 0)
		by = "the read-back";
	denial_done(&denial);
	jail_stop(&jail);
	return by;
}

static void test_none_left_out(void **state)
{
	_cleanup_free_ char *problem = NULL;

	left_out = NULL;
	if (refused_by(&problem, false))
		fail_msg("%s", problem);
}

static void test_each_left_out(void **state)
{
	for (const DenialStep *step = denial_steps; step->name; step++) {
		_cleanup_free_ char *problem = NULL;
		const char *by;

		left_out = step->name;
		by = refused_by(&problem, false);
		if (!by)
			fail_msg("without '%s' nothing refuses", step->name);
		assert_non_null(problem);
		assert_true(problem[0] != '\0');
		print_message("without '%s', %s refuses: %s\n", step->name, by, problem);
	}
	left_out = NULL;
}

/* The steps that stand against the ways round the routes show in frames, not only in the description. */
static void test_self_test_sees_frames(void **state)
{
	static const char *const steps[] = { "filter", "far-end" };

	for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
		_cleanup_free_ char *problem = NULL;

		left_out = steps[i];
		assert_non_null(refused_by(&problem, true));
		assert_non_null(strstr(problem, "SO_BINDTODEVICE: a frame to "));
	}
	left_out = NULL;
}

static int run(const char *user)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_left_out),
		cmocka_unit_test(test_each_left_out),
		cmocka_unit_test(test_self_test_sees_frames),
	};

	return cmocka_run_group_tests_name(user, tests, NULL, NULL);
}

int main(void)
{
	return as_each_user(run);
}
