/* SPDX-License-Identifier: MIT */

/*
 * Where the person's stores really lie. A private home hides what has its usual place there; a link of the
 * home, a link in one of its stores or a variable of the caller may say that something is somewhere else.
 *
 * Links are the person's own (no session writes where they lie), so what they lead to is kept out of the
 * workspace as the usual places are. Variables may be planted: they hide, they never show anything, and
 * what cannot be hidden without harm is a warning. What lies in the workspace is the workspace's: tools that
 * set a project up let variables point into it.
 */

#include "base/paths.h"
#include "service/plan/plan-build.h"

#define STORE_NAMES_MAX 4096u /* of one directory */
#define STORE_PLACES_MAX 32u  /* beyond those of the home itself: each is a mount */

typedef struct Store {
	char *path;  /* canonical, elsewhere than its name says */
	char *named; /* as the home has it */
	mode_t mode;
	bool part; /* of a store: not the store itself */
} Store;

/*
 * Stores in which no session writes, so that a link in them is the person's own. What such a link leads to is
 * often no secret (a file of a repository of dotfiles), so no workspace is refused for it.
 */
static const char *const linked_within[] = {
	".ssh",    ".gnupg",          ".aws",
	".azure",  ".kube",           ".docker",
	".pki",    ".password-store", ".local/share/keyrings",
	".config",
};

struct Stores {
	Store *all;
	size_t n;
};

Stores *stores_free(Stores *stores)
{
	if (!stores)
		return NULL;
	for (size_t i = 0; i < stores->n; i++) {
		free(stores->all[i].path);
		free(stores->all[i].named);
	}
	free(stores->all);
	free(stores);
	return NULL;
}

/* Takes named, and the path of node. */
static int add_store(Stores *stores, char *named, PlanNode *node, bool part)
{
	Store *grown = reallocarray(stores->all, stores->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	stores->all = grown;
	grown[stores->n++] =
		(Store){ .path = TAKE_PTR(node->path), .named = named, .mode = node->mode, .part = part };
	return 0;
}

static int find_linked(PlanBuild *build, const char *home, const char *name, bool *told)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *named = NULL;

	if (asprintf(&named, "%s/%s", home, name) < 0) {
		named = NULL;
		return -ENOMEM;
	}
	int r = build->view->resolve(build->view->userdata, named, &node);
	if (r == -ELOOP && !*told) {
		*told = true;
		return plan_warn(build->plan,
				 "what %s leads to may be readable for the agent: a link on the way is "
				 "another program's; put the thing itself there",
				 named);
	}
	if (r < 0 || streq(node.path, named))
		return r == -ENOMEM ? r : 0;
	r = add_store(build->stores, named, &node, false);
	if (r == 0)
		TAKE_PTR(named);
	return r;
}

typedef struct Within {
	PlanBuild *build;
	const char *directory; /* canonical */
	size_t n;
} Within;

/* What everybody may read is no secret: programs and files of the system, of a package manager. */
static bool is_everybodys(const PlanBuild *build, const PlanNode *node)
{
	mode_t all = S_ISDIR(node->mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return node->uid != build->request->uid && (node->mode & all) == all;
}

static int find_link_within(void *userdata, const char *name)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *named = NULL, *text = NULL, *target = NULL;
	Within *within = userdata;
	PlanBuild *build = within->build;
	const char *workspace = build->plan->workspace;

	if (asprintf(&named, "%s/%s", within->directory, name) < 0) {
		named = NULL;
		return -ENOMEM;
	}
	int r = build->view->read_link(build->view->userdata, named, &text);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (asprintf(&target, "%s%s%s", text[0] == '/' ? "" : within->directory, text[0] == '/' ? "" : "/",
		     text) < 0) {
		target = NULL;
		return -ENOMEM;
	}
	r = build->view->resolve(build->view->userdata, target, &node);
	if (r == -ELOOP)
		return plan_warn(build->plan,
				 "what %s leads to may be readable for the agent: a link on the way is "
				 "another program's; let it name the thing itself",
				 named);
	if (r < 0 || path_is_within(node.path, within->directory) || is_everybodys(build, &node))
		return r == -ENOMEM ? r : 0;
	if (path_is_within(workspace, node.path))
		return 0;
	if (path_is_within(node.path, workspace))
		return strstr(named, "/.config/")
			       ? 0
			       : plan_warn(
					 build->plan,
					 "what %s leads to, %s, lies in the workspace: the agent can read it",
					 named, node.path);
	if (++within->n > STORE_PLACES_MAX)
		return plan_warn(build->plan,
				 "what %s leads to may be readable for the agent: %s has too many links",
				 named, within->directory);
	r = add_store(build->stores, named, &node, true);
	if (r == 0)
		TAKE_PTR(named);
	return r;
}

