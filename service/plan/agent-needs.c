/* SPDX-License-Identifier: MIT */

/* What an agent's program cannot do without, where the homes hide it: its package, and what starts it. */

#include "base/paths.h"
#include "service/plan/agent-file.h"
#include "service/plan/plan-build.h"

/* What a session has on its PATH besides the homes (environment.c). */
static const char *const system_directories[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
						  "/usr/bin",        "/sbin",          "/bin" };

bool plan_agent_is_program(const PlanNode *node)
{
	return S_ISREG(node->mode) && (node->mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

ssize_t plan_agent_read_head(PlanBuild *build, const PlanNode *node, char **ret)
{
	char *head = malloc(AGENT_HEAD_BYTES);
	ssize_t n;

	if (!head)
		return -ENOMEM;
	n = build->view->read_head(build->view->userdata, node, head, AGENT_HEAD_BYTES);
	*ret = head;
	return n < 0 ? 0 : n;
}

/* Will the session see what lies at the canonical path without a bind of its own? */
static bool is_in_home(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; build->homes[i]; i++)
		if (path_is_within(path, build->homes[i]))
			return true;
	return false;
}

/* Return: 1 when a program is at path, with its canonical place, 0, -ENOMEM. */
static int find_program(PlanBuild *build, const char *path, char **ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = plan_agent_follow(build, path, &node);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || !plan_agent_is_program(&node))
		return 0;
	*ret = TAKE_PTR(node.path);
	return 1;
}

static int find_on_path(PlanBuild *build, const char *command)
{
	for (size_t i = 0; i < ELEMENTSOF(system_directories); i++) {
		_cleanup_free_ char *path = NULL, *found = NULL;
		int r;

		if (asprintf(&path, "%s/%s", system_directories[i], command) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		r = find_program(build, path, &found);
		/* A link of the system may lead into a home. */
		if (r < 0 || (r > 0 && !is_in_home(build, found)))
			return r;
	}
	return 0;
}

/* What a script is started by must be seen inside, too. */
static int find_interpreter(PlanBuild *build)
{
	PlanAgent *agent = &build->agent;
	_cleanup_(agent_script_done) AgentScript script = { 0 };
	_cleanup_free_ char *head = NULL, *node = NULL, *found = NULL;
	ssize_t n;
	int r;

	n = plan_agent_read_head(build, &agent->program, &head);
	r = n < 0 ? (int)n : agent_script_parse(head, (size_t)n, &script);
	if (r == -ENOEXEC)
		return build_refuse(
			build, CS_ERROR_AGENT_MISSING,
			"%s cannot be started: its first line names no interpreter; install it again",
			agent->path);
	if (r <= 0)
		return r;

	/* The node of the same installation is the one that it was made for; the system's may be too old. */
	if (script.command && streq(script.command, "node") &&
	    (r = agent_package_node(agent->path, &node)) < 0)
		return r;
	r = node && is_in_home(build, node) ? find_program(build, node, &found) : 0;
	if (r > 0 && is_in_home(build, found)) {
		agent->interpreter = TAKE_PTR(found);
		r = agent_starter(agent->interpreter, agent->path, &agent->starter);
		return r == -ENAMETOOLONG
			       ? build_refuse(
					 build, CS_ERROR_AGENT_MISSING,
					 "%s cannot be started: the path of its node, %s, is too long or "
					 "has blanks in it; run 'sudo claude-sandbox install %s'",
					 agent->path, agent->interpreter, build->profile->name)
			       : r;
	}
	if (r < 0)
		return r;

	free(found);
	found = NULL;
	r = script.command ? find_on_path(build, script.command)
			   : find_program(build, script.interpreter, &found);
	if (r < 0)
		return r;
	if (r == 0)
		return build_refuse(
			build, CS_ERROR_AGENT_MISSING,
			"%s needs %s, which no session sees; install it with the system's package "
			"manager, or run 'sudo claude-sandbox install %s'",
			agent->path, script.command ? script.command : script.interpreter,
			build->profile->name);
	if (found && is_in_home(build, found))
		agent->interpreter = TAKE_PTR(found);
	return 0;
}

/* A directory that the program cannot do without, where "/" does not show it. */
static int find_package(PlanBuild *build)
{
	PlanAgent *agent = &build->agent;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *above = NULL, *beside = NULL;
	char *slash;
	int r;

	r = agent_package(agent->path, &agent->package);
	if (r < 0 || agent->package || !build->profile->beside)
		return r;
	above = strdup(agent->path);
	if (!above)
		return -ENOMEM;
	for (unsigned i = 0; i < 2; i++)
		if ((slash = strrchr(above, '/')))
			*slash = '\0';
	if (!*above || !is_in_home(build, above))
		return 0;
	if (asprintf(&beside, "%s/%s", above, build->profile->beside) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	r = build->view->resolve(build->view->userdata, beside, &node);
	if (r == 0 && S_ISDIR(node.mode))
		agent->package = TAKE_PTR(above);
	return r == -ENOMEM ? r : 0;
}

/* Set the plan's program to where the agent is executed inside. */
static int choose_program(PlanBuild *build)
{
	const PlanAgent *agent = &build->agent;
	bool shown = build_shows_programs(build);
	_cleanup_free_ char *own = NULL, *starter = NULL;
	const char *program = agent->path;

	if (asprintf(&own, "%s/.local/bin/%s", build->home, build->profile->name) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	if (asprintf(&starter, CS_STARTER_DIR "/%s", build->profile->name) < 0) {
		starter = NULL;
		return -ENOMEM;
	}
	if (agent->starter)
		program = shown ? starter : own;
	/* A program that looks for its package beside itself stays where it is. Of the person's own link in a
	 * directory that is shown, the name is kept: it is the process's. */
	else if (build->profile->native_path && !agent->package &&
		 (!shown || strings_have(agent->links, own)))
		program = own;
	build->plan->program = strdup(program);
	return build->plan->program ? 0 : -ENOMEM;
}

int build_find_needs(PlanBuild *build)
{
	int r = 0;

	if (is_in_home(build, build->agent.path))
		r = find_package(build);
	if (r >= 0 && !build->profile->system_program)
		r = find_interpreter(build);
	return r < 0 ? r : choose_program(build);
}
