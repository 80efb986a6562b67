/* SPDX-License-Identifier: MIT */
#include "service/plan/environment.h"

#include "service/plan/config-values.h"
#include "service/plan/mount-list.h"

/* What goes through as the caller has it: how to print, in which language, with which tools; never a secret.
 */
static const char *const by_value[] = {
	"TERM",
	"COLORTERM",
	"NO_COLOR",
	"LANG",
	"TZ",
	"EDITOR",
	"VISUAL",
	"PAGER",
	"TERM_PROGRAM",
	"VIRTUAL_ENV",
	"UV_PROJECT_ENVIRONMENT",
	"UV_CACHE_DIR",
	"UV_PYTHON_CACHE_DIR",
	"UV_PYTHON_INSTALL_DIR",
	"UV_TOOL_DIR",
	"PRE_COMMIT_HOME",
};

/* Return: the value of the first NAME=VALUE in environment, or NULL. */
static const char *lookup(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; environment && environment[i]; i++)
		if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=')
			return environment[i] + n + 1;
	return NULL;
}

/* set, where a name that is there already keeps its value. */
static int set(Plan *plan, const char *name, const char *value, const char *origin)
{
	int r = plan_set_variable(plan, name, value, origin);

	return r == -EEXIST ? 0 : r;
}

static int set_path(Plan *plan, const SessionRequest *request, const PlanView *view)
{
	const char *virtual_env = lookup(request->environment, "VIRTUAL_ENV");
	_cleanup_free_ char *bin = NULL, *path = NULL;

	/* A colon would add directories that nobody named. */
	if (virtual_env && virtual_env[0] == '/' && !strchr(virtual_env, ':')) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		if (asprintf(&bin, "%s/bin", virtual_env) < 0) {
			bin = NULL;
			return -ENOMEM;
		}
		/* One that the agent does not see would only be a place that it could make. */
		if (view->resolve(view->userdata, bin, &node) < 0 || !S_ISDIR(node.mode) ||
		    plan_hides(plan, node.path)) {
			free(bin);
			bin = NULL;
		}
	}

	/* The person's own directories come last: a program planted there never stands in for the system's.
	 */
	if (asprintf(&path, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:%s/.local/bin%s%s",
		     request->home, bin ? ":" : "", bin ?: "") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return set(plan, "PATH", path, "sandbox");
}

static int set_fixed(Plan *plan, const SessionRequest *request, const Profile *profile, const PlanView *view)
{
	const struct {
		const char *name, *value, *origin;
	} fixed[] = {
		{ "HOME", request->home, "account" },
		{ "USER", request->user, "account" },
		{ "LOGNAME", request->user, "account" },
		{ "SHELL", request->login_shell, "account" },
		{ "IS_SANDBOX", "1", "sandbox" },
		{ "IS_SANDBOX_AGENT", profile->name, "sandbox" },
		{ "GIT_CONFIG_GLOBAL", CS_GITCONFIG_PATH, "sandbox" },
		{ "GIT_CONFIG_SYSTEM", "/dev/null", "sandbox" },
	};

	int r = set_path(plan, request, view);
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(fixed); i++)
		if (fixed[i].value)
			r = set(plan, fixed[i].name, fixed[i].value, fixed[i].origin);
	return r;
}

static int set_profile(Plan *plan, const SessionRequest *request, const Profile *profile,
		       const PlanFacts *facts)
{
	_cleanup_free_ char *origin = NULL;
	int r = 0;

	if (asprintf(&origin, "profile %s", profile->name) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; r >= 0 && profile->variables[i]; i++) {
		_cleanup_free_ char *name = NULL, *value = NULL;
		const char *text = strchr(profile->variables[i], '=') + 1;
		const char *rest = starts_with(text, "$HOME");

		name = strndup(profile->variables[i], (size_t)(text - 1 - profile->variables[i]));
		if (asprintf(&value, "%s%s", rest ? request->home : "", rest ?: text) < 0)
			value = NULL;
		r = name && value ? set(plan, name, value, origin) : -ENOMEM;
	}
	if (r >= 0 && profile->temp_root && facts->temp_root)
		r = set(plan, "CLAUDE_CODE_TMPDIR", facts->temp_root, "temp root");
	return r;
}

