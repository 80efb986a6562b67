/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/resolver.h"

/* Render text; compare what is placed and what is counted. */
static void check(const char *text, uint32_t forwarder, bool keep, const char *expected, unsigned servers,
		  unsigned ipv4)
{
	Resolver resolver = { 0 };

	assert_int_equal(resolver_render(text, strlen(text), forwarder, keep, &resolver), 0);
	assert_string_equal(resolver.text, expected);
	assert_int_equal(resolver.n_servers, servers);
	assert_int_equal(resolver.n_ipv4, ipv4);
	resolver_done(&resolver);
}

#define FORWARDER 0xc6336435u /* 198.51.100.53 */

static void the_forwarder_replaces_every_server(void **state)
{
	check("nameserver 10.0.0.1\nnameserver 127.0.0.53\n", FORWARDER, false, "nameserver 198.51.100.53\n",
	      2, 2);
	check("", FORWARDER, false, "", 0, 0);
	check("search a\nnameserver ::1\n", FORWARDER, false, "search a\n", 1, 0);
}

static void search_domain_and_options_stay_in_order(void **state)
{
	check("# a comment\nsearch a.example b.example\nnameserver 10.0.0.1\noptions edns0 trust-ad\ndomain "
	      "c.example\n"
	      "sortlist 10.0.0.0\n; another\n",
	      FORWARDER, false,
	      "nameserver 198.51.100.53\nsearch a.example b.example\noptions edns0 trust-ad\ndomain "
	      "c.example\n",
	      1, 1);
}

static void ends_of_lines_are_tolerated(void **state)
{
	check("search a.example\r\noptions edns0  \t\r\nnameserver\t10.0.0.1\r\nsearch b.example", FORWARDER,
	      false, "nameserver 198.51.100.53\nsearch a.example\noptions edns0\nsearch b.example\n", 1, 1);
}

static void words_that_only_begin_alike_are_dropped(void **state)
{
	check("searching x\nnameservers 10.0.0.1\noptionsx\n", FORWARDER, false, "", 0, 0);
}

static void families_are_told_apart(void **state)
{
	check("nameserver fe80::1%eth0\nnameserver ::1\nnameserver 10.0.0.1 \nnameserver 300.1.1.1\n",
	      FORWARDER, false, "nameserver 198.51.100.53\n", 4, 1);
}

static void a_shared_network_keeps_its_servers(void **state)
{
	check("nameserver 10.0.0.1\nnameserver ::1\nsearch a\n", 0, true,
	      "nameserver 10.0.0.1\nnameserver ::1\nsearch a\n", 2, 1);
}

static void without_a_forwarder_a_jail_has_no_server(void **state)
{
	check("nameserver 10.0.0.1\nsearch a\n", 0, false, "search a\n", 1, 1);
}

static void bytes_of_zero_are_dropped_with_their_line(void **state)
{
	static const char text[] = "search a\0nameserver 6.6.6.6\nsearch b\n";
	Resolver resolver = { 0 };

	assert_int_equal(resolver_render(text, sizeof(text) - 1, FORWARDER, false, &resolver), 0);
	assert_string_equal(resolver.text, "search b\n");
	resolver_done(&resolver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_forwarder_replaces_every_server),
		cmocka_unit_test(search_domain_and_options_stay_in_order),
		cmocka_unit_test(ends_of_lines_are_tolerated),
		cmocka_unit_test(words_that_only_begin_alike_are_dropped),
		cmocka_unit_test(families_are_told_apart),
		cmocka_unit_test(a_shared_network_keeps_its_servers),
		cmocka_unit_test(without_a_forwarder_a_jail_has_no_server),
		cmocka_unit_test(bytes_of_zero_are_dropped_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
