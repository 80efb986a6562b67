/* SPDX-License-Identifier: MIT */

/* 04 and 05: the variables. */

#include "service/inside/checks.h"

#include "service/inside/measure.h"

extern char **environ;

/* Names that hold secrets, or lead to who holds them; "*" at one end stands for anything. */
static const char *const secret_names[] = {
	"GH_TOKEN",
	"GITHUB_TOKEN",
	"GITLAB_TOKEN",
	"OPENAI_API_KEY",
	"ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN",
	"CLAUDE_CODE_OAUTH_TOKEN",
	"SSH_AUTH_SOCK",
	"SSH_AGENT_PID",
	"GPG_AGENT_INFO",
	"KRB5CCNAME",
	"KUBECONFIG",
	"DOCKER_HOST",
	"DATABASE_URL",
	"AWS_*",
	"AZURE_*",
	"GOOGLE_*",
	"*_TOKEN",
	"*_SECRET",
	"*_PASSWORD",
	"*_API_KEY",
	"*_PRIVATE_KEY",
};

static const char *const display_names[] = {
	"DISPLAY",         "WAYLAND_DISPLAY",          "WAYLAND_SOCKET",          "XAUTHORITY",
	"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
};

static bool matches(const char *pattern, const char *name, size_t n)
{
	size_t m = strlen(pattern);

	if (pattern[0] == '*')
		return n >= m - 1 && strncmp(name + n - (m - 1), pattern + 1, m - 1) == 0;
	if (pattern[m - 1] == '*')
		return strncmp(name, pattern, m - 1) == 0;
	return n == m && strncmp(name, pattern, n) == 0;
}

static bool matches_any(const char *const *patterns, size_t n_patterns, const char *name, size_t n)
{
	for (size_t i = 0; i < n_patterns; i++)
		if (matches(patterns[i], name, n))
			return true;
	return false;
}

static bool is_passed(const Expectations *e, const char *name, size_t n)
{
	for (size_t i = 0; e && e->passed && e->passed[i]; i++)
		if (strlen(e->passed[i]) == n && strncmp(e->passed[i], name, n) == 0)
			return true;
	return false;
}

static bool is_expected(const Expectations *e, const char *name, size_t n)
{
	for (size_t i = 0; i < e->n_variables; i++)
		if (strlen(e->variables[i].name) == n && strncmp(e->variables[i].name, name, n) == 0)
			return true;
	return false;
}

/* A name that is configured to pass is the administrator's decision: it is told and does not fail. */
static void judge_names(Battery *b, const char *const *patterns, size_t n_patterns)
{
	const Expectations *e = battery_expectations(b);

	for (size_t i = 0; environ[i]; i++) {
		size_t n = strcspn(environ[i], "=");

		if (!matches_any(patterns, n_patterns, environ[i], n))
			continue;
		if (is_passed(e, environ[i], n))
			battery_note(b, "%.*s passes, as pass-env says", (int)n, environ[i]);
		else
			battery_fail(b, "the variable %.*s is set", (int)n, environ[i]);
	}
}

/* Which row tells of a variable: those of the display have one of their own. */
static bool is_display(const char *name, size_t n)
{
	return matches_any(display_names, ELEMENTSOF(display_names), name, n);
}

static void judge_plan(Battery *b, const Expectations *e)
{
	for (size_t i = 0; i < e->n_variables; i++) {
		const char *found = measure_variable(e->variables[i].name);

		if (!found)
			battery_fail(b, "the variable %s (%s) is missing", e->variables[i].name,
				     e->variables[i].origin);
		else if (e->variables[i].value && !streq(found, e->variables[i].value))
			battery_fail(b, "the variable %s (%s) has another value than it has to have",
				     e->variables[i].name, e->variables[i].origin);
	}
	for (size_t i = 0; environ[i]; i++) {
		size_t n = strcspn(environ[i], "=");

		if (!is_expected(e, environ[i], n) && !is_display(environ[i], n))
			battery_fail(b, "the variable %.*s is set, which the plan does not have", (int)n,
				     environ[i]);
	}
}

void check_secrets(Battery *b)
{
	const Expectations *e = battery_expectations(b);

	judge_names(b, secret_names, ELEMENTSOF(secret_names));
	if (e) {
		judge_plan(b, e);
		battery_pass(b, "%zu variables, each as it has to be", e->n_variables);
	} else
		battery_pass(b, "none of the usual names");
}

void check_display(Battery *b)
{
	judge_names(b, display_names, ELEMENTSOF(display_names));
	battery_pass(b, "no variable leads to one");
}
