/* SPDX-License-Identifier: MIT */
#include "service/plan/environment.h"

#include "service/plan/config-values.h"
#include "service/plan/mount-list.h"
#include "service/plan/search-path.h"

typedef enum ValueKind {
	VALUE_PLAIN,
	VALUE_PROXY, /* a URL: not with a password in it */
	VALUE_FILE,  /* of certificates: build_certificates() shows it; not when the agent does not see it */
	VALUE_PATHS, /* directories: as it is */
} ValueKind;

/*
 * What goes through as the caller has it: how to print, in which language, with which tools, by which proxy;
 * never a secret. A '*' at the end stands for the rest of a name.
 */
static const struct {
	const char *name;
	ValueKind kind;
} by_value[] = {
	/* the terminal */
	{ "TERM", VALUE_PLAIN },
	{ "COLORTERM", VALUE_PLAIN },
	{ "NO_COLOR", VALUE_PLAIN },
	{ "FORCE_COLOR", VALUE_PLAIN },
	{ "TERM_PROGRAM", VALUE_PLAIN },
	{ "TERM_PROGRAM_VERSION", VALUE_PLAIN },
	{ "VTE_VERSION", VALUE_PLAIN },
	{ "KITTY_WINDOW_ID", VALUE_PLAIN },
	{ "WT_SESSION", VALUE_PLAIN },
	{ "TMUX", VALUE_PLAIN },
	/* the person */
	{ "LANG", VALUE_PLAIN },
	{ "LC_*", VALUE_PLAIN },
	{ "TZ", VALUE_PLAIN },
	{ "EDITOR", VALUE_PLAIN },
	{ "VISUAL", VALUE_PLAIN },
	{ "PAGER", VALUE_PLAIN },
	/* the network */
	{ "HTTP_PROXY", VALUE_PROXY },
	{ "http_proxy", VALUE_PROXY },
	{ "HTTPS_PROXY", VALUE_PROXY },
	{ "https_proxy", VALUE_PROXY },
	{ "ALL_PROXY", VALUE_PROXY },
	{ "all_proxy", VALUE_PROXY },
	{ "NO_PROXY", VALUE_PLAIN },
	{ "no_proxy", VALUE_PLAIN },
	{ "SSL_CERT_FILE", VALUE_FILE },
	{ "SSL_CERT_DIR", VALUE_PATHS },
	{ "NODE_EXTRA_CA_CERTS", VALUE_FILE },
	{ "REQUESTS_CA_BUNDLE", VALUE_FILE },
	{ "CURL_CA_BUNDLE", VALUE_FILE },
	{ "GIT_SSL_CAINFO", VALUE_FILE },
	/* tools */
	{ "VIRTUAL_ENV", VALUE_PATHS },
	{ "CONDA_PREFIX", VALUE_PATHS },
	{ "CONDA_DEFAULT_ENV", VALUE_PLAIN },
	{ "CONDA_EXE", VALUE_PATHS },
	{ "CONDA_PYTHON_EXE", VALUE_PATHS },
	{ "CONDA_SHLVL", VALUE_PLAIN },
	{ "PIXI_HOME", VALUE_PATHS },
	{ "PIXI_ENVIRONMENT_NAME", VALUE_PLAIN },
	{ "PIXI_PROJECT_ROOT", VALUE_PATHS },
	{ "PIXI_PROJECT_MANIFEST", VALUE_PATHS },
	{ "PIXI_PROJECT_NAME", VALUE_PLAIN },
	{ "UV_PROJECT_ENVIRONMENT", VALUE_PATHS },
	{ "UV_CACHE_DIR", VALUE_PATHS },
	{ "UV_PYTHON_CACHE_DIR", VALUE_PATHS },
	{ "UV_PYTHON_INSTALL_DIR", VALUE_PATHS },
	{ "UV_TOOL_DIR", VALUE_PATHS },
	{ "PRE_COMMIT_HOME", VALUE_PATHS },
	{ "CARGO_HOME", VALUE_PATHS },
	{ "RUSTUP_HOME", VALUE_PATHS },
	{ "RUSTUP_TOOLCHAIN", VALUE_PLAIN },
	{ "GOPATH", VALUE_PATHS },
	{ "GOROOT", VALUE_PATHS },
	{ "GOFLAGS", VALUE_PLAIN },
	{ "GOTOOLCHAIN", VALUE_PLAIN },
	{ "JAVA_HOME", VALUE_PATHS },
	{ "GRADLE_USER_HOME", VALUE_PATHS },
	{ "M2_HOME", VALUE_PATHS },
	{ "MAVEN_HOME", VALUE_PATHS },
	{ "SDKMAN_DIR", VALUE_PATHS },
	{ "NVM_DIR", VALUE_PATHS },
	{ "NVM_BIN", VALUE_PATHS },
	{ "FNM_DIR", VALUE_PATHS },
	{ "VOLTA_HOME", VALUE_PATHS },
	{ "BUN_INSTALL", VALUE_PATHS },
	{ "DENO_DIR", VALUE_PATHS },
	{ "PNPM_HOME", VALUE_PATHS },
	{ "PYENV_ROOT", VALUE_PATHS },
	{ "PYENV_VERSION", VALUE_PLAIN },
	{ "RBENV_ROOT", VALUE_PATHS },
	{ "RBENV_VERSION", VALUE_PLAIN },
	{ "ASDF_DIR", VALUE_PATHS },
	{ "ASDF_DATA_DIR", VALUE_PATHS },
	{ "MISE_DATA_DIR", VALUE_PATHS },
	{ "OPAM_SWITCH_PREFIX", VALUE_PATHS },
	{ "JULIA_DEPOT_PATH", VALUE_PATHS },
	{ "DOTNET_ROOT", VALUE_PATHS },
	/* the job */
	{ "SLURM_*", VALUE_PLAIN },
	{ "PBS_*", VALUE_PLAIN },
	{ "OMP_NUM_THREADS", VALUE_PLAIN },
	{ "CUDA_VISIBLE_DEVICES", VALUE_PLAIN },
	{ "MODULEPATH", VALUE_PATHS },
	{ "LOADEDMODULES", VALUE_PLAIN },
};