/* LC_ALL and its categories: "LC_" and what a locale category is spelled with. */
static bool is_locale(const char *name, size_t n)
{
	return n > 3 && strncmp(name, "LC_", 3) == 0 &&
	       strspn(name + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") >= n - 3;
}

static int set_by_value(Plan *plan, const SessionRequest *request)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(by_value); i++) {
		const char *value = lookup(request->environment, by_value[i]);

		if (value)
			r = set(plan, by_value[i], value, "caller");
	}
	for (size_t i = 0; r >= 0 && request->environment && request->environment[i]; i++) {
		const char *entry = request->environment[i], *equals = strchr(entry, '=');
		_cleanup_free_ char *name = NULL;

		if (!equals || !is_locale(entry, (size_t)(equals - entry)))
			continue;
		name = strndup(entry, (size_t)(equals - entry));
		r = name ? set(plan, name, equals + 1, "caller") : -ENOMEM;
	}
	return r;
}

static int set_passed(Plan *plan, const SessionRequest *request)
{
	const ConfigValue *passed;
	size_t index = 0;
	int r = 0;

	while (r >= 0 && (passed = config_next(&request->config, CONFIG_PASS_ENV, &index))) {
		const char *value = lookup(request->environment, passed->text);
		_cleanup_free_ char *origin = NULL;

		/* The parser refuses these names; a snapshot that was made otherwise does not get them
		 * through. */
		if (!value || config_pass_env_refusal(passed->text))
			continue;
		if (asprintf(&origin, "pass-env, %s", passed->origin) < 0) {
			origin = NULL;
			return -ENOMEM;
		}
		r = set(plan, passed->text, value, origin);
	}
	return r;
}

/* Last, and no twin: what the caller has of that name is not looked at. */
static int set_entry_guard(Plan *plan)
{
	_cleanup_free_ char *value = strdup("");

	for (size_t i = 0; value && plan->guarded && plan->guarded[i]; i++) {
		_cleanup_free_ char *before = TAKE_PTR(value);

		if (asprintf(&value, "%s%s%s", before, i > 0 ? ":" : "", plan->guarded[i]) < 0)
			value = NULL;
	}
	return value ? plan_set_variable(plan, "CLAUDE_SANDBOX_ENTRY_GUARD", value, "entry-point guard")
		     : -ENOMEM;
}

/* Not an error: other programs have variables of such names. */
static int warn_misspelt(Plan *plan, const SessionRequest *request)
{
	for (size_t i = 0; request->environment && request->environment[i]; i++) {
		const char *variable = request->environment[i];
		size_t n = strcspn(variable, "=");
		_cleanup_free_ char *name = NULL, *shown = NULL;
		int r;

		if (!starts_with(variable, "CLAUDE_SANDBOX_") || config_twin_is_known(variable, n))
			continue;
		name = strndup(variable, n);
		shown = name ? config_display(name) : NULL;
		if (!shown)
			return -ENOMEM;
		r = plan_warn(plan, "the variable %s is no setting and changes nothing; unset or correct it",
			      shown);
		if (r < 0)
			return r;
	}
	return 0;
}

int environment_make(Plan *plan, const SessionRequest *request, const Profile *profile,
		     const PlanFacts *facts, const PlanView *view)
{
	int r;

	if ((r = warn_misspelt(plan, request)) < 0 || (r = set_fixed(plan, request, profile, view)) < 0 ||
	    (r = set_profile(plan, request, profile, facts)) < 0 || (r = set_by_value(plan, request)) < 0)
		return r;
	if ((r = set_passed(plan, request)) < 0)
		return r;
	return set_entry_guard(plan);
}
