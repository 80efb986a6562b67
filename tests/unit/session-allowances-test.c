/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/config-values.h"
#include "service/session/allowances.h"

#define FILE_NAME "/etc/claude-sandbox.conf"

static Config config_of(const char *text)
{
	_cleanup_free_ char *problem = NULL;
	Config config;

	if (config_parse(FILE_NAME, text, strlen(text), &config, &problem) < 0)
		fail_msg("%s", problem);
	return config;
}

/* "ADDRESS origin, " for each. */
static void assert_written(const Allowances *allowances, const char *expected)
{
	_cleanup_(config_done) Config config = config_of("gpu\nallow-ip = 9.9.9.9");
	char text[1024] = "";
	const ConfigValue *value;
	size_t index = 0;

	assert_int_equal(allowances_write(allowances, &config), 0);
	while ((value = config_next(&config, CONFIG_ALLOW_IP, &index)))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s, ", value->text,
			 value->origin);
	assert_string_equal(text, expected);
	assert_true(config_flag(&config, CONFIG_GPU));
}

static int configure(Allowances *set, const char *one, const char *other)
{
	return allowances_configure(set, (char *[]){ (char *)one, (char *)other, NULL }, true, NULL);
}

static void test_both_sets(void **state)
{
	_cleanup_(config_done) Config config =
		config_of("allow-ip = 10.1.1.1 # printer\nallow-ip = 10.2.0.0/16");
	_cleanup_(allowances_done) Allowances set = { 0 };
	HostPrefix prefix;

	assert_int_equal(config_append(&config, CONFIG_ALLOW_IP, "10.3.3.3", "", "environment X"), 0);
	assert_int_equal(allowances_read(&config, &set), 0);
	assert_written(&set,
		       "10.1.1.1 " FILE_NAME ":1, 10.2.0.0/16 " FILE_NAME ":2, 10.3.3.3 environment X, ");

	/* The session's own of an address that is configured: open while either has it. */
	assert_int_equal(allowances_allow(&set, "10.1.1.1/32", 50, &prefix, NULL), 0);
	assert_int_equal(prefix.address, 0x0a010101);
	assert_int_equal(prefix.length, 32);
	assert_int_equal(configure(&set, "10.2.0.0/16", NULL), 0);
	assert_written(&set, "10.1.1.1 this session, 10.2.0.0/16 " FILE_NAME ":2, 10.3.3.3 environment X, ");
	assert_int_equal(allowances_expire(&set, 49), 0);
	assert_int_equal(allowances_expire(&set, 50), 1);
	assert_written(&set, "10.2.0.0/16 " FILE_NAME ":2, 10.3.3.3 environment X, ");

	/* Likewise the other way round. */
	assert_int_equal(configure(&set, "10.2.0.0/16", "10.3.3.3/32"), 0);
	assert_int_equal(allowances_revoke(&set, "10.3.3.3", NULL), 0);
	assert_written(&set, "10.2.0.0/16 " FILE_NAME ":2, 10.3.3.3 " FILE_NAME ", ");
	assert_int_equal(allowances_revoke(&set, "10.3.3.3", NULL), -ENOENT);
	assert_int_equal(allowances_revoke(&set, "10.9.9.9", NULL), -ENOENT);
	assert_int_equal(configure(&set, "10.3.3.3", NULL), 0);
	assert_written(&set, "10.3.3.3 " FILE_NAME ", ");
	/* What only closes opens nothing. */
	assert_int_equal(allowances_configure(&set, (char *[]){ (char *)"10.4.4.4", NULL }, false, NULL), 0);
	assert_written(&set, "");
}

static void test_ends(void **state)
{
	_cleanup_(allowances_done) Allowances set = { 0 };
	HostPrefix prefix;

	assert_int_equal(allowances_next_end(&set), 0);
	assert_int_equal(allowances_allow(&set, "10.1.1.1", 0, &prefix, NULL), 0);
	assert_int_equal(allowances_next_end(&set), 0);
	assert_int_equal(allowances_allow(&set, "10.1.1.2", 70, &prefix, NULL), 0);
	assert_int_equal(allowances_allow(&set, "10.1.1.3", 60, &prefix, NULL), 0);
	assert_int_equal(allowances_next_end(&set), 60);
	/* Said again, the newer end counts, sooner or later. */
	assert_int_equal(allowances_allow(&set, "10.1.1.3", 90, &prefix, NULL), 0);
	assert_int_equal(allowances_next_end(&set), 70);
	assert_int_equal(allowances_expire(&set, 80), 1);
	assert_int_equal(allowances_next_end(&set), 90);
	assert_int_equal(allowances_expire(&set, UINT64_MAX), 1);
	assert_written(&set, "10.1.1.1 this session, ");
}

static void test_bounds(void **state)
{
	_cleanup_(allowances_done) Allowances set = { 0 }, copy = { 0 };
	_cleanup_free_ char *problem = NULL;
	HostPrefix prefix;
	char text[32];

	for (unsigned i = 0; i < ALLOWANCES_OWN_MAX; i++) {
		snprintf(text, sizeof(text), "10.1.1.%u", i);
		assert_int_equal(allowances_allow(&set, text, 0, &prefix, NULL), 0);
	}
	assert_int_equal(allowances_allow(&set, "10.1.2.1", 0, &prefix, &problem), -E2BIG);
	assert_non_null(problem);
	/* One that it has, and what the configuration has, are not more. */
	assert_int_equal(allowances_allow(&set, "10.1.1.5", 9, &prefix, NULL), 0);
	assert_int_equal(configure(&set, "10.1.2.1", NULL), 0);
	assert_int_equal(allowances_copy(&set, &copy), 0);
	assert_int_equal(copy.n, set.n);
	assert_int_equal(allowances_next_end(&copy), 9);
}

static void test_no_address(void **state)
{
	static const char *const texts[] = { "",          "x",         "10.1.1.1/15", "10.1.1.1/24",
					     "0.0.0.0/0", "127.0.0.1", "::1" };
	_cleanup_(allowances_done) Allowances set = { 0 };
	HostPrefix prefix;

	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		_cleanup_free_ char *problem = NULL;

		assert_int_equal(allowances_allow(&set, texts[i], 0, &prefix, &problem), -EINVAL);
		assert_non_null(problem);
		assert_int_equal(configure(&set, "10.1.1.1", texts[i]), -EINVAL);
		assert_int_equal(allowances_revoke(&set, texts[i], NULL), -EINVAL);
	}
	assert_int_equal(set.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sets),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
