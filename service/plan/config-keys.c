/* SPDX-License-Identifier: MIT */
#include "service/plan/config-keys.h"

#include "service/plan/config-values.h"

/* clang-format off */
static const ConfigRow rows[CONFIG_KEY_MAX] = {
	[CONFIG_WORKSPACE_ROOT] = {
		.name = "workspace-root", .type = TYPE_WORKSPACE,
		.variable = "CLAUDE_SANDBOX_WORKSPACE_ROOT", .rank = 1,
		.asks = "makes another directory writable for the agent:",
		.drift = DRIFT_TEXT,
	},
	[CONFIG_NO_FORGE] = {
		.name = "no-forge", .type = TYPE_FLAG, .initial = "0",
		.variable = "CLAUDE_SANDBOX_NO_FORGE", .rank = 10, .narrows = "1",
		.asks = "gives the agent the logins of gh and glab, which the configuration hides",
		.drift = DRIFT_FLAG, .drift_name = "the logins of the forges", .drift_cause = "no-forge hides",
	},
	[CONFIG_EGRESS_JAIL] = {
		.name = "egress-jail", .type = TYPE_FLAG, .initial = "1",
		.variable = "CLAUDE_SANDBOX_EGRESS_JAIL", .rank = 0, .narrows = "1",
		.asks = "switches the network jail off: the agent shares the network of the machine",
		.drift = DRIFT_FLAG, .drift_name = "egress-jail 0",
	},
	[CONFIG_ALLOW_IP] = {
		.name = "allow-ip", .type = TYPE_ADDRESS, .list = true,
		.variable = "CLAUDE_SANDBOX_ALLOW_IP", .rank = 3, .separators = SPLIT_WORDS,
		.asks = "lets the agent reach",
	},
	[CONFIG_LOCAL_PORT] = {
		.name = "local-port", .type = TYPE_PORT, .list = true,
		.variable = "CLAUDE_SANDBOX_LOCAL_PORTS", .rank = 4, .separators = SPLIT_WORDS,
		.asks = "lets the agent reach on the machine's own 127.0.0.1 the port",
		.drift = DRIFT_LIST,
	},
	[CONFIG_LOCAL_MODEL_PORT] = {
		.name = "local-model-port", .type = TYPE_PORT_OR_0, .initial = "0",
		.variable = "CLAUDE_SANDBOX_LOCAL_MODEL_PORT", .rank = 5, .narrows = "0",
		.asks = "lets the agent reach on the machine's own 127.0.0.1 the port",
		.drift = DRIFT_TEXT,
	},
	[CONFIG_CALLBACK_PORT] = {
		.name = "callback-port", .type = TYPE_CALLBACK, .list = true,
		.variable = "CLAUDE_SANDBOX_CALLBACK_PORTS", .rank = 6, .separators = SPLIT_WORDS,
		.asks = "lets the agent listen on the machine's own 127.0.0.1 at the port",
		.drift = DRIFT_LIST,
	},
	[CONFIG_TOOLS] = {
		.name = "tools", .type = TYPE_FLAG, .initial = "1",
		.variable = "CLAUDE_SANDBOX_TOOLS", .rank = 12, .narrows = "0",
		.asks = "shows the agent the tools of the home, which the configuration hides",
		.drift = DRIFT_FLAG, .drift_name = "the tools of the home", .drift_cause = "tools = no hides",
	},
	[CONFIG_ALLOW_READ] = {
		.name = "allow-read", .type = TYPE_PATH, .list = true,
		.variable = "CLAUDE_SANDBOX_ALLOW_READ", .rank = 11, .separators = SPLIT_LINES,
		.asks = "lets the agent read",
		.drift = DRIFT_LIST,
	},
	[CONFIG_ALLOW_WRITE] = {
		.name = "allow-write", .type = TYPE_WRITABLE, .list = true,
		.variable = "CLAUDE_SANDBOX_ALLOW_WRITE", .rank = 2, .separators = SPLIT_LINES,
		.asks = "lets the agent write to",
		.drift = DRIFT_LIST,
	},
	[CONFIG_HIDE] = {
		.name = "hide", .type = TYPE_PATH, .list = true,
		.variable = "CLAUDE_SANDBOX_HIDE", .rank = 13, .separators = SPLIT_LINES,
		.drift = DRIFT_HIDDEN,
	},
	[CONFIG_PASS_ENV] = {
		.name = "pass-env", .type = TYPE_VARIABLE, .list = true, .split = true,
		.variable = "CLAUDE_SANDBOX_PASS_ENV", .rank = 7, .separators = SPLIT_WORDS,
		.asks = "passes to the agent the variable",
		.drift = DRIFT_LIST,
	},
	[CONFIG_GPU] = {
		.name = "gpu", .type = TYPE_FLAG, .initial = "0",
		.variable = "CLAUDE_SANDBOX_GPU", .rank = 9, .narrows = "0",
		.asks = "gives the agent the graphics devices",
		.drift = DRIFT_FLAG, .drift_name = "gpu",
	},
	[CONFIG_ALLOW_DEVICE] = {
		.name = "allow-device", .type = TYPE_DEVICE, .list = true,
		.variable = "CLAUDE_SANDBOX_ALLOW_DEVICES", .rank = 8, .separators = SPLIT_LINES,
		.asks = "gives the agent the device",
		.drift = DRIFT_LIST,
	},
	[CONFIG_PROCFS] = { .name = "procfs", .type = TYPE_PROCFS, .initial = "auto" },
	[CONFIG_HISTORY] = {
		.name = "history", .type = TYPE_HISTORY, .initial = "project",
		.variable = "CLAUDE_SANDBOX_HISTORY", .rank = 14, .narrows = "project",
		.asks = "shows the agent the transcripts of other projects:",
		.drift = DRIFT_FLAG, .drift_name = "history = all",
	},
	[CONFIG_FORGE_HOST] = { .name = "forge-host", .type = TYPE_HOST, .list = true },
	[CONFIG_DENY_GROUP] = { .name = "deny-group", .type = TYPE_GROUP, .list = true },
	[CONFIG_MEMORY_MAX] = {
		.name = "memory-max", .type = TYPE_SIZE,
		.drift = DRIFT_LIMIT, .drift_name = "more memory", .drift_cause = "memory-max does not allow",
	},
	[CONFIG_TASKS_MAX] = {
		.name = "tasks-max", .type = TYPE_TASKS, .initial = "4096",
		.drift = DRIFT_LIMIT, .drift_name = "more tasks", .drift_cause = "tasks-max does not allow",
	},
	[CONFIG_MAX_SESSIONS] = { .name = "max-sessions", .type = TYPE_SESSIONS, .initial = "64" },
};
/* clang-format on */

