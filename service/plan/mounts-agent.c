/* SPDX-License-Identifier: MIT */

/* What is seen of the agent itself: 11 of the order in mounts.c. */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static const char reason_program[] = "the agent itself";
static const char reason_package[] = "what the agent's program needs";
static const char reason_interpreter[] = "starts the agent";

static bool is_below_home(const PlanBuild *build, const char *path, const char *name)
{
	const char *rest = starts_with(path, build->home);

	rest = rest && *rest == '/' ? starts_with(rest + 1, name) : NULL;
	return rest && (*rest == '/' || *rest == '\0');
}

/*
 * Does path lie in the state of an agent, whose sessions may have written it, and not behind a mask of it?
 * Return: 1, 0 or -ENOMEM.
 */
static int find_state(const PlanBuild *build, const char *path, const char **ret_profile)
{
	const Profile *profile;

	for (size_t i = 0; (profile = profile_at(i)); i++) {
		bool inside = profile->state && is_below_home(build, path, profile->state);

		for (const char *const *name = profile->session_names; inside && *name; name++) {
			_cleanup_free_ char *hidden = profile_path(profile, *name);

			if (!hidden)
				return -ENOMEM;
			inside = !is_below_home(build, path, hidden);
		}
		*ret_profile = profile->name;
		if (inside)
			return 1;
	}
	return 0;
}

/* Would a session like this one write to path, or to what lies in it? Then an earlier one may have. */
static int check_place(PlanBuild *build, const char *path)
{
	const Entry *entry = plan_covering(build->plan, path);
	const char *profile;

	int r = find_state(build, path, &profile);
	if (r < 0)
		return r;
	if (r > 0)
		return build_refuse(
			build, CS_ERROR_PLAN_REFUSED,
			"the agent's program %s lies in the state of %s, which its sessions may write; "
			"install it elsewhere, with 'sudo claude-sandbox install %s'",
			path, profile, build->profile->name);
	if (!entry || entry->kind != ENTRY_BIND || entry->mode != ENTRY_RW)
		entry = build_shown_elsewhere(build, path);
	for (size_t i = 0; !entry && i < build->plan->n_entries; i++) {
		const Entry *inner = &build->plan->entries[i];

		if (inner->kind == ENTRY_BIND && inner->mode == ENTRY_RW &&
		    path_is_within(inner->destination, path))
			entry = inner;
	}
	if (!entry)
		return 0;
	return build_refuse(
		build, CS_ERROR_PLAN_REFUSED,
		"the agent's program %s lies in %s, which agents may write (%s); install it elsewhere, with "
		"'sudo claude-sandbox install %s'",
		path, entry->destination, entry->origin, build->profile->name);
}

static int check_places(PlanBuild *build)
{
	const PlanAgent *agent = &build->agent;
	const char *const places[] = { agent->path, agent->package, agent->interpreter };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
		r = places[i] ? check_place(build, places[i]) : 0;
	/* Whoever may turn a link round chooses what is shown as the agent's package. */
	for (size_t i = 0; r == 0 && agent->links && agent->links[i]; i++)
		r = check_place(build, agent->links[i]);
	return r;
}

/* Bind what lies at the canonical path at itself, or at destination. */
static int bind(PlanBuild *build, const char *path, const char *destination, const char *origin,
		const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = build->view->resolve(build->view->userdata, path, &node);

	if (r < 0 || !streq(node.path, path))
		return r == -ENOMEM ? r
				    : build_refuse(build, CS_ERROR_AGENT_MISSING,
						   "%s was replaced just now; start again", path);
	return plan_add_bind(build->plan, &node, destination ? destination : path, ENTRY_RO, origin, reason);
}

int build_agent(PlanBuild *build)
{
	PlanAgent *agent = &build->agent;
	_cleanup_free_ char *origin = NULL, *own = NULL;
	int r;

	r = check_places(build);
	/* What "/" shows read-only needs no entry, but for an agent, whose place the exposure table names. */
	if (r < 0 || build->profile->system_program)
		return r;
	if (asprintf(&origin, "profile %s", build->profile->name) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	if (asprintf(&own, "%s/.local/bin/%s", build->home, build->profile->name) < 0) {
		own = NULL;
		return -ENOMEM;
	}

	if (agent->package)
		r = bind(build, agent->package, NULL, origin, reason_package);
	if (r == 0 && agent->interpreter)
		r = bind(build, agent->interpreter, NULL, origin, reason_interpreter);
	if (r == 0 && agent->starter)
		r = plan_add_program(build->plan, build->plan->program, agent->starter, origin,
				     reason_interpreter);
	else if (r == 0 && build->profile->native_path && agent->package && !build_shows_programs(build))
		r = plan_add_link(build->plan, own, agent->path, origin, reason_program);
	else if (r == 0 && !streq(build->plan->program, agent->path) && !build_shows_programs(build))
		r = bind(build, agent->path, build->plan->program, origin, reason_program);
	return r < 0 ? r
		     : plan_add_bind(build->plan, &agent->program, agent->path, ENTRY_RO, origin,
				     reason_program);
}

int build_check_agent(PlanBuild *build)
{
	int r = check_places(build);

	return r < 0 ? r : check_place(build, build->plan->program);
}
