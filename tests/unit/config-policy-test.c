/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

typedef struct Policy {
	size_t n, n_default;
	char *text;
} Policy;

static void policy_row(void *userdata, const char *name, const char *value, const char *origin)
{
	Policy *policy = userdata;

	policy->n++;
	policy->n_default += starts_with(origin, "default") != NULL;
	assert_int_equal(refuse(&policy->text, 0, "%s%s=%s (%s)\n", policy->text ?: "", name, value, origin),
			 0);
}

static void test_policy(void **state)
{
	_cleanup_(config_done) Config config =
		parsed("allow-ip = 10.0.0.1\nallow-ip = 10.0.0.2\nallow-write = /\xff\n"
		       "egress-jail\ndeny-group = ops\n");
	_cleanup_(config_done) Config none = CONFIG_INIT;
	Policy policy = { 0 };

	config_policy(&config, policy_row, &policy);
	/* clang-format off */
	assert_string_equal(policy.text,
			    "workspace-root= (default)\n"
			    "no-forge=0 (default)\n"
			    "egress-jail=1 (" AT(4) ")\n"
			    "allow-ip=10.0.0.1 (" AT(1) ")\n"
			    "allow-ip=10.0.0.2 (" AT(2) ")\n"
			    "local-port= (default)\n"
			    "local-model-port=0 (default)\n"
			    "callback-port= (default)\n"
			    "tools=1 (default)\n"
			    "allow-read= (default)\n"
			    "allow-write=/\\xff (" AT(3) ")\n"
			    "hide= (default)\n"
			    "pass-env= (default)\n"
			    "gpu=0 (default)\n"
			    "allow-device= (default)\n"
			    "procfs=auto (default)\n"
			    "history=project (default)\n"
			    "forge-host= (default)\n"
			    "deny-group=ops (" AT(5) ")\n"
			    "memory-max= (default)\n"
			    "tasks-max=4096 (default)\n"
			    "max-sessions=64 (default)\n");
	/* clang-format on */
	free(policy.text);

	policy = (Policy){ 0 };
	config_policy(&none, policy_row, &policy);
	assert_int_equal(policy.n, CONFIG_KEY_MAX - 1 + 12);
	assert_int_equal(policy.n_default, policy.n);
	free(policy.text);
}

/* A size is shown as it would be written, whatever it is kept as. */
static void test_sizes(void **state)
{
	static const struct {
		const char *written, *shown;
	} rows[] = {
		{ "8G", "8G" }, { "8388608K", "8G" }, { "1536M", "1536M" },
		{ "1", "1" },   { "1025", "1025" },   { "8589934591G", "8589934591G" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *line = NULL, *wanted = NULL;
		Policy policy = { 0 };

		assert_true(asprintf(&line, "memory-max = %s", rows[i].written) > 0);
		assert_true(asprintf(&wanted, "memory-max=%s (" AT(1) ")", rows[i].shown) > 0);
		_cleanup_(config_done) Config config = parsed(line);
		config_policy(&config, policy_row, &policy);
		assert_non_null(strstr(policy.text, wanted));
		free(policy.text);
	}
}

static void test_codec(void **state)
{
	_cleanup_(config_done) Config config =
		parsed("allow-ip = 10.0.0.1 # here\nallow-write = /\xff\xfe\ngpu\n");
	_cleanup_(pack_done) PackWriter w = { 0 };
	Config again = CONFIG_INIT;
	PackReader r;

	pack_init(&w, 4096);
	config_pack(&config, &w);
	assert_int_equal(w.error, 0);

	unpack_init(&r, w.data, w.size);
	assert_int_equal(config_unpack(&r, &again), 0);
	assert_int_equal(unpack_finish(&r), 0);
	assert_int_equal(again.n_values, config.n_values);
	for (size_t i = 0; i < config.n_values; i++) {
		assert_int_equal(again.values[i].key, config.values[i].key);
		assert_string_equal(again.values[i].text, config.values[i].text);
		assert_string_equal(again.values[i].comment, config.values[i].comment);
		assert_string_equal(again.values[i].origin, config.values[i].origin);
	}
	config_done(&again);

	for (size_t size = 0; size < w.size; size++) {
		_cleanup_free_ void *part = malloc(size ?: 1);

		memcpy(part, w.data, size);
		unpack_init(&r, part, size);
		assert_int_equal(config_unpack(&r, &again), -EBADMSG);
		assert_null(again.values);
	}

	/* A key that is none, and more values than there may be. */
	w.data[4] = CONFIG_KEY_MAX;
	unpack_init(&r, w.data, w.size);
	assert_int_equal(config_unpack(&r, &again), -EBADMSG);
	memcpy(w.data, "\xff\xff\xff\xff", 4);
	unpack_init(&r, w.data, w.size);
	assert_int_equal(config_unpack(&r, &again), -EBADMSG);
}

/* As many values as there may be go through; one more is refused before it takes memory. */
static void test_codec_bounds(void **state)
{
	_cleanup_(config_done) Config config = CONFIG_INIT, again = CONFIG_INIT;
	_cleanup_(pack_done) PackWriter w = { 0 };
	PackReader r;

	for (unsigned i = 0; i < CONFIG_VALUES_MAX; i++)
		assert_int_equal(config_append(&config, CONFIG_ALLOW_WRITE, "/x", "", "here"), 0);
	assert_int_equal(config_append(&config, CONFIG_ALLOW_WRITE, "/x", "", "here"), -E2BIG);

	pack_init(&w, 1024u * 1024);
	config_pack(&config, &w);
	unpack_init(&r, w.data, w.size);
	assert_int_equal(config_unpack(&r, &again), 0);
	assert_int_equal(again.n_values, CONFIG_VALUES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_codec),
		cmocka_unit_test(test_codec_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
