/* SPDX-License-Identifier: MIT */
#include "service/plan/config-drift.h"

#include "service/plan/config-keys.h"
#include "service/plan/config-values.h"

#define ENVIRONMENT_ORIGIN "environment "

typedef struct Drift {
	char **lines;
	size_t n, more;
	int error;
} Drift;

static void drift_tell(Drift *drift, const char *key, const char *text, const char *what)
{
	_cleanup_free_ char *shown = text ? config_display(text) : strdup("");

	if (drift->error < 0)
		return;
	if (drift->n == CONFIG_DRIFT_MAX) {
		drift->more++;
		return;
	}
	drift->error =
		!shown ? -ENOMEM
		       : strings_appendf(&drift->lines, "started with %s%s%s, which %s now; start it anew",
					 key, *shown ? " " : "", shown, what);
	drift->n++;
}

static void drift_add(Drift *drift, ConfigKey key, const char *text)
{
	const ConfigRow *row = config_row(key);

	drift_tell(drift, row->drift_name ?: row->name, text,
		   row->drift_cause ?: "the configuration does not give");
}

/* The values of root's file alone. Return: 0 or -ENOMEM. */
static int without_environment(const Config *config, Config *ret)
{
	_cleanup_(config_done) Config copy = CONFIG_INIT;

	for (size_t i = 0; i < config->n_values; i++) {
		const ConfigValue *value = &config->values[i];
		int r;

		if (starts_with(value->origin, ENVIRONMENT_ORIGIN))
			continue;
		r = config_append(&copy, value->key, value->text, value->comment, value->origin);
		if (r < 0)
			return r;
	}
	*ret = copy;
	copy = CONFIG_INIT;
	return 0;
}

static void drift_list(Drift *drift, const Config *then, const Config *now, ConfigKey key)
{
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(then, key, &index)))
		if (!config_find(now, key, value->text))
			drift_add(drift, key, value->text);
}

static void drift_hidden(Drift *drift, const Config *then, const Config *now, ConfigKey key)
{
	const ConfigValue *value;
	size_t index = 0;

	while ((value = config_next(now, key, &index)))
		if (!config_find(then, key, value->text))
			drift_tell(drift, "a path in sight:", value->text, "the configuration hides");
}

/* A limit that is not set is the highest. */
static uint64_t limit(const Config *config, ConfigKey key)
{
	return config_number(config, key) - 1;
}

static void drift_single(Drift *drift, const Config *then, const Config *now, ConfigKey key)
{
	const ConfigRow *row = config_row(key);
	const char *before = config_text(then, key), *after = config_text(now, key);

	if (row->drift == DRIFT_TEXT && before && !streq(before, "0") && (!after || !streq(before, after)))
		drift_add(drift, key, before);
	if (row->drift == DRIFT_FLAG && !streq(before, row->narrows) && streq(after, row->narrows))
		drift_add(drift, key, NULL);
	if (row->drift == DRIFT_LIMIT && limit(then, key) > limit(now, key))
		drift_add(drift, key, NULL);
}

static void drift_groups(Drift *drift, const Config *then, const Config *now)
{
	_cleanup_(strings_freep) char **before = config_deny_groups(then), **after = config_deny_groups(now);

	if (!before || !after) {
		drift->error = drift->error ?: -ENOMEM;
		return;
	}
	for (size_t i = 0; after[i]; i++)
		if (!strings_have(before, after[i]))
			drift_tell(drift, "the group, if its user is in it,", after[i], "deny-group has");
}

int config_drift(const Config *then, const Config *now, char ***ret)
{
	_cleanup_(config_done) Config given = CONFIG_INIT;
	Drift drift = { 0 };

	drift.error = without_environment(then, &given);
	if (drift.error == 0) {
		for (int key = 0; key < CONFIG_KEY_MAX; key++) {
			drift_single(&drift, &given, now, (ConfigKey)key);
			if (config_row((ConfigKey)key)->drift == DRIFT_LIST)
				drift_list(&drift, &given, now, (ConfigKey)key);
			if (config_row((ConfigKey)key)->drift == DRIFT_HIDDEN)
				drift_hidden(&drift, then, now, (ConfigKey)key);
		}
		/* Under the outer one the host's command lines are readable. */
		if (config_procfs(&given) != PROCFS_PRIVATE && config_procfs(now) == PROCFS_PRIVATE)
			drift_tell(&drift, "a /proc that may be the host's", NULL,
				   "procfs = private does not allow");
		drift_groups(&drift, &given, now);
	}
	if (drift.error == 0 && drift.more > 0)
		drift.error = strings_appendf(
			&drift.lines, "and with %zu settings more that are not given now", drift.more);
	if (drift.error < 0) {
		strings_free(drift.lines);
		return drift.error;
	}
	*ret = drift.lines;
	return 0;
}
