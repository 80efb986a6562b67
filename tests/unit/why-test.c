/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbus/why.h"

#define ROW(path, kind, mode) (char *)(path), (char *)(kind), (char *)(mode), (char *)"rule", (char *)"why"

static char *entries[] = {
	ROW("/", "bind", "ro"),
	ROW("/dev", "dev", "private"),
	ROW("/tmp", "tmpfs", "private"),
	ROW("/home", "tmpfs", "private"),
	ROW("/home/ann", "directory", "private"),
	ROW("/home/ann/.claude", "link", "private"),
	ROW("/data/claude", "bind", "rw"),
	ROW("/data/claude/local", "tmpfs", "masked"),
	ROW("/home/ann/src", "bind", "rw"),
	ROW("/home/ann/src/.env", "file", "masked"),
	ROW("/etc/resolv.conf", "file", "ro"),
	ROW("/etc", "descriptor", "rw"),
	ROW("/home/ann/src/out.txt", "descriptor", "rw"),
	ROW("/home/ann/src/out.txt", "descriptor", "rw"),
};

static const ClientTable exposure = { 5, ELEMENTSOF(entries) / 5, entries };

static const struct {
	const char *path, *target;
} links[] = {
	{ "/home/ann/.claude", "/data/claude" },
	{ "/home/ann/src/up", "../x" },
	{ "/home/ann/src/root", "/" },
	{ "/home/ann/src/host", "/etc/../etc/passwd" },
	{ "/home/ann/src/loop", "./loop" },
	{ "/home/ann/src/.env", "/etc/passwd" },
	{ "/bin", "usr/bin" },
	{ "/tmp/link", "/etc" },
	{ "/home/link", "/etc" },
};

static int fake_read_link(const char *path, char **ret)
{
	for (size_t i = 0; i < ELEMENTSOF(links); i++)
		if (streq(links[i].path, path)) {
			*ret = strdup(links[i].target);
			return *ret ? 0 : -ENOMEM;
		}
	return -EINVAL;
}

/* Links lead on where the agent sees what is outside, and nowhere else. */
static void links_are_the_agents(void **state)
{
	static const struct {
		const char *path, *leads;
	} cases[] = {
		{ "/", "/" },
		{ "//usr///bin/", "/usr/bin" },
		{ "/usr/./bin/../../../..", "/" },
		{ "/bin/sh", "/usr/bin/sh" },
		{ "/home/ann/.claude/x", "/data/claude/x" },
		{ "/home/ann/src/up/y", "/home/ann/x/y" },
		{ "/home/ann/src/root", "/" },
		{ "/home/ann/src/host", "/etc/passwd" },
		{ "/home/ann/src/.env", "/home/ann/src/.env" },
		{ "/tmp/link/x", "/tmp/link/x" },
		{ "/home/link", "/home/link" },
	};
	char *leads = NULL;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		assert_int_equal(why_resolve(&exposure, cases[i].path, fake_read_link, &leads), 0);
		assert_string_equal(leads, cases[i].leads);
		free(leads);
	}
	assert_int_equal(why_resolve(&exposure, "/home/ann/src/loop/x", fake_read_link, &leads), -ELOOP);
}

static void the_last_entry_decides(void **state)
{
	static const struct {
		const char *path, *entry, *meaning;
	} cases[] = {
		{ "/", "/", "can be read, as" },
		{ "/homes", "/", "can be read, as" },
		{ "/home", "/home", "a private directory" },
		{ "/home/ann", "/home/ann", "a private directory" },
		{ "/home/ann/x", "/home", "not what is outside" },
		{ "/home/ann/.claude", "/home/ann/.claude", "a link" },
		{ "/home/ann/.claude/x", "/home", "not what is outside" },
		{ "/home/ann/src/x", "/home/ann/src", "read and changed" },
		{ "/home/ann/src/.env", "/home/ann/src/.env", "hidden: something empty stands in its place" },
		{ "/data/claude/local/x", "/data/claude/local", "of a directory above" },
		{ "/etc/passwd", "/", "can be read" },
		{ "/etc/resolv.conf", "/etc/resolv.conf", "the session made" },
		{ "/home/ann/src/out.txt", "/home/ann/src", "read and changed" },
		{ "/dev/null", "/dev", "its own" },
	};
	const ClientTable none = { 5, 0, NULL };
	size_t index = 0, n = 0;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		ssize_t row = why_entry(&exposure, cases[i].path);

		assert_true(row >= 0);
		assert_string_equal(entries[row * 5], cases[i].entry);
		assert_non_null(strstr(why_meaning(&exposure, row, cases[i].path), cases[i].meaning));
	}
	assert_int_equal(why_entry(&none, "/"), WHY_NONE);
	while (why_descriptor(&exposure, "/home/ann/src/out.txt", &index) != WHY_NONE)
		n++;
	assert_int_equal(n, 2);
}

