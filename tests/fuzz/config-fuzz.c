/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/plan/config.h"
#include "tests/fuzz/fuzz.h"

static void policy_row(void *userdata, const char *name, const char *value, const char *origin)
{
	assert(name && value && origin);
	/* Everything of a policy row goes to a terminal. */
	for (const unsigned char *c = (const unsigned char *)value; *c; c++)
		assert(*c >= 0x20 && *c != 0x7f);
}

static void check_codec(const Config *config)
{
	_cleanup_(config_done) Config again = CONFIG_INIT;
	_cleanup_(pack_done) PackWriter w = { 0 };
	PackReader r;

	pack_init(&w, 16u * 1024 * 1024);
	config_pack(config, &w);
	assert(w.error == 0);
	unpack_init(&r, w.data, w.size);
	assert(config_unpack(&r, &again) == 0 && unpack_finish(&r) == 0);
	assert(again.n_values == config->n_values);
	for (size_t i = 0; i < again.n_values; i++)
		assert(streq(again.values[i].text, config->values[i].text));
}

/* A canonical value must be one that the parser takes again, unchanged. */
static void check_canonical(const Config *config)
{
	for (size_t i = 0; i < config->n_values; i++) {
		_cleanup_(config_done) Config one = CONFIG_INIT;
		_cleanup_free_ char *line = NULL;
		const ConfigValue *value = &config->values[i];

		/* A path of the environment may hold what ends a line or begins a comment there. */
		if (strpbrk(value->text, "\n\r#") || strchr(" \t", value->text[strlen(value->text) - 1]))
			continue;
		assert(asprintf(&line, "%s = %s", config_key_name(value->key), value->text) > 0);
		assert(config_parse("f", line, strlen(line), &one, NULL) == 0);
		assert(one.n_values == 1 && streq(one.values[0].text, value->text));
	}
}

/* Input: a file, and after the first 0xff byte the environment, its strings ended by NUL bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *mark = memchr(data, 0xff, size);
	size_t n_file = mark ? (size_t)(mark - data) : size;
	_cleanup_(strings_freep) char **environment = NULL, **widenings = NULL, **groups = NULL;
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ char *problem = NULL, *rest = NULL;

	if (config_parse("f", (const char *)data, n_file, &config, &problem) < 0) {
		assert(problem);
		return 0;
	}
	if (mark) {
		size_t n_rest = size - n_file - 1;

		rest = calloc(1, n_rest + 1);
		assert(rest);
		memcpy(rest, mark + 1, n_rest);
		for (size_t i = 0, n = 0; i < n_rest && n < 64; i += strlen(rest + i) + 1, n++)
			assert(strings_append(&environment, rest + i) == 0);
		if (config_add_environment(&config, environment, &widenings, &problem) < 0)
			assert(problem);
	}
	check_codec(&config);
	check_canonical(&config);
	config_policy(&config, policy_row, NULL);
	(void)config_procfs(&config);
	groups = config_deny_groups(&config);
	assert(groups);
	return 0;
}
