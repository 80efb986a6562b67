/* SPDX-License-Identifier: MIT */
#include "service/plan/agent-find.h"

#include "service/plan/plan-build.h"

static int find(const SessionRequest *request, const Profile *profile, bool directory, const PlanView *view,
		char **ret_path, char **ret_problem)
{
	_cleanup_(plan_done) Plan plan = { 0 };
	PlanBuild build = {
		.request = request,
		.profile = profile,
		.view = view,
		.plan = &plan,
		.agent = { .program = PLAN_NODE_INIT },
		.workspace = PLAN_NODE_INIT,
	};
	int r;

	r = build_find_homes(&build);
	if (r >= 0 && directory)
		r = build_check_workspace(&build);
	if (r >= 0 && profile)
		r = build_find_agent(&build);
	if (r >= 0 && profile)
		*ret_path = TAKE_PTR(build.agent.path);
	if (r < 0 && r != -ENOMEM)
		(void)refuse(ret_problem, r, "%s", build.problem ?: strerror(-r));
	plan_node_done(&build.workspace);
	plan_agent_done(&build.agent);
	free(build.home);
	strings_free(build.homes);
	free(build.problem);
	return r < 0 ? r : 0;
}

int agent_find(const SessionRequest *request, const Profile *profile, const PlanView *view, char **ret_path,
	       char **ret_problem)
{
	return find(request, profile, false, view, ret_path, ret_problem);
}

int agent_check_homes(const SessionRequest *request, const PlanView *view, char **ret_problem)
{
	return find(request, NULL, false, view, NULL, ret_problem);
}

int agent_check_directory(const SessionRequest *request, const PlanView *view, char **ret_problem)
{
	return find(request, NULL, true, view, NULL, ret_problem);
}
