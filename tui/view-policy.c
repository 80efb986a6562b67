/* SPDX-License-Identifier: MIT */

/* What the configuration gives every session, setting by setting, and where each value comes from. */
#include "dbus/names.h"
#include "tui/words.h"

static const Column columns[] = {
	{ .title = "SETTING", .key = "setting" },
	{ .title = "VALUE", .key = "value", .least = 8 },
	{ .title = "ORIGIN", .key = "origin", .least = 8, .weight = 1 },
	{ .title = "MEANING", .least = 16, .weight = 2 },
};

static const Meaning meanings[] = {
	{ "workspace-root", "the directory that agents may change instead of the current one" },
	{ "no-forge", "1 hides the logins of gh and glab" },
	{ "egress-jail", "1 holds the network too: nothing internal is reached but allow-ip" },
	{ "allow-ip", "an internal address that agents of all users reach" },
	{ "local-port", "a TCP port of this machine's 127.0.0.1 that appears inside" },
	{ "local-model-port", "the port where an agent finds a model on this machine" },
	{ "callback-port", "a TCP port inside that appears on this machine, for logins in a browser" },
	{ "tools", "whether agents see the tools of the home, read-only" },
	{ "allow-read", "a path that agents can read though it is hidden" },
	{ "allow-write", "a path that agents can change beside the workspace" },
	{ "hide", "a path that agents cannot see" },
	{ "pass-env", "a variable that agents get from the caller" },
	{ "gpu", "1 gives the graphics devices" },
	{ "allow-device", "a character device that agents may use" },
	{ "procfs", "which /proc agents see: the jail's own (private), or this machine's (outer)" },
	{ "history", "whose transcripts agents see: this project's (project), or all of the user's (all)" },
	{ "forge-host", "a GitLab host beside gitlab.com" },
	{ "deny-group", "a group that no session has" },
	{ "memory-max", "most memory of one session" },
	{ "tasks-max", "most processes of one session" },
	{ "max-sessions", "most sessions of one user" },
};

/* Is it more than nothing that this gives an agent? */
static Style value_style(const char *name, const char *value)
{
	static const char *const wider[] = { "workspace-root",   "allow-ip",    "local-port", "callback-port",
					     "allow-read",       "allow-write", "pass-env",   "allow-device",
					     "local-model-port", "gpu",         "forge-host", NULL };

	if (streq(name, "history"))
		return streq(value, "all") ? STYLE_CAUTION : STYLE_PLAIN;
	if (streq(name, "egress-jail"))
		return streq(value, "0") ? STYLE_BAD : STYLE_GOOD;
	for (size_t i = 0; wider[i]; i++)
		if (streq(name, wider[i]))
			return *value && !streq(value, "0") ? STYLE_CAUTION : STYLE_PLAIN;
	return STYLE_PLAIN;
}

static int rows(const ViewContext *context, Rows *to)
{
	const ClientTable *table = &context->model->policy.table;
	int r = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		const char *name = words_cell(table, i, POLICY_NAME);
		const char *value = words_cell(table, i, POLICY_VALUE);
		const char *origin = words_cell(table, i, POLICY_ORIGIN);
		_cleanup_free_ char *key = NULL;

		if (words_set(&key, "%s %s", name, value) < 0)
			return -ENOMEM;
		(void)rows_add(to, key);
		(void)rows_cell(to, name, STYLE_PLAIN);
		(void)rows_cell(to, value, value_style(name, value));
		(void)rows_cell(to, origin, streq(origin, "default") ? STYLE_FAINT : STYLE_PLAIN);
		r = rows_cell(to, meaning_of(meanings, ELEMENTSOF(meanings), name), STYLE_FAINT);
	}
	return r;
}

static int headline(const ViewContext *context, char **ret)
{
	const char *error = context->model->config_error;

	if (!error || !*error)
		return 0;
	return words_set(ret, "The configuration refuses every launch: %s", error);
}

static const char *empty(const ViewContext *context)
{
	return words_nothing(context, &context->model->policy, "The service names no setting.");
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	const ClientTable *table = &context->model->policy.table;
	bool found = false;
	Words words;

	(void)words_begin(&words, context);
	for (size_t i = 0; i < table->n_rows && !found; i++) {
		const char *name = words_cell(table, i, POLICY_NAME);
		const char *rest = starts_with(key, name);
		const char *meaning = meaning_of(meanings, ELEMENTSOF(meanings), name);

		if (!rest || *rest != ' ' || !streq(rest + 1, words_cell(table, i, POLICY_VALUE)))
			continue;
		found = true;
		words_text(&words, "Setting", name);
		words_text(&words, "Value", rest[1] ? rest + 1 : "none");
		words_text(&words, "Origin", words_cell(table, i, POLICY_ORIGIN));
		words_text(&words, "Meaning", meaning ?: "");
		words_text(
			&words, "To change it",
			streq(name, "allow-ip")
				? "the view Allow-IP, or an editor on " CS_CONFIG_PATH
				  "; sessions that run follow it at once"
				: "an editor on " CS_CONFIG_PATH
				  " (claude-sandbox.conf(5)); it holds for sessions that start from then on");
	}
	return words_end(&words, found, ret);
}

const View view_policy = {
	.name = "policy",
	.title = "Policy",
	.about = "What the configuration gives every session, and where each value comes from.",
	.columns = columns,
	.n_columns = ELEMENTSOF(columns),
	.sort_column = SIZE_MAX,
	.wants = MODEL_POLICY | MODEL_SERVICE,
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
};
