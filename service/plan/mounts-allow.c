/* SPDX-License-Identifier: MIT */

/* allow-write: 14 of the order in mounts.c. */

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

static int warn_of_keys(PlanBuild *build, const char *path, const char *origin)
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
						 "%s: allow-write %s gives agents keys or logins that are "
						 "kept from them: they can read, change and send away what "
						 "is in %s; remove the line if that is not meant",
						 origin, path, place);
		}
	return 0;
}

static int allow(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *destination = NULL;
	const Entry *entry;
	const char *cause;

	int r = build->view->resolve(build->view->userdata, value->text, &node);
	if (r == -ENOMEM)
		return r;
	if (r == -ENOENT)
		return plan_warn(build->plan, "%s: allow-write %s: it does not exist", value->origin,
				 value->text);
	if (r < 0)
		return plan_warn(build->plan, "%s: allow-write %s stays as it is: %s", value->origin,
				 value->text,
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

	r = build_links(build, value->text, value->origin);
	if (r < 0 || (r = remember(build, node.path, value->origin)) < 0)
		return r;
	/* In the workspace it is writable already; a mount there would be one more thing to be moved away. */
	entry = plan_covering(build->plan, node.path);
	if (entry && entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && !entry->device &&
	    streq(entry->source, entry->destination))
		return 0;
	r = warn_of_keys(build, node.path, value->origin);
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
