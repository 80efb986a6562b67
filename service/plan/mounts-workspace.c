/* SPDX-License-Identifier: MIT */

/* Where the agent works: 12 and 13 of the order in mounts.c. */

#include "base/paths.h"
#include "service/plan/plan-build.h"

static int resolve(const PlanBuild *build, const char *path, PlanNode *ret)
{
	return build->view->resolve(build->view->userdata, path, ret);
}

static const char *why_not(int error)
{
	if (error == -ELOOP)
		return "a link on the way could have been changed by another program; name what it leads to";
	return strerror(-error);
}

int build_check_workspace(PlanBuild *build)
{
	const char *given = config_text(&build->request->config, CONFIG_WORKSPACE_ROOT);
	const char *cwd = build->request->cwd;
	_cleanup_(plan_node_done) PlanNode here = PLAN_NODE_INIT;
	_cleanup_free_ char *problem = NULL, *root = NULL;

	if (build->facts && build->facts->no_workspace) {
		build->plan->workspace = strdup(CS_NO_WORKSPACE);
		build->plan->cwd = strdup(CS_NO_WORKSPACE);
		return build->plan->workspace && build->plan->cwd ? 0 : -ENOMEM;
	}
	if (given && build_config_path(build, given, &root) < 0)
		return -ENOMEM;
	const char *wanted = root ?: cwd;
	if (!wanted || wanted[0] != '/')
		return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE,
				    "the current directory is not known; change to a project directory");
	const PlanNode *held = build->facts ? build->facts->workspace : NULL;
	int r = held ? plan_node_copy(held, &build->workspace) : resolve(build, wanted, &build->workspace);
	if (r == -ENOMEM)
		return r;
	if (r == -EACCES && build->request->uid == 0)
		return build_refuse(
			build, CS_ERROR_UNSAFE_WORKSPACE,
			"%s cannot be the workspace: in its jail root has no capabilities, and the mode of a "
			"directory on the way keeps it out; start as the owner of the project, or change to "
			"a directory that root may enter",
			wanted);
	if (r < 0)
		return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE, "%s cannot be the workspace: %s%s",
				    wanted, why_not(r),
				    root ? "; correct workspace-root" : "; change to a project directory");
	if (!S_ISDIR(build->workspace.mode))
		return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE,
				    "%s cannot be the workspace: it is no directory; correct workspace-root",
				    wanted);

	r = workspace_check(build->workspace.path, (const char *const *)build->homes, &problem);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE, "%s", problem);

	build->plan->workspace = strdup(build->workspace.path);
	if (!build->plan->workspace)
		return -ENOMEM;

	r = cwd && cwd[0] == '/' ? resolve(build, cwd, &here) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !S_ISDIR(here.mode) || !path_is_within(here.path, build->workspace.path)) {
		r = plan_warn(build->plan, "%s is outside of the workspace; the agent starts in %s",
			      cwd ?: "(unknown)", build->workspace.path);
		if (r < 0)
			return r;
		plan_node_done(&here);
	}
	build->plan->cwd = strdup(here.path ?: build->workspace.path);
	return build->plan->cwd ? 0 : -ENOMEM;
}

/* Does the workspace lie in, or contain, what a link of the home leads to and is therefore covered? */
static int check_masks(PlanBuild *build)
{
	for (size_t i = 0; i < build->plan->n_entries; i++) {
		const Entry *entry = &build->plan->entries[i];

		if (entry->mode != ENTRY_MASKED || (entry->kind == ENTRY_BIND && entry->source))
			continue;
		if (path_is_within(build->plan->workspace, entry->destination) ||
		    path_is_within(entry->destination, build->plan->workspace))
			return build_refuse(build, CS_ERROR_UNSAFE_WORKSPACE,
					    "%s cannot be the workspace: it would show %s, which is kept "
					    "from agents (%s); move "
					    "the project elsewhere",
					    build->plan->workspace, entry->destination, entry->reason);
	}
	return 0;
}

