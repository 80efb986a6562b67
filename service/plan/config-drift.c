/* SPDX-License-Identifier: MIT */
#include "service/plan/config-drift.h"

#include "service/plan/config-values.h"

#define ENVIRONMENT_ORIGIN "environment "

typedef struct Drift {
	char **lines;
	size_t n, more;
	int error;
} Drift;

static void drift_add(Drift *drift, const char *key, const char *text, const char *what)
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

static void drift_lists(Drift *drift, const Config *then, const Config *now)
{
	static const ConfigKey keys[] = { CONFIG_LOCAL_PORT, CONFIG_CALLBACK_PORT, CONFIG_ALLOW_WRITE,
					  CONFIG_PASS_ENV, CONFIG_ALLOW_DEVICE };

	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		const ConfigValue *value;
		size_t index = 0;

		while ((value = config_next(then, keys[i], &index)))
			if (!config_find(now, keys[i], value->text))
				drift_add(drift, config_key_name(keys[i]), value->text,
					  "the configuration does not give");
	}
}

static void drift_flags(Drift *drift, const Config *then, const Config *now)
{
	if (!config_flag(then, CONFIG_EGRESS_JAIL) && config_flag(now, CONFIG_EGRESS_JAIL))
		drift_add(drift, "egress-jail", "0", "the configuration does not give");
	if (!config_flag(then, CONFIG_NO_FORGE) && config_flag(now, CONFIG_NO_FORGE))
		drift_add(drift, "the logins of the forges", NULL, "no-forge hides");
	if (config_flag(then, CONFIG_GPU) && !config_flag(now, CONFIG_GPU))
		drift_add(drift, "gpu", NULL, "the configuration does not give");
	/* Under the outer one the host's command lines are readable. */
	if (config_procfs(then) != PROCFS_PRIVATE && config_procfs(now) == PROCFS_PRIVATE)
		drift_add(drift, "a /proc that may be the host's", NULL, "procfs = private does not allow");
}

static void drift_scalars(Drift *drift, const Config *then, const Config *now)
{
	const char *root = config_text(then, CONFIG_WORKSPACE_ROOT),
		   *root_now = config_text(now, CONFIG_WORKSPACE_ROOT);
	uint64_t port = config_number(then, CONFIG_LOCAL_MODEL_PORT);

	if (root && (!root_now || !streq(root, root_now)))
		drift_add(drift, "workspace-root", root, "the configuration does not give");
	if (port != 0 && port != config_number(now, CONFIG_LOCAL_MODEL_PORT))
		drift_add(drift, "local-model-port", config_text(then, CONFIG_LOCAL_MODEL_PORT),
			  "the configuration does not give");
	/* 0: no limit. */
	if (config_number(now, CONFIG_MEMORY_MAX) != 0 &&
	    config_number(then, CONFIG_MEMORY_MAX) - 1 > config_number(now, CONFIG_MEMORY_MAX) - 1)
		drift_add(drift, "more memory", NULL, "memory-max does not allow");
	if (config_number(then, CONFIG_TASKS_MAX) > config_number(now, CONFIG_TASKS_MAX))
		drift_add(drift, "more tasks", NULL, "tasks-max does not allow");
}

static bool strings_have(char *const *strings, const char *text)
{
	for (size_t i = 0; strings[i]; i++)
		if (streq(strings[i], text))
			return true;
	return false;
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
			drift_add(drift, "the group, if its user is in it,", after[i], "deny-group has");
}

int config_drift(const Config *then, const Config *now, char ***ret)
{
	_cleanup_(config_done) Config given = CONFIG_INIT;
	Drift drift = { 0 };

	drift.error = without_environment(then, &given);
	if (drift.error == 0) {
		drift_flags(&drift, &given, now);
		drift_lists(&drift, &given, now);
		drift_scalars(&drift, &given, now);
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
