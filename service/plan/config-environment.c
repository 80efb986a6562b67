/* SPDX-License-Identifier: MIT */
#include "service/plan/config.h"

#include "dbus/names.h"
#include "service/plan/config-keys.h"
#include "service/plan/config-values.h"

/*
 * The environment is data of the caller, and an agent may have planted it (a project's env file that the
 * shell loads): nothing in here may reach further than the configuration without a sentence in the widenings,
 * on which somebody with the right to widen then decides. Everything is worked out on a copy, so a refusal
 * changes nothing.
 */

/* So many new values of one variable can be asked about; more is no question that a person can answer. */
#define WIDENED_VALUES_MAX 64u

typedef struct Twin {
	ConfigKey key;
	const ConfigRow *row;
} Twin;

/* Set inside, and so perhaps by a person who looks around there. */
static const char *const own_variables[] = { "CLAUDE_SANDBOX_ENTRY_GUARD" };

bool config_twin_is_known(const char *name, size_t n)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++) {
		const char *variable = config_row((ConfigKey)key)->variable;

		if (variable && strlen(variable) == n && memcmp(variable, name, n) == 0)
			return true;
	}
	for (size_t i = 0; i < ELEMENTSOF(own_variables); i++)
		if (strlen(own_variables[i]) == n && memcmp(own_variables[i], name, n) == 0)
			return true;
	return false;
}

/* The variables in the order of their ranks. */
static bool twin_at(unsigned rank, Twin *ret)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++) {
		const ConfigRow *row = config_row((ConfigKey)key);

		if (row->variable && row->rank == rank) {
			*ret = (Twin){ .key = (ConfigKey)key, .row = row };
			return true;
		}
	}
	return false;
}

static int refuse_twin(const Twin twin, const char *reason, char **ret_problem)
{
	return refuse(ret_problem, -EINVAL, "environment %s: %s", twin.row->variable, reason);
}

/* The value of the variable, or NULL; twice is refused, since programs differ about which one counts. */
static int twin_value(const Twin twin, char *const *environment, const char **ret, char **ret_problem)
{
	size_t n = strlen(twin.row->variable);
	const char *found = NULL;

	for (size_t i = 0; environment && environment[i]; i++) {
		if (strncmp(environment[i], twin.row->variable, n) != 0 || environment[i][n] != '=')
			continue;
		if (found)
			return refuse_twin(twin, "set twice; keep one", ret_problem);
		found = environment[i] + n + 1;
	}
	*ret = found;
	return 0;
}

static int twin_append(Config *config, const Twin twin, const char *text, char **ret_problem)
{
	_cleanup_free_ char *origin = NULL;
	int r;

	if (asprintf(&origin, "environment %s", twin.row->variable) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	r = config_append(config, twin.key, text, "", origin);
	if (r == -E2BIG)
		return refuse_twin(twin, "too many values together with the configuration; shorten the list",
				   ret_problem);
	return r;
}

static int parse_value(const Twin twin, const char *text, char **ret, char **ret_problem)
{
	_cleanup_free_ char *reason = NULL;
	int r = config_value_parse(twin.key, text, ret, &reason);

	return r == -EINVAL ? refuse_twin(twin, reason, ret_problem) : r;
}

/* Add to the one sentence of a twin: "VARIABLE asks VALUE, VALUE". */
static int sentence_extend(char **sentence, const Twin twin, const char *text)
{
	_cleanup_free_ char *shown = config_display(text);

	if (!shown)
		return -ENOMEM;
	if (*sentence)
		return refuse(sentence, 0, "%s, %s", *sentence, shown);
	return refuse(sentence, 0, "%s %s %s", twin.row->variable, twin.row->asks, shown);
}

static int list_add(Config *config, const Twin twin, const char *text, char **sentence, char **ret_problem)
{
	size_t n_new = 0;

	for (;;) {
		_cleanup_free_ char *one = NULL, *canonical = NULL;
		size_t n;
		int r;

		text += strspn(text, twin.row->separators);
		n = strcspn(text, twin.row->separators);
		if (n == 0)
			return 0;
		one = strndup(text, n);
		if (!one)
			return -ENOMEM;
		text += n;

		r = parse_value(twin, one, &canonical, ret_problem);
		if (r < 0)
			return r;
		if (config_find(config, twin.key, canonical))
			continue;
		if (++n_new > WIDENED_VALUES_MAX)
			return refuse_twin(
				twin,
				"more than 64 new values; an administrator can put them into " CS_CONFIG_PATH,
				ret_problem);
		r = twin_append(config, twin, canonical, ret_problem);
		if (r < 0)
			return r;
		r = !twin.row->asks ? 0 : sentence_extend(sentence, twin, canonical);
		if (r < 0)
			return r;
	}
}

/* Does the configuration give this already, though in other words? */
static bool scalar_is_given(const Config *config, const Twin twin, const char *text)
{
	if (twin.row->narrows && streq(text, twin.row->narrows))
		return true;
	/* The model's port is one of the local ports and may be among them. */
	return twin.key == CONFIG_LOCAL_MODEL_PORT && config_find(config, CONFIG_LOCAL_PORT, text);
}

static int scalar_set(Config *config, const Twin twin, const char *text, char **sentence, char **ret_problem)
{
	_cleanup_free_ char *canonical = NULL;
	ConfigValue *before = config_find(config, twin.key, NULL);
	const char *now = config_text(config, twin.key);
	int r;

	r = parse_value(twin, text, &canonical, ret_problem);
	if (r < 0)
		return r;
	if (now && streq(now, canonical))
		return 0;

	if (!scalar_is_given(config, twin, canonical)) {
		r = config_key_is_flag(twin.key)
			    ? refuse(sentence, 0, "%s %s", twin.row->variable, twin.row->asks)
			    : sentence_extend(sentence, twin, canonical);
		if (r < 0)
			return r;
	}
	if (before)
		config_remove(config, before);
	return twin_append(config, twin, canonical, ret_problem);
}

static int config_copy(const Config *config, Config *ret)
{
	_cleanup_(config_done) Config copy = CONFIG_INIT;

	for (size_t i = 0; i < config->n_values; i++) {
		const ConfigValue *value = &config->values[i];
		int r = config_append(&copy, value->key, value->text, value->comment, value->origin);

		if (r < 0)
			return r;
	}
	*ret = copy;
	copy = CONFIG_INIT;
	return 0;
}

int config_add_environment(Config *config, char *const *environment, char ***ret_widenings,
			   char **ret_problem)
{
	_cleanup_(strings_freep) char **widenings = NULL;
	_cleanup_(config_done) Config wider = CONFIG_INIT;
	Twin twin;
	int r;

	r = config_copy(config, &wider);
	if (r < 0)
		return r;

	for (unsigned rank = 0; twin_at(rank, &twin); rank++) {
		_cleanup_free_ char *sentence = NULL;
		const char *text = NULL;

		r = twin_value(twin, environment, &text, ret_problem);
		if (r < 0)
			return r;
		if (!text || !*text)
			continue;
		r = twin.row->list ? list_add(&wider, twin, text, &sentence, ret_problem)
				   : scalar_set(&wider, twin, text, &sentence, ret_problem);
		if (r < 0)
			return r;
		if (sentence && strings_append(&widenings, sentence) < 0)
			return -ENOMEM;
	}

	r = config_check_ports(&wider, ret_problem);
	if (r < 0)
		return r;

	config_done(config);
	*config = wider;
	wider = CONFIG_INIT;
	*ret_widenings = TAKE_PTR(widenings);
	return 0;
}