#define ROUTE(destination, verdict, state) \
	(char *)(destination), (char *)(verdict), (char *)"", (char *)"", (char *)(state)

static char *routes[] = {
	ROUTE("127.0.0.0/8", "allow", "in force"), ROUTE("127.0.0.0/8", "deny", "in force"),
	ROUTE("10.0.0.0/8", "deny", "in force"),   ROUTE("10.1.0.0/16", "deny", "in force"),
	ROUTE("10.1.0.0/16", "allow", "in force"), ROUTE("10.1.2.3/32", "deny", "in force"),
	ROUTE("10.9.0.0/16", "allow", "left out"), ROUTE("10.8.0.0/16", "allow", "missing"),
	ROUTE("10.0.0.0/33", "allow", "in force"), ROUTE("10.0.0.0/", "allow", "in force"),
	ROUTE("10.0.0.0/8x", "allow", "in force"), ROUTE("10.0.0/8", "allow", "in force"),
	ROUTE("\033[2J", "allow", "in force"),     ROUTE("", "allow", "in force"),
	ROUTE("192.0.2.53/32", "dns", "in force"), ROUTE("default", "internet", "in force"),
};

/* The longest that is there; of two equal ones that which opens, as the kernel takes metric 0 first. */
static void the_longest_route_decides(void **state)
{
	static const struct {
		const char *address, *destination, *verdict;
	} cases[] = {
		{ "8.8.8.8", "default", "internet" },         { "10.0.0.1", "10.0.0.0/8", "deny" },
		{ "10.1.9.9", "10.1.0.0/16", "allow" },       { "10.1.2.3", "10.1.2.3/32", "deny" },
		{ "10.9.1.1", "10.0.0.0/8", "deny" },         { "10.8.1.1", "10.0.0.0/8", "deny" },
		{ "127.0.0.1", "127.0.0.0/8", "allow" },      { "192.0.2.53", "192.0.2.53/32", "dns" },
		{ "255.255.255.255", "default", "internet" }, { "::ffff:10.1.2.3", "10.1.2.3/32", "deny" },
	};
	const ClientTable table = { 5, ELEMENTSOF(routes) / 5, routes }, none = { 5, 0, NULL };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		uint32_t address = 0;
		ssize_t row;

		assert_int_equal(why_address(cases[i].address, &address), WHY_IPV4);
		row = why_route(&table, (WhyNetwork){ address, 32 });
		assert_true(row >= 0);
		assert_string_equal(routes[row * 5], cases[i].destination);
		assert_string_equal(routes[row * 5 + 1], cases[i].verdict);
	}
	assert_int_equal(why_route(&none, (WhyNetwork){ 1, 32 }), WHY_NONE);
}