static int find_within(PlanBuild *build, const char *home)
{
	for (size_t i = 0; i < ELEMENTSOF(linked_within); i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *path = NULL;
		Within within = { .build = build };

		if (asprintf(&path, "%s/%s", home, linked_within[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		int r = build->view->resolve(build->view->userdata, path, &node);
		if (r < 0 || !S_ISDIR(node.mode)) {
			if (r == -ENOMEM)
				return r;
			continue;
		}
		within.directory = node.path;
		r = build->view->links(build->view->userdata, node.path, STORE_NAMES_MAX, find_link_within,
				       &within);
		if (r == -E2BIG)
			r = plan_warn(build->plan,
				      "what links in %s lead to may be readable for the agent: it has more "
				      "than %u names",
				      node.path, STORE_NAMES_MAX);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

int build_find_stores(PlanBuild *build)
{
	build->stores = calloc(1, sizeof(*build->stores));
	if (!build->stores)
		return -ENOMEM;
	for (size_t i = 0; build->homes[i]; i++) {
		bool told = false;

		for (const char *const *name = credential_paths(); *name; name++) {
			int r = find_linked(build, build->homes[i], *name, &told);

			if (r < 0)
				return r;
		}
		int r = find_within(build, build->homes[i]);

		if (r < 0)
			return r;
	}

	const char *workspace = build->plan->workspace;
	for (size_t i = 0; i < build->stores->n; i++) {
		const Store *store = &build->stores->all[i];

		if (store->part)
			continue;
		if (path_is_within(workspace, store->path) || path_is_within(store->path, workspace))
			return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE,
					    "%s cannot be the workspace: it would show %s, which is kept "
					    "from agents (%s leads there); move one of the two elsewhere",
					    workspace, store->path, store->named);
	}
	return 0;
}

bool build_shows_store(const PlanBuild *build, const char *path, const char *named)
{
	for (size_t i = 0; i < build->stores->n; i++) {
		const Store *store = &build->stores->all[i];

		if (named && path_is_within(store->named, named))
			continue;
		if (path_is_within(store->path, path) || (!named && path_is_within(path, store->path)))
			return true;
	}
	return false;
}

static int hide(PlanBuild *build, const char *path, mode_t mode, const char *named, const char *reason)
{
	_cleanup_free_ char *cause = NULL;

	if (plan_hides(build->plan, path))
		return 0;
	if (directory_check(path, (const char *const *)build->homes, &cause) == -EPERM)
		return plan_warn(build->plan, "what %s leads to, %s, stays readable for the agent: %s", named,
				 path, cause);
	return build_mask(build, path, mode, "homes", reason);
}

static const char *lookup(const PlanBuild *build, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; build->request->environment && build->request->environment[i]; i++) {
		const char *variable = build->request->environment[i];

		if (strncmp(variable, name, n) == 0 && variable[n] == '=')
			return variable + n + 1;
	}
	return NULL;
}

static int hide_named(PlanBuild *build, const char *name, const char *value, const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *cause = NULL, *origin = NULL;

	int r = build->view->resolve(build->view->userdata, value, &node);
	if (r == -ELOOP)
		return plan_warn(build->plan,
				 "what %s names may be readable for the agent: a link on the way is another "
				 "program's; name what it leads to",
				 name);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (plan_hides(build->plan, node.path) || path_is_within(node.path, build->plan->workspace))
		return 0;
	if (directory_check(node.path, (const char *const *)build->homes, &cause) == -EPERM)
		return plan_warn(build->plan, "what %s names, %s, stays readable for the agent: %s", name,
				 node.path, cause);
	if (asprintf(&origin, "environment %s", name) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	/* Not masked but private: a workspace may lie in it. */
	if (S_ISDIR(node.mode))
		return plan_add_tmpfs(build->plan, node.path, 0700, ENTRY_PRIVATE, origin, reason);
	return build_mask(build, node.path, node.mode, origin, reason);
}

/* How a variable names places. */
typedef enum Naming {
	NAMING_PATH,
	NAMING_LIST,   /* with ':' between */
	NAMING_PREFIX, /* "FILE:/x", "DIR:/x"; other words before the ':' name no file */
} Naming;

static const char reason_settings[] = "the person's own settings and logins lie there";
static const char reason_login[] = "a login of the person";
static const char reason_key[] = "a key of the person";

/*
 * One row for each. None of them is believed to name a secret that nothing else names: what a row hides is
 * nothing that an agent needs.
 */
static const struct {
	const char *name;
	Naming naming;
	const char *reason;
} variables[] = {
	{ "XDG_CONFIG_HOME", NAMING_PATH, reason_settings }, /* basedir-spec of freedesktop.org */
	{ "XDG_DATA_HOME", NAMING_PATH, reason_settings },
	{ "XDG_STATE_HOME", NAMING_PATH, reason_settings },
	{ "XDG_CACHE_HOME", NAMING_PATH, reason_settings },
	{ "GNUPGHOME", NAMING_PATH, reason_key },          /* gpg(1) */
	{ "PASSWORD_STORE_DIR", NAMING_PATH, reason_key }, /* pass(1) */
	{ "SOPS_AGE_KEY_FILE", NAMING_PATH, reason_key },
	{ "ANSIBLE_VAULT_PASSWORD_FILE", NAMING_PATH, reason_key },
	{ "DOCKER_CONFIG", NAMING_PATH, reason_login }, /* docker(1), podman-login(1) */
	{ "DOCKER_CERT_PATH", NAMING_PATH, reason_key },
	{ "REGISTRY_AUTH_FILE", NAMING_PATH, reason_login },
	{ "HELM_REGISTRY_CONFIG", NAMING_PATH, reason_login },
	{ "KUBECONFIG", NAMING_LIST, reason_login }, /* kubectl */
	{ "AWS_CONFIG_FILE", NAMING_PATH, reason_settings },
	{ "AWS_SHARED_CREDENTIALS_FILE", NAMING_PATH, reason_login },
	{ "AWS_WEB_IDENTITY_TOKEN_FILE", NAMING_PATH, reason_login },
	{ "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", NAMING_PATH, reason_login },
	{ "GOOGLE_APPLICATION_CREDENTIALS", NAMING_PATH, reason_login },
	{ "CLOUDSDK_CONFIG", NAMING_PATH, reason_login },
	{ "BOTO_CONFIG", NAMING_PATH, reason_login },
	{ "AZURE_CONFIG_DIR", NAMING_PATH, reason_login },
	{ "AZURE_FEDERATED_TOKEN_FILE", NAMING_PATH, reason_login },
	{ "AZURE_CLIENT_CERTIFICATE_PATH", NAMING_PATH, reason_key },
	{ "OCI_CLI_CONFIG_FILE", NAMING_PATH, reason_login },
	{ "TF_CLI_CONFIG_FILE", NAMING_PATH, reason_login },
	{ "KRB5CCNAME", NAMING_PREFIX, reason_login }, /* kerberos(7) */
	{ "KRB5_KTNAME", NAMING_PREFIX, reason_key },
	{ "KRB5_CLIENT_KTNAME", NAMING_PREFIX, reason_key },
	{ "PGPASSFILE", NAMING_PATH, reason_login }, /* libpq */
	{ "PGSERVICEFILE", NAMING_PATH, reason_login },
	{ "PGSSLKEY", NAMING_PATH, reason_key },
	{ "NETRC", NAMING_PATH, reason_login },      /* curl(1) */
	{ "XAUTHORITY", NAMING_PATH, reason_login }, /* Xau(3) */
	{ "ICEAUTHORITY", NAMING_PATH, reason_login },
	{ "NPM_CONFIG_USERCONFIG", NAMING_PATH, reason_login },
	{ "PIP_CONFIG_FILE", NAMING_PATH, reason_login },
	{ "GH_CONFIG_DIR", NAMING_PATH, reason_login },
	{ "GLAB_CONFIG_DIR", NAMING_PATH, reason_login },
	{ "CLAUDE_CONFIG_DIR", NAMING_PATH, reason_settings },
	{ "CODEX_HOME", NAMING_PATH, reason_settings },
};

/* What one variable says: each place, at most STORE_PLACES_MAX. */
static int hide_variable(PlanBuild *build, size_t i, const char *value)
{
	const char *separators = variables[i].naming == NAMING_LIST ? ":" : "";

	if (variables[i].naming == NAMING_PREFIX)
		value = starts_with(value, "FILE:") ?: starts_with(value, "DIR:") ?: value;
	for (unsigned n = 0; *value && n < STORE_PLACES_MAX; n++) {
		_cleanup_free_ char *path = strndup(value, strcspn(value, separators));

		if (!path)
			return -ENOMEM;
		int r = path[0] == '/' ? hide_named(build, variables[i].name, path, variables[i].reason) : 0;
		if (r < 0)
			return r;
		value += strlen(path);
		value += *value == ':';
	}
	return 0;
}

int build_hide_stores(PlanBuild *build)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < build->stores->n; i++)
		r = hide(build, build->stores->all[i].path, build->stores->all[i].mode,
			 build->stores->all[i].named,
			 build->stores->all[i].part ? "a link among the person's keys and logins leads there"
						    : "a link of the home leads there");
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(variables); i++) {
		const char *value = lookup(build, variables[i].name);

		if (value)
			r = hide_variable(build, i, value);
	}
	return r;
}