const ConfigRow *config_row(ConfigKey key)
{
	return &rows[key];
}

const char *config_key_name(ConfigKey key)
{
	return rows[key].name;
}

ConfigKey config_key_from_name(const char *name, size_t n)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++)
		if (strlen(rows[key].name) == n && memcmp(rows[key].name, name, n) == 0)
			return (ConfigKey)key;
	return CONFIG_KEY_INVALID;
}

bool config_key_is_list(ConfigKey key)
{
	return rows[key].list;
}

bool config_key_is_split(ConfigKey key)
{
	return rows[key].split;
}

bool config_key_is_flag(ConfigKey key)
{
	return rows[key].type == TYPE_FLAG;
}

/* Letters compare without case, and '_' is '-'. */
static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

/* Do a and b differ by at most one inserted, left out or replaced character? */
static bool nearly_equal(const char *a, const char *b)
{
	while (*a && folded(*a) == folded(*b)) {
		a++;
		b++;
	}
	for (int way = 0; way < 3; way++) {
		const char *x = a, *y = b;

		if (way != 1 && *x)
			x++;
		if (way != 2 && *y)
			y++;
		while (*x && folded(*x) == folded(*y)) {
			x++;
			y++;
		}
		if (!*x && !*y)
			return true;
	}
	return false;
}

const char *config_key_suggestion(const char *name)
{
	for (int key = 0; key < CONFIG_KEY_MAX; key++)
		if (nearly_equal(rows[key].name, name))
			return rows[key].name;
	return NULL;
}
