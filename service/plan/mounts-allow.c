/* SPDX-License-Identifier: MIT */

/* The keys that show and hide paths: allow-read, allow-write, hide: 14 and 15 of the order in mounts.c. */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static const char *type_refusal(mode_t mode)
{
	if (S_ISDIR(mode) || S_ISREG(mode) || S_ISSOCK(mode) || S_ISFIFO(mode))
		return NULL;
	return "it is a device";
}

static int remember(PlanBuild *build, const char *path, const char *origin)
{
	Allowed *grown = reallocarray(build->allowed, build->n_allowed + 1, sizeof(*grown));
	char *copy = strdup(path);

	if (grown)
		build->allowed = grown;
	if (!grown || !copy) {
		free(copy);
		return -ENOMEM;
	}
	grown[build->n_allowed++] = (Allowed){ .path = copy, .origin = origin };
	return 0;
}

void build_allowed_done(PlanBuild *build)
{
	for (size_t i = 0; i < build->n_allowed; i++)
		free(build->allowed[i].path);
	free(build->allowed);
	build->allowed = NULL;
	build->n_allowed = 0;
}

bool build_is_allowed(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; i < build->n_allowed; i++)
		if (path_is_within(path, build->allowed[i].path))
			return true;
	return false;
}

/* Below a home: what opens other doors, each being given is worth a word, though the administrator decides.
 */
static const char *const keys[] = {
	".ssh",
	".gnupg",
	".aws",
	".azure",
	".kube",
	".docker",
	".netrc",
	".git-credentials",
	".password-store",
	".pki",
	".mozilla",
	".thunderbird",
	".local/share/keyrings",
	".local/share/kwalletd",
};

static int warn_of_keys(PlanBuild *build, const char *path, const ConfigValue *value)
{
	for (size_t i = 0; build->homes[i]; i++)
		for (size_t j = 0; j < ELEMENTSOF(keys); j++) {
			_cleanup_free_ char *place = NULL;

			if (asprintf(&place, "%s/%s", build->homes[i], keys[j]) < 0) {
				place = NULL;
				return -ENOMEM;
			}
			if (path_is_within(path, place) || path_is_within(place, path))
				return plan_warn(build->plan,
						 "%s: %s %s gives agents keys or logins: they can read and "
						 "send away what is in %s; remove the line if that is not "
						 "meant",
						 value->origin, config_key_name(value->key), path, place);
		}
	return 0;
}

int build_config_path(const PlanBuild *build, const char *text, char **ret)
{
	char *path;

	if (asprintf(&path, "%s%s", text[0] == '~' ? build->home : "", text + (text[0] == '~')) < 0)
		return -ENOMEM;
	*ret = path;
	return 0;
}

static int allow(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *destination = NULL, *path = NULL;
	const Entry *entry;
	const char *cause;

	int r = build_config_path(build, value->text, &path);
	if (r < 0)
		return r;
	r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOMEM)
		return r;
	if (r == -ENOENT)
		return plan_warn(build->plan, "%s: allow-write %s: it does not exist", value->origin, path);
	if (r < 0)
		return plan_warn(build->plan, "%s: allow-write %s stays as it is: %s", value->origin, path,
				 r == -ELOOP ? "the way there is a link that another program could have "
					       "changed; name what it "
					       "leads to"
					     : strerror(-r));

	cause = allow_write_refusal(node.path);
	if (cause)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s: allow-write %s is refused: %s; name something else", value->origin,
				    node.path, cause);
	cause = type_refusal(node.mode);
	if (cause)
		return plan_warn(build->plan, "%s: allow-write %s stays as it is: %s", value->origin,
				 node.path, cause);

	r = build_links(build, path, value->origin);
	if (r < 0 || (r = remember(build, node.path, value->origin)) < 0)
		return r;
	/* In the workspace it is writable already; a mount there would be one more thing to be moved away. */
	entry = plan_covering(build->plan, node.path);
	if (entry && entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && !entry->device &&
	    streq(entry->source, entry->destination))
		return 0;
	r = warn_of_keys(build, node.path, value);
	if (r < 0)
		return r;
	if (!(destination = strdup(node.path)))
		return -ENOMEM;
	return plan_add_bind(build->plan, &node, destination, ENTRY_RW, value->origin, "allow-write");
}

