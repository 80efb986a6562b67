/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/config.h"

/* The example configuration and its manual page say what the parser takes. CS_DOCS is the folder of both. */

static char *read_file(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(file);
	assert_true(getdelim(&text, &size, '\0', file) > 0);
	return text;
}

/* The example with its settings taken out of their comments: "#key" at the start of a line. */
static char *read_uncommented(void)
{
	_cleanup_free_ char *text = read_file(CS_DOCS "/claude-sandbox.conf");
	char *settings = calloc(1, strlen(text) + 1), *to = settings;

	assert_non_null(settings);
	for (const char *from = text; *from; from++) {
		bool starts_line = from == text || from[-1] == '\n';

		if (!(starts_line && *from == '#' && from[1] >= 'a' && from[1] <= 'z'))
			*to++ = *from;
	}
	return settings;
}

static void example_says_nothing(void **state)
{
	_cleanup_free_ char *text = read_file(CS_DOCS "/claude-sandbox.conf");
	_cleanup_(config_done) Config config = CONFIG_INIT;

	assert_int_equal(config_parse("example", text, strlen(text), &config, NULL), 0);
	assert_int_equal(config.n_values, 0);
}

typedef struct Defaults {
	const Config *example;
	unsigned n_defaults;
} Defaults;

static void expect_default(void *userdata, const char *name, const char *value, const char *origin)
{
	Defaults *defaults = userdata;
	const ConfigValue *shown;
	size_t index = 0;

	while ((shown = config_next(defaults->example, config_key_from_name(name, strlen(name)), &index))) {
		/* What is only an example says so; the rest is what holds anyway. */
		if (starts_with(shown->comment, "e.g.") || streq(shown->text, value)) {
			defaults->n_defaults += streq(shown->text, value);
			return;
		}
	}
	fail_msg("the default of %s is '%s', and the example does not show it", name, value);
}

static void example_shows_every_key_and_default(void **state)
{
	_cleanup_free_ char *text = read_uncommented(), *problem = NULL;
	_cleanup_(config_done) Config config = CONFIG_INIT, nothing = CONFIG_INIT;
	Defaults defaults = { .example = &config };

	if (config_parse("example", text, strlen(text), &config, &problem) < 0)
		fail_msg("%s", problem);
	for (int key = 0; key < CONFIG_KEY_MAX; key++) {
		size_t index = 0;

		if (!config_next(&config, (ConfigKey)key, &index))
			fail_msg("%s is not in the example", config_key_name((ConfigKey)key));
	}
	config_policy(&nothing, expect_default, &defaults);
	assert_true(defaults.n_defaults > 12);
}

static void manual_page_has_every_key(void **state)
{
	_cleanup_free_ char *page = read_file(CS_DOCS "/man/claude-sandbox.conf.5.scd");

	for (int key = 0; key < CONFIG_KEY_MAX; key++) {
		_cleanup_free_ char *entry = NULL;

		assert_true(asprintf(&entry, "\n*%s*", config_key_name((ConfigKey)key)) > 0);
		if (!strstr(page, entry))
			fail_msg("%s is not in claude-sandbox.conf(5)", config_key_name((ConfigKey)key));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_says_nothing),
		cmocka_unit_test(example_shows_every_key_and_default),
		cmocka_unit_test(manual_page_has_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
