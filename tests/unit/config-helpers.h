/* SPDX-License-Identifier: MIT */
#pragma once

/* What the tests of the configuration share. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/config.h"
#include "service/plan/config-values.h"

#define FILE_NAME "/etc/claude-sandbox.conf"
#define AT(line) FILE_NAME ":" #line

/* The text as the parser gets it: not terminated, in memory of its exact size, so that reading past it shows.
 */
_unused_ static int parse_bytes(const char *text, size_t size, Config *ret, char **ret_problem)
{
	_cleanup_free_ char *exact = malloc(size ?: 1);

	assert_non_null(exact);
	memcpy(exact, text, size);
	return config_parse(FILE_NAME, exact, size, ret, ret_problem);
}

_unused_ static Config parsed(const char *text)
{
	_cleanup_free_ char *problem = NULL;
	Config config = CONFIG_INIT;
	int r = parse_bytes(text, strlen(text), &config, &problem);

	if (r < 0)
		fail_msg("refused: %s", problem);
	return config;
}

_unused_ static const ConfigValue *only(const Config *config, ConfigKey key)
{
	size_t index = 0;
	const ConfigValue *value = config_next(config, key, &index);

	assert_non_null(value);
	assert_null(config_next(config, key, &index));
	return value;
}

/* One refusal: the sentence must hold each of the words. */
typedef struct Refusal {
	const char *text;
	const char *words[4];
} Refusal;

_unused_ static void assert_words(const char *sentence, const char *const *words)
{
	assert_non_null(sentence);
	assert_null(strchr(sentence, '\n'));
	for (size_t i = 0; i < 4 && words[i]; i++)
		if (!strstr(sentence, words[i]))
			fail_msg("'%s' does not say '%s'", sentence, words[i]);
}
