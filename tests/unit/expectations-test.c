/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/expectations.h"
#include "tests/unit/plan-fixture.h"

static int identify(const Entry *entry, ObjectIdentity *ret)
{
	*ret = (ObjectIdentity){
		.known = true, .device = 7, .inode = strlen(entry->destination), .mode = S_IFDIR
	};
	return 0;
}

static ObjectIdentity identify_path(const char *path)
{
	return (ObjectIdentity){ .known = path[0] == '/', .inode = strlen(path), .mode = S_IFREG | 0644 };
}

static const ExpectedProcess processes[] = {
	{ .pid = 77, .name = (char *)"node", .seccomp = 2, .capabilities = { 0, 0, 5, 0, 0 }, .below = true },
};
static const ExpectedBait baits[] = {
	{ .kind = BAIT_TCP4, .port = 4711, .name = (char *)"" },
	{ .kind = BAIT_ABSTRACT, .name = (char *)"bait" },
};
static const uint32_t addresses[] = { 0x0a000001, 0xc0a80001 };

static void make(PlanFixture *fixture, Expectations *ret)
{
	static RouteRow rows[] = { { 0x0a000000, 8, ROUTE_DENY, (char *)"private" },
				   { 0, 0, ROUTE_INTERNET, (char *)"the internet" } };
	const RouteTable routes = { .rows = rows, .n_rows = ELEMENTSOF(rows), .forwarder = 0xc0000235 };
	const ExpectationFacts facts = { .battery = BATTERY_CHECKS_AND_PROBES,
					 .namespaces = { 1, 2, 3, 4, 5, 6, 7 },
					 .hostname = "host",
					 .terminal = { .known = true, .node = 99 },
					 .routes_problem = "a route too many",
					 .routes = &routes,
					 .host_mounts = "1 0 8:1 / / rw - ext4 /dev/sda rw\n",
					 .jail_mounts = "2 0 8:2 / / ro - ext4 /dev/sdb rw\n",
					 .identify = identify,
					 .identify_path = identify_path,
					 .processes = processes,
					 .n_processes = ELEMENTSOF(processes),
					 .baits = baits,
					 .n_baits = ELEMENTSOF(baits),
					 .bait_token = "token",
					 .host_addresses = addresses,
					 .n_host_addresses = ELEMENTSOF(addresses),
					 .online = true };

	assert_int_equal(plan_fixture_make(fixture), 0);
	assert_int_equal(expectations_make(&fixture->plan, &fixture->request, &facts, ret), 0);
}

static int setup(void **state)
{
	PlanFixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	plan_fixture_init(fixture, "user", "claude");
	plan_fixture_configure(fixture, CONFIG_PASS_ENV, "SECRET_TOKEN");
	plan_fixture_configure(fixture, CONFIG_LOCAL_PORT, "5432");
	plan_fixture_configure(fixture, CONFIG_CALLBACK_PORT, "1455");
	plan_fixture_configure(fixture, CONFIG_ALLOW_WRITE, "/srv/shared");
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	plan_fixture_done(*state);
	free(*state);
	return 0;
}

/* ---- what is derived ---- */

static void every_entry_is_expected(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 };
	PlanFixture *fixture = *state;

	make(fixture, &e);
	assert_int_equal(e.n_entries, fixture->plan.n_entries);
	for (size_t i = 0; i < e.n_entries; i++) {
		const Entry *entry = &fixture->plan.entries[i];

		assert_string_equal(e.entries[i].path, entry->destination);
		assert_int_equal(e.entries[i].kind, entry->kind);
		assert_int_equal(e.entries[i].mode, entry->mode);
		assert_int_equal(e.entries[i].object.known, entry->kind == ENTRY_BIND);
		if (entry->kind == ENTRY_FILE)
			assert_memory_equal(e.entries[i].data, entry->data, entry->data_size);
		if (entry->kind == ENTRY_LINK)
			assert_string_equal(e.entries[i].data, entry->data);
		if (entry->kind == ENTRY_TMPFS || entry->kind == ENTRY_FILE)
			assert_int_not_equal(e.entries[i].permissions, 0);
	}
	assert_int_equal(e.n_variables, fixture->plan.n_variables);
	assert_int_equal(e.n_routes, 2);
	assert_int_equal(e.forwarder, 0xc0000235);
	assert_int_equal(e.n_local_ports, 1);
	assert_int_equal(e.local_ports[0], 5432);
	assert_int_equal(e.callback_ports[0], 1455);
	assert_string_equal(e.allowed_write[0], "/srv/shared");
	assert_string_equal(e.agent, "claude");
	assert_false(e.forbid_namespaces);
	assert_true(e.n_files > 10);
	/* Of every agent. */
	assert_true(e.n_states > 10);
	assert_string_equal(e.states[0].path, "/home/user");
	assert_string_equal(e.states[1].path, "/home/user/.claude");
	assert_int_equal(e.states[1].object.inode, strlen("/home/user/.claude"));
}

