/* SPDX-License-Identifier: MIT */

/*
 * Each step of the denial left out, one at a time: the program is linked with a table of its own, and
 * whatever is missing must be refused by the steps, the self-test or the read-back.
 */

#include "service/net/link.h"
#include "service/net/tap.h"
#include "tests/net/jail.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *left_out; /* the step's name */

#define STEP(name, function, title)                                                                  \
	static int name(Denial *denial, MeantKind kind, char **ret_problem)                          \
	{                                                                                            \
		return left_out && streq(left_out, title) ? 0 : function(denial, kind, ret_problem); \
	}

STEP(loopback_or_not, link_step_loopback, "loopback")
STEP(tables_or_not, denial_part_tables, "tables")
STEP(address_or_not, denial_send, "address")
STEP(filter_or_not, tap_step_filter, "filter")
STEP(reverse_path_or_not, link_step_reverse_path, "reverse-path")
STEP(device_or_not, link_step_jail, "device")
STEP(far_end_or_not, denial_send, "far-end")
STEP(neighbour_or_not, denial_send, "neighbour")
STEP(prohibits_or_not, denial_send, "prohibits")
STEP(ledger_or_not, link_step_ledger, "ledger")
STEP(forwarder_or_not, denial_send, "forwarder")
STEP(allow_ip_or_not, denial_send, "allow-ip")
STEP(default_or_not, denial_send, "default")

/* clang-format off */
const DenialStep denial_steps[] = {
	{ "loopback", loopback_or_not, MEANT_NOTHING },
	{ "tables", tables_or_not, MEANT_NOTHING },
	{ "address", address_or_not, MEANT_ADDRESS },
	{ "filter", filter_or_not, MEANT_NOTHING },
	{ "reverse-path", reverse_path_or_not, MEANT_NOTHING },
	{ "device", device_or_not, MEANT_NOTHING },
	{ "far-end", far_end_or_not, MEANT_FAR_END },
	{ "neighbour", neighbour_or_not, MEANT_NEIGHBOUR },
	{ "prohibits", prohibits_or_not, MEANT_PROHIBIT },
	{ "ledger", ledger_or_not, MEANT_LEDGER },
	{ "forwarder", forwarder_or_not, MEANT_FORWARDER },
	{ "allow-ip", allow_ip_or_not, MEANT_ALLOW },
	{ "default", default_or_not, MEANT_DEFAULT },
	{ NULL, NULL, MEANT_NOTHING },
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
