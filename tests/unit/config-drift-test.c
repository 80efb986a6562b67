/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-helpers.h"

#include "service/plan/config-drift.h"

/* words: the beginning of each sentence, one behind the other, with " | " between. */
static const struct {
	const char *then, *now, *words;
} rows[] = {
	{ "", "", "" },
	{ "allow-write = /a\n", "allow-write = /a\n", "" },
	{ "", "allow-write = /a\npass-env = X\negress-jail = 0\ngpu\n", "" },
	{ "allow-write = /a\nallow-write = /b\n", "allow-write = /b\n", "allow-write /a" },
	{ "pass-env = A B\n", "pass-env = B\n", "pass-env A" },
	{ "local-port = 80\ncallback-port = 8081\n", "", "local-port 80 | callback-port 8081" },
	{ "local-port = 8080\n", "callback-port = 8080\n", "local-port 8080" },
	{ "local-model-port = 80\n", "", "local-model-port 80" },
	{ "allow-device = /dev/kvm\n", "", "allow-device /dev/kvm" },
	{ "gpu\n", "gpu = 0\n", "gpu" },
	{ "egress-jail = 0\n", "", "egress-jail 0" },
	{ "", "no-forge\n", "the logins of the forges" },
	{ "no-forge\n", "", "" },
	{ "procfs = outer\n", "procfs = private\n", "a /proc that" },
	{ "", "procfs = private\n", "a /proc that" },
	{ "procfs = private\n", "procfs = private\n", "" },
	{ "history = all\n", "", "started with history = all" },
	{ "", "history = all\n", "" },
	{ "workspace-root = /w\n", "", "workspace-root /w" },
	{ "workspace-root = /w\n", "workspace-root = /v\n", "workspace-root /w" },
	{ "", "workspace-root = /v\n", "" },
	{ "", "memory-max = 1G\n", "more memory" },
	{ "memory-max = 2G\n", "memory-max = 1G\n", "more memory" },
	{ "memory-max = 1G\n", "memory-max = 2G\n", "" },
	{ "memory-max = 1G\n", "", "" },
	{ "", "tasks-max = 100\n", "more tasks" },
	{ "tasks-max = 100\n", "", "" },
	{ "", "deny-group = docker\ndeny-group = x\n", "the group, if its user is in it, x" },
	{ "deny-group = x\n", "deny-group = x\n", "" },
	/* Running sessions follow it. */
	{ "allow-ip = 10.0.0.1\n", "", "" },
	{ "max-sessions = 9\n", "max-sessions = 1\n", "" },
	{ "forge-host = a.b\n", "", "" },
};

static void what_is_laxer_is_named(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(config_done) Config then = parsed(rows[i].then), now = parsed(rows[i].now);
		_cleanup_(strings_freep) char **lines = NULL;
		const char *words = rows[i].words;
		size_t n = 0;

		assert_int_equal(config_drift(&then, &now, &lines), 0);
		for (; *words; n++) {
			const char *end = strstr(words, " | ") ?: words + strlen(words);
			_cleanup_free_ char *word = strndup(words, (size_t)(end - words));

			if (!lines || !lines[n] || !strstr(lines[n], word))
				fail_msg("%s -> %s: %s", rows[i].then, rows[i].now,
					 lines ? lines[n] : "nothing");
			assert_non_null(strstr(lines[n], "start it anew"));
			words = *end ? end + 3 : end;
		}
		if (lines && lines[n])
			fail_msg("%s -> %s: %s", rows[i].then, rows[i].now, lines[n]);
	}
}

/* What was allowed for this launch alone stays allowed. */
static void what_the_environment_had_does_not_count(void **state)
{
	_cleanup_(config_done) Config then = parsed("allow-write = /a\nno-forge\n"), now = CONFIG_INIT;
	_cleanup_(strings_freep) char **lines = NULL, **widenings = NULL;
	char *environment[] = { (char *)"CLAUDE_SANDBOX_ALLOW_WRITE=/b",
				(char *)"CLAUDE_SANDBOX_EGRESS_JAIL=0", NULL };

	assert_int_equal(config_add_environment(&then, environment, &widenings, NULL), 0);
	assert_int_equal(config_drift(&then, &now, &lines), 0);
	assert_non_null(lines);
	assert_non_null(strstr(lines[0], "allow-write /a"));
	assert_null(lines[1]);
}

static void sentences_are_bounded(void **state)
{
	_cleanup_(config_done) Config then = CONFIG_INIT, now = CONFIG_INIT;
	_cleanup_(strings_freep) char **lines = NULL;
	_cleanup_free_ char *text = strdup("");

	for (unsigned i = 1; i <= 100; i++) {
		_cleanup_free_ char *before = text;

		assert_true(asprintf(&text, "%slocal-port = %u\n", before, i) > 0);
	}
	then = parsed(text);
	assert_int_equal(config_drift(&then, &now, &lines), 0);
	assert_int_equal(strings_count(lines), CONFIG_DRIFT_MAX + 1);
	assert_non_null(strstr(lines[CONFIG_DRIFT_MAX], "84 settings more"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_laxer_is_named),
		cmocka_unit_test(what_the_environment_had_does_not_count),
		cmocka_unit_test(sentences_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
