/* SPDX-License-Identifier: MIT */

/* allow-write: 14 of the order in mounts.c. */

#include "service/plan/plan-build.h"

static const char *type_refusal(mode_t mode)
{
	if (S_ISDIR(mode) || S_ISREG(mode) || S_ISSOCK(mode) || S_ISFIFO(mode))
		return NULL;
	return "it is a device";
}

static int allow(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *destination = NULL;
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

	build->allow_first = build->plan->n_entries;
	while ((value = config_next(&build->request->config, CONFIG_ALLOW_WRITE, &index)))
		if ((r = allow(build, value)) < 0)
			return r;
	build->allow_end = build->plan->n_entries;
	return 0;
}

int build_check_allow_write(PlanBuild *build)
{
	for (size_t i = build->allow_first; i < build->allow_end; i++) {
		const Entry *entry = &build->plan->entries[i];

		if (entry->kind != ENTRY_BIND || !plan_hides(build->plan, entry->destination))
			continue;
		int r = plan_warn(build->plan, "%s: allow-write %s has no effect: %s", entry->origin,
				  entry->destination, plan_covering(build->plan, entry->destination)->reason);
		if (r < 0)
			return r;
	}
	return 0;
}