static void secrets_are_left_out(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	bool found = false;
	size_t size;

	make(*state, &e);
	for (size_t i = 0; i < e.n_variables; i++)
		if (streq(e.variables[i].name, "SECRET_TOKEN")) {
			found = true;
			assert_null(e.variables[i].value);
		} else
			assert_non_null(e.variables[i].value);
	assert_true(found);
	assert_string_equal(e.passed[0], "SECRET_TOKEN");
	assert_int_equal(expectations_encode(&e, &data, &size), 0);
	assert_null(memmem(data, size, "hidden", 6));
}

static void root_forbids_namespaces(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 };
	PlanFixture *fixture = *state;

	plan_fixture_done(fixture);
	plan_fixture_init(fixture, "root", "shell");
	make(fixture, &e);
	assert_true(e.forbid_namespaces);
	assert_int_equal(e.uid, 0);
}

static void the_last_one_covers(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 };

	make(*state, &e);
	assert_string_equal(expectations_covering(&e, "/usr/bin/env")->path, "/");
	assert_string_equal(expectations_covering(&e, "/home/user/.claude/local/x")->path,
			    "/home/user/.claude/local");
	assert_string_equal(expectations_covering(&e, "/home/username")->path, "/home");
}

/* ---- the codec ---- */

static void comes_back_whole(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 }, back = { 0 };
	_cleanup_free_ uint8_t *data = NULL, *again = NULL;
	size_t size, again_size;

	make(*state, &e);
	assert_int_equal(expectations_encode(&e, &data, &size), 0);
	assert_int_equal(expectations_decode(data, size, &back), 0);
	assert_int_equal(expectations_encode(&back, &again, &again_size), 0);
	assert_int_equal(size, again_size);
	assert_memory_equal(data, again, size);
	assert_int_equal(back.battery, BATTERY_CHECKS_AND_PROBES);
	assert_int_equal(back.namespaces[NAMESPACE_NET], 7);
	assert_string_equal(back.routes_problem, "a route too many");
	assert_string_equal(back.host_mounts, e.host_mounts);
	assert_string_equal(back.jail_mounts, "2 0 8:2 / / ro - ext4 /dev/sdb rw\n");
	assert_int_equal(back.terminal.node, 99);
	assert_int_equal(back.n_states, e.n_states);
	assert_int_equal(back.n_processes, 1);
	assert_true(back.processes[0].below);
	assert_int_equal(back.processes[0].capabilities[CAPABILITY_EFFECTIVE], 5);
	assert_int_equal(back.n_baits, 2);
	assert_int_equal(back.baits[0].port, 4711);
	assert_string_equal(back.baits[1].name, "bait");
	assert_string_equal(back.bait_token, "token");
	assert_int_equal(back.host_addresses[1], 0xc0a80001);
	assert_true(back.online);
	assert_false(back.resolver);
}

static void what_is_short_or_longer_is_refused(void **state)
{
	_cleanup_(expectations_done) Expectations e = { 0 };
	_cleanup_free_ uint8_t *data = NULL, *longer = NULL;
	size_t size;

	make(*state, &e);
	assert_int_equal(expectations_encode(&e, &data, &size), 0);
	for (size_t n = 0; n < size; n += 1 + n / 64) {
		/* A buffer of exactly that size: what is read behind it is found by the sanitizer. */
		_cleanup_free_ uint8_t *part = malloc(n ?: 1);
		Expectations none = { 0 };

		assert_non_null(part);
		memcpy(part, data, n);
		assert_int_equal(expectations_decode(part, n, &none), -EBADMSG);
		assert_null(none.entries);
	}
	longer = malloc(size + 1);
	assert_non_null(longer);
	memcpy(longer, data, size);
	longer[size] = 0;
	assert_int_equal(expectations_decode(longer, size + 1, &e), -EBADMSG);
}

/* Whatever a byte becomes: it is refused or read, and everything of it is freed. */
static void any_byte_may_lie(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0xff };
	_cleanup_(expectations_done) Expectations e = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	make(*state, &e);
	assert_int_equal(expectations_encode(&e, &data, &size), 0);
	for (size_t i = 0; i < size; i += 1 + i / 256)
		for (size_t v = 0; v < ELEMENTSOF(values); v++) {
			_cleanup_(expectations_done) Expectations back = { 0 };
			uint8_t kept = data[i];
			int r;

			data[i] = values[v];
			r = expectations_decode(data, size, &back);
			assert_true(r == 0 || r == -EBADMSG || r == -ENOMEM);
			data[i] = kept;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_entry_is_expected, setup, teardown),
		cmocka_unit_test_setup_teardown(secrets_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(root_forbids_namespaces, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_one_covers, setup, teardown),
		cmocka_unit_test_setup_teardown(comes_back_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_short_or_longer_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(any_byte_may_lie, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
