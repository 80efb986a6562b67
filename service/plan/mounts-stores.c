/* SPDX-License-Identifier: MIT */

/*
 * Where the person's stores really lie. A private home hides what has its usual place there; a link of the
 * home or a variable of the caller may say that a store is somewhere else.
 *
 * Links are the person's own (no session writes where they lie), so what they lead to is kept out of the
 * workspace as the usual places are. Variables may be planted: they hide, they never show anything, and
 * what cannot be hidden without harm is a warning. What lies in the workspace is the workspace's: tools that
 * set a project up let variables point into it.
 */

#include "service/plan/plan-build.h"

typedef struct Store {
	char *path;  /* canonical, elsewhere than its name says */
	char *named; /* as the home has it */
	mode_t mode;
} Store;

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

/* Takes named. */
static int add_store(Stores *stores, char *named, PlanNode *node)
{
	Store *grown = reallocarray(stores->all, stores->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	stores->all = grown;
	grown[stores->n++] = (Store){ .path = TAKE_PTR(node->path), .named = named, .mode = node->mode };
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
	r = add_store(build->stores, named, &node);
	if (r == 0)
		TAKE_PTR(named);
	return r;
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
	}

	const char *workspace = build->plan->workspace;
	for (size_t i = 0; i < build->stores->n; i++) {
		const Store *store = &build->stores->all[i];

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

static int hide_named(PlanBuild *build, const char *name, const char *value)
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
		return plan_add_tmpfs(build->plan, node.path, 0700, ENTRY_PRIVATE, origin,
				      "the person's own settings and logins lie there");
	return build_mask(build, node.path, node.mode, origin,
			  "the person's own settings and logins lie there");
}

int build_hide_stores(PlanBuild *build)
{
	/* basedir-spec of freedesktop.org, gpg(1), pass(1), docker(1), aws, curl, Xau(3), and the agents'
	 * own. */
	static const char *const variables[] = {
		"XDG_CONFIG_HOME",
		"XDG_DATA_HOME",
		"XDG_STATE_HOME",
		"XDG_CACHE_HOME",
		"GNUPGHOME",
		"PASSWORD_STORE_DIR",
		"DOCKER_CONFIG",
		"AWS_CONFIG_FILE",
		"AWS_SHARED_CREDENTIALS_FILE",
		"NETRC",
		"XAUTHORITY",
		"ICEAUTHORITY",
		"CLAUDE_CONFIG_DIR",
		"CODEX_HOME",
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < build->stores->n; i++)
		r = hide(build, build->stores->all[i].path, build->stores->all[i].mode,
			 build->stores->all[i].named, "a link of the home leads there");
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(variables); i++) {
		const char *value = lookup(build, variables[i]);

		if (value && value[0] == '/')
			r = hide_named(build, variables[i], value);
	}
	return r;
}
