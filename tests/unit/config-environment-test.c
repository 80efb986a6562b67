/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

typedef struct EnvironmentRow {
	const char *file;
	const char *environment[4];
	ConfigKey key;
	const char *value;    /* all values of key, joined by spaces */
	const char *widening; /* a part of the one sentence, or NULL for none */
} EnvironmentRow;

static char *joined(const Config *config, ConfigKey key)
{
	char *text = strdup("");
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(config, key, &index)))
		assert_int_equal(refuse(&text, 0, "%s%s%s", text, *text ? " " : "", value->text), 0);
	return text;
}

static void test_environment(void **state)
{
	static const EnvironmentRow rows[] = {
		{ "", { "CLAUDE_SANDBOX_NO_FORGE=1" }, CONFIG_NO_FORGE, "1", NULL },
		{ "", { "CLAUDE_SANDBOX_NO_FORGE=0" }, CONFIG_NO_FORGE, "", NULL },
		{ "no-forge", { "CLAUDE_SANDBOX_NO_FORGE=1" }, CONFIG_NO_FORGE, "1", NULL },
		{ "no-forge",
		  { "CLAUDE_SANDBOX_NO_FORGE=0" },
		  CONFIG_NO_FORGE,
		  "0",
		  "logins of gh and glab" },
		{ "no-forge", { "CLAUDE_SANDBOX_NO_FORGE=" }, CONFIG_NO_FORGE, "1", NULL },
		{ "", { "CLAUDE_SANDBOX_EGRESS_JAIL=0" }, CONFIG_EGRESS_JAIL, "0", "network jail off" },
		{ "", { "CLAUDE_SANDBOX_EGRESS_JAIL=1" }, CONFIG_EGRESS_JAIL, "", NULL },
		{ "egress-jail",
		  { "CLAUDE_SANDBOX_EGRESS_JAIL=0" },
		  CONFIG_EGRESS_JAIL,
		  "0",
		  "network jail off" },
		{ "egress-jail=0", { "CLAUDE_SANDBOX_EGRESS_JAIL=0" }, CONFIG_EGRESS_JAIL, "0", NULL },
		{ "egress-jail=0", { "CLAUDE_SANDBOX_EGRESS_JAIL=1" }, CONFIG_EGRESS_JAIL, "1", NULL },
		{ "", { "CLAUDE_SANDBOX_GPU=1" }, CONFIG_GPU, "1", "graphics devices" },
		{ "gpu", { "CLAUDE_SANDBOX_GPU=1" }, CONFIG_GPU, "1", NULL },
		{ "gpu", { "CLAUDE_SANDBOX_GPU=0" }, CONFIG_GPU, "0", NULL },
		{ "",
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT=/w" },
		  CONFIG_WORKSPACE_ROOT,
		  "/w",
		  "writable for the agent: /w" },
		{ "workspace-root=/w",
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT=/w/" },
		  CONFIG_WORKSPACE_ROOT,
		  "/w",
		  NULL },
		{ "workspace-root=/w",
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT=/w/x" },
		  CONFIG_WORKSPACE_ROOT,
		  "/w/x",
		  "/w/x" },
		{ "workspace-root=/w",
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT=" },
		  CONFIG_WORKSPACE_ROOT,
		  "/w",
		  NULL },
		{ "", { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=0" }, CONFIG_LOCAL_MODEL_PORT, "", NULL },
		{ "", { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=80" }, CONFIG_LOCAL_MODEL_PORT, "80", "port 80" },
		{ "local-model-port=80",
		  { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=0" },
		  CONFIG_LOCAL_MODEL_PORT,
		  "0",
		  NULL },
		{ "local-model-port=80",
		  { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=80" },
		  CONFIG_LOCAL_MODEL_PORT,
		  "80",
		  NULL },
		{ "local-model-port=80",
		  { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=81" },
		  CONFIG_LOCAL_MODEL_PORT,
		  "81",
		  "port 81" },
		{ "local-port=80",
		  { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=80" },
		  CONFIG_LOCAL_MODEL_PORT,
		  "80",
		  NULL },
		{ "", { "CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1" }, CONFIG_ALLOW_IP, "10.0.0.1", "reach 10.0.0.1" },
		{ "allow-ip=10.0.0.1",
		  { "CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1/32 10.0.0.2,10.1.0.0/16\n\n10.0.0.2" },
		  CONFIG_ALLOW_IP,
		  "10.0.0.1 10.0.0.2 10.1.0.0/16",
		  "reach 10.0.0.2, 10.1.0.0/16" },
		{ "allow-ip=10.0.0.1",
		  { "CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1" },
		  CONFIG_ALLOW_IP,
		  "10.0.0.1",
		  NULL },
		/* An address inside an allowed network is asked for by name: it may be one that is still
		   denied. */
		{ "allow-ip=10.0.0.0/16",
		  { "CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1" },
		  CONFIG_ALLOW_IP,
		  "10.0.0.0/16 10.0.0.1",
		  "10.0.0.1" },
		{ "", { "CLAUDE_SANDBOX_ALLOW_IP= ,\n" }, CONFIG_ALLOW_IP, "", NULL },
		{ "",
		  { "CLAUDE_SANDBOX_LOCAL_PORTS=80 81,82\n83" },
		  CONFIG_LOCAL_PORT,
		  "80 81 82 83",
		  "port 80, 81, 82, 83" },
		{ "local-port=80", { "CLAUDE_SANDBOX_LOCAL_PORTS=80" }, CONFIG_LOCAL_PORT, "80", NULL },
		{ "", { "CLAUDE_SANDBOX_CALLBACK_PORTS=8080" }, CONFIG_CALLBACK_PORT, "8080", "listen" },
		{ "callback-port=8080",
		  { "CLAUDE_SANDBOX_CALLBACK_PORTS=8080,8080" },
		  CONFIG_CALLBACK_PORT,
		  "8080",
		  NULL },
		{ "",
		  { "CLAUDE_SANDBOX_ALLOW_WRITE=/a b,c\n/d" },
		  CONFIG_ALLOW_WRITE,
		  "/a b,c /d",
		  "write to /a b,c, /d" },
		{ "allow-write=/a", { "CLAUDE_SANDBOX_ALLOW_WRITE=/a/\n" }, CONFIG_ALLOW_WRITE, "/a", NULL },
		{ "",
		  { "CLAUDE_SANDBOX_ALLOW_WRITE=/\x1b\xff" },
		  CONFIG_ALLOW_WRITE,
		  "/\x1b\xff",
		  "/\\x1b\\xff" },
		{ "",
		  { "CLAUDE_SANDBOX_PASS_ENV=A,B C\nD" },
		  CONFIG_PASS_ENV,
		  "A B C D",
		  "variable A, B, C, D" },
		{ "pass-env=A B", { "CLAUDE_SANDBOX_PASS_ENV=B A" }, CONFIG_PASS_ENV, "A B", NULL },
		{ "",
		  { "CLAUDE_SANDBOX_ALLOW_DEVICES=/dev/kvm\n/dev/a b" },
		  CONFIG_ALLOW_DEVICE,
		  "/dev/kvm /dev/a b",
		  "device /dev/kvm, /dev/a b" },
		{ "",
		  { "CLAUDE_SANDBOX_HISTORY=all" },
		  CONFIG_HISTORY,
		  "all",
		  "transcripts of other projects: all" },
		{ "history=all", { "CLAUDE_SANDBOX_HISTORY=all" }, CONFIG_HISTORY, "all", NULL },
		{ "history=all", { "CLAUDE_SANDBOX_HISTORY=project" }, CONFIG_HISTORY, "project", NULL },
		/* What is not a twin is not ours to judge. */
		{ "",
		  { "CLAUDE_SANDBOX_ENTRY_GUARD=:", "CLAUDE_SANDBOX_ALLOW_IPS=x",
		    "CLAUDE_SANDBOX_PROCFS=outer" },
		  CONFIG_PROCFS,
		  "",
		  NULL },
		{ "",
		  { "XCLAUDE_SANDBOX_EGRESS_JAIL=0", "CLAUDE_SANDBOX_EGRESS_JAIL", "=x" },
		  CONFIG_EGRESS_JAIL,
		  "",
		  NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(config_done) Config config = parsed(rows[i].file);
		_cleanup_(strings_freep) char **widenings = NULL;
		_cleanup_free_ char *problem = NULL, *values = NULL;
		char *environment[5] = { 0 };

		memcpy(environment, rows[i].environment, sizeof(rows[i].environment));
		if (config_add_environment(&config, environment, &widenings, &problem) < 0)
			fail_msg("row %zu: %s", i, problem);
		values = joined(&config, rows[i].key);
		if (!streq(values, rows[i].value))
			fail_msg("row %zu: '%s', not '%s'", i, values, rows[i].value);
		if (strings_count(widenings) != (rows[i].widening ? 1 : 0))
			fail_msg("row %zu: %zu widenings (%s)", i, strings_count(widenings),
				 widenings ? widenings[0] : "");
		if (rows[i].widening) {
			char *equals = strchr(rows[i].environment[0], '=');

			if (!strstr(widenings[0], rows[i].widening))
				fail_msg("'%s' does not say '%s'", widenings[0], rows[i].widening);
			assert_int_equal(strncmp(widenings[0], rows[i].environment[0],
						 (size_t)(equals - rows[i].environment[0])),
					 0);
		}
	}
}

static void test_environment_origins(void **state)
{
	_cleanup_(config_done) Config config = parsed("gpu\nallow-ip = 10.0.0.1 # kept\n");
	_cleanup_(strings_freep) char **widenings = NULL;
	char *environment[] = { (char *)"CLAUDE_SANDBOX_GPU=0",
				(char *)"CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1 10.0.0.2",
				(char *)"CLAUDE_SANDBOX_EGRESS_JAIL=0", (char *)"CLAUDE_SANDBOX_PASS_ENV=KEY",
				NULL };
	const ConfigValue *value;
	size_t index = 0;

	assert_int_equal(config_add_environment(&config, environment, &widenings, NULL), 0);
	assert_string_equal(only(&config, CONFIG_GPU)->origin, "environment CLAUDE_SANDBOX_GPU");
	value = config_next(&config, CONFIG_ALLOW_IP, &index);
	assert_string_equal(value->origin, AT(2));
	assert_string_equal(value->comment, "kept");
	value = config_next(&config, CONFIG_ALLOW_IP, &index);
	assert_string_equal(value->origin, "environment CLAUDE_SANDBOX_ALLOW_IP");
	assert_string_equal(value->comment, "");

	/* One sentence a variable; what opens most comes first. */
	assert_int_equal(strings_count(widenings), 3);
	assert_non_null(strstr(widenings[0], "CLAUDE_SANDBOX_EGRESS_JAIL"));
	assert_non_null(strstr(widenings[1], "CLAUDE_SANDBOX_ALLOW_IP"));
	assert_non_null(strstr(widenings[2], "CLAUDE_SANDBOX_PASS_ENV"));
}

static void test_environment_refusals(void **state)
{
	static const struct {
		const char *file, *first, *second;
		const char *words[4];
	} rows[] = {
		{ "",
		  "CLAUDE_SANDBOX_NO_FORGE=maybe",
		  NULL,
		  { "environment CLAUDE_SANDBOX_NO_FORGE: 'maybe'", "yes nor no" } },
		{ "", "CLAUDE_SANDBOX_EGRESS_JAIL=of", NULL, { "CLAUDE_SANDBOX_EGRESS_JAIL", "'of'" } },
		{ "", "CLAUDE_SANDBOX_GPU= 1", NULL, { "CLAUDE_SANDBOX_GPU" } },
		{ "",
		  "CLAUDE_SANDBOX_WORKSPACE_ROOT=w",
		  NULL,
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT", "absolute" } },
		{ "",
		  "CLAUDE_SANDBOX_WORKSPACE_ROOT=/a/..",
		  NULL,
		  { "CLAUDE_SANDBOX_WORKSPACE_ROOT", "'..'" } },
		{ "",
		  "CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1;10.0.0.2",
		  NULL,
		  { "CLAUDE_SANDBOX_ALLOW_IP", "IPv4" } },
		{ "",
		  "CLAUDE_SANDBOX_ALLOW_IP=0.0.0.0/0",
		  NULL,
		  { "CLAUDE_SANDBOX_ALLOW_IP", "default route" } },
		{ "",
		  "CLAUDE_SANDBOX_LOCAL_PORTS=80\t81",
		  NULL,
		  { "CLAUDE_SANDBOX_LOCAL_PORTS", "80\\x0981" } },
		{ "",
		  "CLAUDE_SANDBOX_LOCAL_PORTS=080",
		  NULL,
		  { "CLAUDE_SANDBOX_LOCAL_PORTS", "leading zero" } },
		{ "", "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=x", NULL, { "CLAUDE_SANDBOX_LOCAL_MODEL_PORT" } },
		{ "", "CLAUDE_SANDBOX_CALLBACK_PORTS=0", NULL, { "CLAUDE_SANDBOX_CALLBACK_PORTS" } },
		{ "",
		  "CLAUDE_SANDBOX_ALLOW_WRITE=/a\nb",
		  NULL,
		  { "CLAUDE_SANDBOX_ALLOW_WRITE", "'b'", "absolute" } },
		{ "",
		  "CLAUDE_SANDBOX_PASS_ENV=A LD_PRELOAD",
		  NULL,
		  { "CLAUDE_SANDBOX_PASS_ENV", "'LD_PRELOAD'" } },
		{ "",
		  "CLAUDE_SANDBOX_ALLOW_DEVICES=/dev/net/tun",
		  NULL,
		  { "CLAUDE_SANDBOX_ALLOW_DEVICES", "never" } },
		/* both directions, in each place */
		{ "local-port=8080",
		  "CLAUDE_SANDBOX_CALLBACK_PORTS=8080",
		  NULL,
		  { "environment CLAUDE_SANDBOX_CALLBACK_PORTS", AT(1), "direction" } },
		{ "callback-port=8080",
		  "CLAUDE_SANDBOX_LOCAL_PORTS=8080",
		  NULL,
		  { AT(1), "CLAUDE_SANDBOX_LOCAL_PORTS" } },
		{ "callback-port=8080",
		  "CLAUDE_SANDBOX_LOCAL_MODEL_PORT=8080",
		  NULL,
		  { AT(1), "CLAUDE_SANDBOX_LOCAL_MODEL_PORT" } },
		{ "",
		  "CLAUDE_SANDBOX_LOCAL_PORTS=8080",
		  "CLAUDE_SANDBOX_CALLBACK_PORTS=8080",
		  { "CLAUDE_SANDBOX_CALLBACK_PORTS", "CLAUDE_SANDBOX_LOCAL_PORTS" } },
		/* which of two counts differs between programs */
		{ "",
		  "CLAUDE_SANDBOX_NO_FORGE=1",
		  "CLAUDE_SANDBOX_NO_FORGE=1",
		  { "CLAUDE_SANDBOX_NO_FORGE", "twice" } },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(config_done) Config config = parsed(rows[i].file);
		_cleanup_(strings_freep) char **widenings = NULL;
		_cleanup_free_ char *problem = NULL;
		char *environment[] = { (char *)rows[i].first, (char *)rows[i].second, NULL };
		size_t n = config.n_values;

		if (config_add_environment(&config, environment, &widenings, &problem) != -EINVAL)
			fail_msg("accepted: %s", rows[i].first);
		assert_words(problem, rows[i].words);
		assert_null(widenings);
		assert_int_equal(config.n_values, n);
	}
}

static void test_environment_bounds(void **state)
{
	static const char *const words[] = { "CLAUDE_SANDBOX_LOCAL_PORTS", "more than 64 new values",
					     FILE_NAME, NULL };
	_cleanup_(strings_freep) char **widenings = NULL;
	_cleanup_free_ char *many = strdup("CLAUDE_SANDBOX_LOCAL_PORTS="), *problem = NULL;
	char *environment[] = { NULL, NULL };
	Config config = CONFIG_INIT;

	for (unsigned port = 1; port <= 64; port++)
		assert_int_equal(refuse(&many, 0, "%s %u", many, port), 0);
	environment[0] = many;
	assert_int_equal(config_add_environment(&config, environment, &widenings, NULL), 0);
	assert_int_equal(config.n_values, 64);
	config_done(&config);

	assert_int_equal(refuse(&many, 0, "%s 65", many), 0);
	environment[0] = many;
	assert_int_equal(config_add_environment(&config, environment, &widenings, &problem), -EINVAL);
	assert_words(problem, words);
	assert_int_equal(config.n_values, 0);

	widenings = strings_free(widenings);
	assert_int_equal(config_add_environment(&config, NULL, &widenings, NULL), 0);
	assert_null(widenings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_environment_origins),
		cmocka_unit_test(test_environment_refusals),
		cmocka_unit_test(test_environment_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
