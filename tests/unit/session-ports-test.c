/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

#include "service/session/ports.h"

/* What needs no jail: which ports there are, and that none is touched where the network is one. */

static Ports *ports_of(const char *text, bool *ret_none)
{
	_cleanup_(config_done) Config config = parsed(text);
	_cleanup_(strings_freep) char **warnings = NULL;
	_cleanup_free_ char *problem = NULL;
	Ports *ports = NULL;
	sd_event *event;

	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(ports_new(event, &(PortsOptions){ .config = &config, .holder_pidfd = FD_NONE },
				   &warnings, &ports, &problem),
			 0);
	assert_null(warnings);
	*ret_none = !ports;
	(void)sd_event_unref(event);
	return ports;
}

static void expect_row(const Ports *ports, size_t i, uint16_t port, const char *direction, const char *origin)
{
	const PortsRow row = ports_row(ports, i);

	assert_int_equal(row.port, port);
	assert_string_equal(row.direction, direction);
	assert_string_equal(row.state, "shared");
	assert_string_equal(row.origin, origin);
}

static void test_none(void **state)
{
	bool none;

	assert_null(ports_of("", &none));
	assert_true(none);
	assert_null(ports_of("local-model-port = 0\nno-forge\n", &none));
	assert_true(none);
	assert_int_equal(ports_count(NULL), 0);
	ports_stop(NULL);
}

/* The origins outlive the configuration that they were read off. */
static void test_rows(void **state)
{
	bool none;
	Ports *ports = ports_of("callback-port = 1455\nlocal-port = 65535\nlocal-model-port = 1\n"
				"local-port = 1024\n",
				&none);

	assert_false(none);
	assert_int_equal(ports_count(ports), 4);
	expect_row(ports, 0, 65535, "local", AT(2));
	expect_row(ports, 1, 1024, "local", AT(4));
	expect_row(ports, 2, 1, "local", AT(3));
	expect_row(ports, 3, 1455, "callback", AT(1));
	(void)ports_free(ports);
}

/* One port, named twice, is one. */
static void test_model_port_among_the_others(void **state)
{
	bool none;
	Ports *ports = ports_of("local-model-port = 8080\nlocal-port = 8080\n", &none);

	assert_int_equal(ports_count(ports), 1);
	expect_row(ports, 0, 8080, "local", AT(2));
	ports_stop(ports);
	(void)ports_free(ports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_model_port_among_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