int build_allow_write(PlanBuild *build)
{
	const ConfigValue *value;
	size_t index = 0;
	int r;

	while ((value = config_next(&build->request->config, CONFIG_ALLOW_WRITE, &index)))
		if ((r = allow(build, value)) < 0)
			return r;
	return 0;
}

int build_check_allow_write(PlanBuild *build)
{
	for (size_t i = 0; i < build->n_allowed; i++) {
		const Allowed *allowed = &build->allowed[i];

		if (!plan_hides(build->plan, allowed->path))
			continue;
		int r = plan_warn(build->plan, "%s: allow-write %s has no effect: %s", allowed->origin,
				  allowed->path, plan_covering(build->plan, allowed->path)->reason);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A clause, or NULL: what no key shows, since it is kept from agents by what it is. */
static const char *read_refusal(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; build->homes[i]; i++)
		if (path_is_within(build->homes[i], path))
			return "it is a home, or contains one; name what is needed in it";
	return path_is_within(path, "/proc") || path_is_within(path, "/sys") || path_is_within(path, "/dev")
		       ? "it is not a place of files"
		       : NULL;
}

static int show(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;
	const char *cause;
	int r = build_config_path(build, value->text, &path);

	if (r < 0)
		return r;
	r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOENT)
		return plan_warn(build->plan, "%s: allow-read %s: it does not exist", value->origin, path);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r == 0) {
		cause = read_refusal(build, node.path);
		if (cause)
			return build_refuse(build, CS_ERROR_PLAN_REFUSED, "%s: allow-read %s is refused: %s",
					    value->origin, path, cause);
		r = warn_of_keys(build, node.path, value);
		if (r < 0)
			return r;
		/* It is in sight already, and perhaps writable. */
		if (!plan_hides(build->plan, node.path))
			return build_links(build, path, value->origin);
	}
	r = build_expose(build, path, EXPOSE_DIRECTORY | EXPOSE_FILE, ENTRY_RO, value->origin, "allow-read");
	return r == -ENOENT ? 0 : r < 0 ? r : 0;
}

int build_allow_read(PlanBuild *build)
{
	const ConfigValue *value;
	size_t index = 0;
	int r;

	while ((value = config_next(&build->request->config, CONFIG_ALLOW_READ, &index)))
		if ((r = show(build, value)) < 0)
			return r;
	return 0;
}

/* Is something of the host's in sight below the hidden directory at path? */
static bool shows_below(const Plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_entries; i++)
		if (plan->entries[i].kind == ENTRY_BIND && path_is_within(plan->entries[i].destination, path))
			return true;
	return false;
}

static int hide(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	static const char *const needed[] = { "/bin",  "/dev",  "/etc", "/lib", "/lib64",
					      "/proc", "/sbin", "/sys", "/usr" };
	_cleanup_free_ char *path = NULL;
	int r = build_config_path(build, value->text, &path);

	if (r < 0)
		return r;
	r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	/* A key that hides must not fail silently: what cannot be looked at is not known to be hidden. */
	if (r == -ELOOP)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s: hide %s: the way there is a link that another program could have "
				    "changed; name what the link leads to",
				    value->origin, path);
	if (r < 0)
		return 0;
	if (path_is_within(build->plan->workspace, node.path))
		return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE,
				    "%s hides %s, which the workspace %s lies in; start the agent elsewhere, "
				    "or take that line out",
				    value->origin, node.path, build->plan->workspace);
	for (size_t i = 0; i < ELEMENTSOF(needed); i++)
		if (path_is_within(needed[i], node.path))
			return build_refuse(build, CS_ERROR_PLAN_REFUSED,
					    "%s: hide %s is refused: programs need %s; hide what lies in it",
					    value->origin, node.path, needed[i]);
	if (plan_hides(build->plan, node.path) && !shows_below(build->plan, node.path))
		return 0;
	r = build_mask(build, node.path, node.mode, value->origin, "hidden by the configuration");
	return r < 0 ? r : build_hide_aliases(build, node.path, "hidden by the configuration");
}

int build_hide(PlanBuild *build)
{
	const ConfigValue *value;
	size_t index = 0;
	int r;

	while ((value = config_next(&build->request->config, CONFIG_HIDE, &index)))
		if ((r = hide(build, value)) < 0)
			return r;
	return 0;
}