static void networks_are_whole(void **state)
{
	static const struct {
		const char *text, *destination;
		size_t others;
		bool may;
	} cases[] = {
		{ "10.0.0.0/8", "10.0.0.0/8", 1, false },  { "10.1.0.0/16", "10.1.0.0/16", 1, true },
		{ "10.1.2.0/24", "10.1.0.0/16", 1, true }, { "10.1.3.9/24", "10.1.0.0/16", 0, true },
		{ "10.1.2.3/32", "10.1.2.3/32", 0, true }, { "127.0.0.0/16", "127.0.0.0/8", 0, false },
		{ "192.0.0.0/16", "default", 1, false },   { "default", "default", 5, false },
	};
	static const char *const none[] = { "10.0.0.0",    "10.0.0.0/33", "10.0.0.0/", "10/8",
					    "/10.0.0.0/8", "x",           "" };
	const ClientTable table = { 5, ELEMENTSOF(routes) / 5, routes };
	WhyNetwork network;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		ssize_t row;

		assert_int_equal(why_network(cases[i].text, &network), 0);
		row = why_route(&table, network);
		assert_true(row >= 0);
		assert_string_equal(routes[row * 5], cases[i].destination);
		assert_int_equal(why_others(&table, network, routes[row * 5 + 1]), cases[i].others);
		assert_int_equal(why_may_be_allowed(network), cases[i].may);
	}
	for (size_t i = 0; i < ELEMENTSOF(none); i++)
		assert_int_equal(why_network(none[i], &network), -EINVAL);
}

static void the_internet_is_told_from_the_rest(void **state)
{
	static const char *const internal[] = { "10.1.2.3/32", "172.31.0.0/16", "192.168.1.0/24",
						"100.64.0.0/16" },
				 *const public[] = { "8.8.8.8/32", "172.32.0.0/16", "192.169.0.0/16",
						     "1.1.1.0/24" };
	WhyNetwork network;

	for (size_t i = 0; i < ELEMENTSOF(internal); i++) {
		assert_int_equal(why_network(internal[i], &network), 0);
		assert_true(why_is_internal(network));
	}
	for (size_t i = 0; i < ELEMENTSOF(public); i++) {
		assert_int_equal(why_network(public[i], &network), 0);
		assert_false(why_is_internal(network));
	}
}

static void nothing_there_is_said(void **state)
{
	assert_null(why_nothing(&exposure, why_entry(&exposure, "/home/ann/src"), "/home/ann/src"));
	assert_null(why_nothing(&exposure, why_entry(&exposure, "/home/x"), "/home/x"));
	assert_non_null(
		strstr(why_nothing(&exposure, why_entry(&exposure, "/opt/x"), "/opt/x"), "cannot make"));
	assert_non_null(
		strstr(why_nothing(&exposure, why_entry(&exposure, "/home/ann/src/x"), "/home/ann/src/x"),
		       "may make"));
}

static void addresses_are_told_from_paths(void **state)
{
	static const struct {
		const char *text;
		WhyFamily family;
	} cases[] = {
		{ "1.2.3.4", WHY_IPV4 },
		{ "::ffff:1.2.3.4", WHY_IPV4 },
		{ "::1", WHY_IPV6 },
		{ "[fe80::1]", WHY_IPV6 },
		{ "2001:db8::", WHY_IPV6 },
		{ "1.2.3", WHY_NO_ADDRESS },
		{ "01.2.3.4", WHY_NO_ADDRESS },
		{ "1.2.3.4/8", WHY_NO_ADDRESS },
		{ "./1.2.3.4", WHY_NO_ADDRESS },
		{ "", WHY_NO_ADDRESS },
		{ "[]", WHY_NO_ADDRESS },
		{ "1.2.3.4:80", WHY_NO_ADDRESS },
		{ "github.com", WHY_NO_ADDRESS },
		{ "[1.2.3.4]", WHY_NO_ADDRESS },
	};
	uint32_t address = 0;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		assert_int_equal(why_address(cases[i].text, &address), cases[i].family);
	assert_int_equal(why_address("1.2.3.4", &address), WHY_IPV4);
	assert_int_equal(address, 0x01020304);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_the_agents),
		cmocka_unit_test(the_last_entry_decides),
		cmocka_unit_test(the_longest_route_decides),
		cmocka_unit_test(networks_are_whole),
		cmocka_unit_test(the_internet_is_told_from_the_rest),
		cmocka_unit_test(nothing_there_is_said),
		cmocka_unit_test(addresses_are_told_from_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