/*
 * The git directory of a linked worktree or a submodule lies elsewhere. An agent may have written the file that
 * names it, so it is believed only as far as a person could have meant it. What was examined is bound, by its
 * descriptor: at the path something else may lie by now.
 */
static int bind_git_directory(PlanBuild *build, const PlanNode *held)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *problem = NULL;
	const char *cause = NULL;

	if (!held)
		return 0;
	int r = plan_node_copy(held, &node);
	if (r < 0)
		return r;
	if (!S_ISDIR(node.mode))
		cause = "it is no directory";
	else if (node.uid != build->request->uid)
		cause = "it belongs to another user";
	else if ((r = workspace_check(node.path, (const char *const *)build->homes, &problem)) == -ENOMEM)
		return r;
	else if (r < 0 || build_shows_store(build, node.path, NULL))
		cause = "it lies where nothing is shown to agents";
	if (cause)
		return plan_warn(build->plan,
				 "git does not work fully here: its directory %s stays hidden: %s", node.path,
				 cause);

	const Entry *entry = plan_covering(build->plan, node.path);
	if (entry && entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW)
		return 0;
	if (entry && entry->mode == ENTRY_MASKED)
		return plan_warn(build->plan,
				 "git does not work fully here: its directory %s stays hidden: %s", node.path,
				 entry->reason);

	return plan_add_bind(build->plan, &node, held->path, ENTRY_RW, "git",
			     "the repository of this worktree or submodule");
}

int build_workspace(PlanBuild *build)
{
	const char *given = config_text(&build->request->config, CONFIG_WORKSPACE_ROOT);
	_cleanup_free_ char *root = NULL;
	size_t index = 0;

	if (build->facts->no_workspace)
		return plan_add_tmpfs(build->plan, CS_NO_WORKSPACE, 0700, ENTRY_PRIVATE, "arguments",
				      "an empty workspace: the arguments need no other");
	if (given && build_config_path(build, given, &root) < 0)
		return -ENOMEM;
	const ConfigValue *value = config_next(&build->request->config, CONFIG_WORKSPACE_ROOT, &index);

	int r = check_masks(build);
	if (r < 0)
		return r;
	if (root && (r = build_links(build, root, "workspace")) < 0)
		return r;
	r = plan_add_bind(build->plan, &build->workspace, build->plan->workspace, ENTRY_RW,
			  root && value ? value->origin : "current directory", "the workspace");
	if (r < 0)
		return r;

	const PlanNode *common = build->facts->git_common_directory, *own = build->facts->git_directory;
	r = bind_git_directory(build, common);
	return r < 0 || (common && own && path_is_within(own->path, common->path))
		       ? r
		       : bind_git_directory(build, own);
}

int build_temp_root(PlanBuild *build)
{
	static const char reason_temp[] = "hides the temporary files of other sessions";
	_cleanup_(plan_node_done) PlanNode all = PLAN_NODE_INIT, own = PLAN_NODE_INIT;
	const char *path = build->facts->temp_root;

	/* The caller owns the directories of all their projects: without this they could be read from here.
	 */
	int r = resolve(build, CS_TEMP_ROOT, &all);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && S_ISDIR(all.mode) && !plan_hides(build->plan, all.path)) {
		r = plan_add_tmpfs(build->plan, all.path, 0711, ENTRY_PRIVATE, "system", reason_temp);
		if (r >= 0)
			r = build_hide_aliases(build, all.path, reason_temp);
		if (r < 0)
			return r;
	}

	if (!path || !build->profile->temp_root)
		return 0;
	r = resolve(build, path, &own);
	if (r < 0 || !S_ISDIR(own.mode) || !streq(own.path, path) || own.uid != build->request->uid ||
	    !path_is_within(path, CS_TEMP_ROOT) || streq(path, CS_TEMP_ROOT))
		return build_refuse(
			build, CS_ERROR_PLAN_REFUSED,
			"the temporary directory %s is not this user's own directory below %s; remove it",
			path, CS_TEMP_ROOT);
	return plan_add_bind(build->plan, &own, path, ENTRY_RW, "temp root",
			     "temporary files of this workspace, seen outside as well");
}
