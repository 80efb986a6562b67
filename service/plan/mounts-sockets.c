/* SPDX-License-Identifier: MIT */

/*
 * Listening sockets and FIFOs: a read-only mount stops neither connect(2) nor a write into a FIFO, so each
 * that is in sight is covered with /dev/null (a connect answers ECONNREFUSED, an open EACCES). A directory
 * stands for very many of them, and is covered as a whole. What
 * allow-write names, or what lies below a directory that it names, stays.
 */

#include "service/plan/plan-build.h"

static bool in_a_home(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; build->homes[i]; i++)
		if (path_is_within(path, build->homes[i]))
			return true;
	return false;
}

static int cover(PlanBuild *build, bool bound)
{
	const Plan *plan = build->plan;

	for (size_t i = 0; build->facts->sockets && build->facts->sockets[i]; i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		/* One that has gone, or that the caller cannot reach, needs no cover. */
		int r = build->view->resolve(build->view->userdata, build->facts->sockets[i], &node);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || !(S_ISSOCK(node.mode) || S_ISFIFO(node.mode) || S_ISDIR(node.mode)) ||
		    plan_hides(plan, node.path))
			continue;

		if (bound) {
			size_t index = (size_t)(plan_covering(plan, node.path) - plan->entries);

			if (index >= build->allow_first && index < build->allow_end)
				continue;
		} else if (in_a_home(build, node.path))
			continue;

		r = build_mask(build, node.path, node.mode, "system", "another program listens there");
		if (r < 0)
			return r;
		build->plan->entries[build->plan->n_entries - 1].covers_listener = !S_ISDIR(node.mode);
	}
	return 0;
}

int build_sockets(PlanBuild *build)
{
	return cover(build, false);
}

int build_bound_sockets(PlanBuild *build)
{
	return cover(build, true);
}