/* In a family of names, those that hold a secret (SLURM_JWT). */
static const char *const secret_parts[] = { "JWT", "TOKEN", "SECRET", "PASSWORD", "COOKIE", "KEY" };

/* set, where a name that is there already keeps its value. */
static int set(Plan *plan, const char *name, const char *value, const char *origin)
{
	int r = plan_set_variable(plan, name, value, origin);

	return r == -EEXIST ? 0 : r;
}

static int set_fixed(Plan *plan, const SessionRequest *request, const Profile *profile)
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

	int r = 0;

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

static bool name_matches(const char *name, size_t n, const char *pattern)
{
	size_t length = strlen(pattern);

	if (length == 0 || pattern[length - 1] != '*')
		return n == length && memcmp(name, pattern, n) == 0;
	if (n < length || memcmp(name, pattern, length - 1) != 0)
		return false;
	for (size_t i = length - 1; i < n; i++)
		if (!((name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= '0' && name[i] <= '9') ||
		      name[i] == '_'))
			return false;
	for (size_t i = 0; i < ELEMENTSOF(secret_parts); i++)
		if (memmem(name, n, secret_parts[i], strlen(secret_parts[i])))
			return false;
	return true;
}

const char *environment_certificates(size_t index)
{
	for (size_t i = 0; i < ELEMENTSOF(by_value); i++)
		if (by_value[i].kind == VALUE_FILE && index-- == 0)
			return by_value[i].name;
	return NULL;
}

/* A user in front of the host, as RFC 3986, section 3.2, has it. */
static bool url_has_user(const char *url)
{
	const char *authority = strstr(url, "://");

	authority = authority ? authority + 3 : url;
	return memchr(authority, '@', strcspn(authority, "/?#"));
}

static int set_value(Plan *plan, const SessionRequest *request, const char *name, ValueKind kind,
		     const PlanView *view)
{
	const char *value = environment_value(request->environment, name);
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	/* What pass-env names comes in whatever it is (set_passed()). */
	bool passed = config_find(&request->config, CONFIG_PASS_ENV, name);
	int r;

	if (kind == VALUE_PROXY && url_has_user(value))
		return passed ? 0
			      : plan_warn(
					plan,
					"%s is not passed to the agent: it holds a password; set it without "
					"one, or add 'pass-env = %s' to " CS_CONFIG_PATH,
					name, name);
	if (kind == VALUE_FILE && value[0] == '/') {
		r = view->resolve(view->userdata, value, &node);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || plan_hides(plan, node.path))
			return passed ? 0
				      : plan_warn(plan,
						  "%s is not passed to the agent: it cannot see %s; add "
						  "'allow-read = %s' to " CS_CONFIG_PATH,
						  name, value, value);
	}
	return set(plan, name, value, "caller");
}

static int set_by_value(Plan *plan, const SessionRequest *request, const PlanView *view)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(by_value); i++)
		for (size_t j = 0; r >= 0 && request->environment && request->environment[j]; j++) {
			const char *entry = request->environment[j], *equals = strchr(entry, '=');
			_cleanup_free_ char *name = NULL;

			if (!equals || !name_matches(entry, (size_t)(equals - entry), by_value[i].name))
				continue;
			name = strndup(entry, (size_t)(equals - entry));
			/* Of a name that stands twice, the first counts (getenv(3)). */
			if (!name)
				r = -ENOMEM;
			else if (environment_value(request->environment, name) == equals + 1)
				r = set_value(plan, request, name, by_value[i].kind, view);
		}
	return r;
}

static int set_passed(Plan *plan, const SessionRequest *request)
{
	const ConfigValue *passed;
	size_t index = 0;
	int r = 0;

	while (r >= 0 && (passed = config_next(&request->config, CONFIG_PASS_ENV, &index))) {
		const char *value = environment_value(request->environment, passed->text);
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

	if ((r = warn_misspelt(plan, request)) < 0 || (r = search_path_make(plan, request, view)) < 0 ||
	    (r = set_fixed(plan, request, profile)) < 0 ||
	    (r = set_profile(plan, request, profile, facts)) < 0 ||
	    (r = set_by_value(plan, request, view)) < 0)
		return r;
	if ((r = set_passed(plan, request)) < 0)
		return r;
	return set_entry_guard(plan);
}
