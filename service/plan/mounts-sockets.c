/* SPDX-License-Identifier: MIT */

/*
 * Listening sockets and FIFOs: a read-only mount stops neither connect(2) nor a write into a FIFO, so each
 * that is in sight is covered with /dev/null (a connect answers ECONNREFUSED, an open EACCES). A directory
 * stands for very many of them, and is covered as a whole. What
 * allow-write names, or what lies below a directory that it names, stays.
 *
 * Where agents write, a cover alone would not hold: the agent moves a directory above it, and the next
 * session finds no socket at the name that the kernel remembers. So every directory between the writable bind
 * and the socket is first bound on itself (build_pin()): a mount point cannot be renamed or removed.
 */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static bool in_a_home(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; build->homes[i]; i++)
		if (path_is_within(path, build->homes[i]))
			return true;
	return false;
}

/* Mounts for directories kept in place; what exceeds them is hidden from the top instead. */
#define PINS_MAX 24u
#define PIN_REASON "stays where it is, so that nobody moves the cover below it away"

/* Keep the directories above path in place, from the one below the bind root downwards. */
static int pin_above(PlanBuild *build, const char *path, const char *root, size_t *pins)
{
	size_t base = streq(root, "/") ? 0 : strlen(root);

	for (const char *slash = strchr(path + base + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_free_ char *directory = strndup(path, (size_t)(slash - path));
		const Entry *entry = directory ? build_written_by(build, directory) : NULL;
		Entry *pinned = NULL;
		int r;

		if (!directory)
			return -ENOMEM;
		if (!entry || streq(entry->destination, directory))
			continue;
		if (*pins >= PINS_MAX) {
			r = build_mask(build, directory, S_IFDIR, "system", "programs listen below it");
			return r < 0 ? r
				     : plan_warn(build->plan,
						 "%s is hidden: too many directories hold sockets that "
						 "programs listen on",
						 directory);
		}
		r = build_pin(build, directory, "system", PIN_REASON, &pinned);
		if (r < 0)
			return r == -ESTALE ? 0 : r;
		*pins += pinned != NULL;
	}
	return 0;
}

/*
 * Where is what lies at path, or the directory of the caller's whose mode keeps even its owner out: an agent
 * may have set that, and may change it again. Return: as the view's resolve().
 */
static int find(const PlanBuild *build, const char *path, PlanNode *ret)
{
	_cleanup_free_ char *part = NULL;
	int r = build->view->resolve(build->view->userdata, path, ret);

	if (r != -EACCES)
		return r;
	part = strdup(path);
	if (!part)
		return -ENOMEM;
	for (char *slash; r == -EACCES && (slash = strrchr(part, '/')) && slash != part;) {
		*slash = '\0';
		r = build->view->resolve(build->view->userdata, part, ret);
	}
	if (r < 0 || (S_ISDIR(ret->mode) && ret->uid == build->request->uid))
		return r;
	plan_node_done(ret);
	return -EACCES;
}

static int pin(PlanBuild *build)
{
	size_t pins = 0;

	for (size_t i = 0; build->facts->sockets && build->facts->sockets[i]; i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *root = NULL;
		const Entry *entry;
		int r = find(build, build->facts->sockets[i], &node);

		if (r == -ENOMEM)
			return r;
		if (r < 0 || plan_hides(build->plan, node.path))
			continue;
		entry = plan_covering(build->plan, node.path);
		if (entry->mode != ENTRY_RW || build_is_allowed(build, node.path))
			continue;
		/* Adding entries moves them. */
		root = strdup(entry->destination);
		if (!root)
			return -ENOMEM;
		r = pin_above(build, node.path, root, &pins);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What lies there when an agent starts is covered; what a program opens there later is not. */
static int warn_workspace(PlanBuild *build, const char *first, unsigned n)
{
	_cleanup_free_ char *more = NULL;

	if (n == 0)
		return 0;
	if (n > 1 && asprintf(&more, " and %u more", n - 1) < 0) {
		more = NULL;
		return -ENOMEM;
	}
	return plan_warn(
		build->plan,
		"programs outside listen on %s%s in the workspace; the agent cannot connect to them, but it can to "
		"a socket that is opened there while it runs, and so leave the jail; keep sockets elsewhere",
		first, more ?: "");
}

static int cover(PlanBuild *build, bool bound)
{
	_cleanup_free_ char *in_workspace = NULL;
	const Plan *plan = build->plan;
	unsigned n_workspace = 0;

	for (size_t i = 0; build->facts->sockets && build->facts->sockets[i]; i++) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

		/* One that has gone, or that the caller cannot reach, needs no cover. */
		int r = find(build, build->facts->sockets[i], &node);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || !(S_ISSOCK(node.mode) || S_ISFIFO(node.mode) || S_ISDIR(node.mode)) ||
		    plan_hides(plan, node.path))
			continue;

		if (bound) {
			if (build_is_allowed(build, node.path))
				continue;
		} else if (in_a_home(build, node.path))
			continue;

		r = build_mask(build, node.path, node.mode, "system", "another program listens there");
		if (r < 0)
			return r;
		build->plan->entries[build->plan->n_entries - 1].covers_listener = !S_ISDIR(node.mode);
		if (S_ISSOCK(node.mode) && path_is_within(node.path, plan->workspace) && n_workspace++ == 0 &&
		    !(in_workspace = strdup(node.path)))
			return -ENOMEM;
	}
	return warn_workspace(build, in_workspace, n_workspace);
}

int build_sockets(PlanBuild *build)
{
	return cover(build, false);
}

int build_bound_sockets(PlanBuild *build)
{
	int r = pin(build);

	return r < 0 ? r : cover(build, true);
}
