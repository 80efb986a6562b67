/* SPDX-License-Identifier: MIT */

/*
 * The real agent: found in two places and nowhere else, never through PATH, never our own entry. The entry
 * would start itself inside for ever; so it is known by its place, by the note in the file, which a copy and
 * a hard link have too, and by a short script that only starts it.
 */

#include "base/paths.h"
#include "dbus/causes.h"
#include "service/plan/agent-file.h"
#include "service/plan/plan-build.h"

/* Links from a person's ~/.local/bin to where an installer put the program: so many, then it is a loop. */
#define AGENT_LINKS_MAX 16u

void plan_agent_done(PlanAgent *agent)
{
	plan_node_done(&agent->program);
	free(agent->path);
	free(agent->package);
	free(agent->interpreter);
	free(agent->starter);
	strings_free(agent->links);
	*agent = (PlanAgent){ .program = PLAN_NODE_INIT };
}

static bool is_our_place(const char *path)
{
	return path_is_within(path, CS_BIN_DIR) ||
	       (path_is_within(path, CS_LIBEXEC_DIR) && !path_is_within(path, CS_AGENTS_DIR));
}

/* "." and ".." taken out by the text alone; a link that is stepped back over is the view's to refuse. */
static char *join(const char *directory, size_t n_directory, const char *text)
{
	_cleanup_free_ char *joined = NULL;
	size_t n = 0;

	if (text[0] == '/')
		joined = strdup(text);
	else if (asprintf(&joined, "%.*s/%s", (int)n_directory, directory, text) < 0)
		joined = NULL;
	char *clean = joined ? malloc(strlen(joined) + 2) : NULL;
	if (!clean)
		return NULL;

	for (const char *p = joined; *(p += strspn(p, "/")) != '\0';) {
		size_t length = strcspn(p, "/");

		if (length == 2 && p[0] == '.' && p[1] == '.') {
			while (n > 0 && clean[--n] != '/')
				;
		} else if (!(length == 1 && p[0] == '.')) {
			clean[n++] = '/';
			memcpy(clean + n, p, length);
			n += length;
		}
		p += length;
	}
	if (n == 0)
		clean[n++] = '/';
	clean[n] = '\0';
	return clean;
}

/*
 * Put the text of the first link on the way into its place. Return: 0 with *ret, the next path, to be freed;
 * -ELOOP when there is no link that we may read.
 */
static int replace_link(PlanBuild *build, const char *path, char **ret)
{
	for (const char *end = path; *end != '\0';) {
		_cleanup_free_ char *prefix = NULL, *text = NULL, *place = NULL;
		size_t n_directory = (size_t)(end - path);
		int r;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		prefix = strndup(path, (size_t)(end - path));
		if (!prefix)
			return -ENOMEM;
		r = build->view->read_link(build->view->userdata, prefix, &text);
		if (r == -EINVAL)
			continue;
		if (r < 0)
			return r == -ENOMEM ? r : -ELOOP;
		r = strings_append(&build->agent.links, prefix);
		if (r < 0)
			return r;
		if (asprintf(&place, "%s%s", text, end) < 0) {
			place = NULL;
			return -ENOMEM;
		}
		*ret = join(path, n_directory, place);
		return *ret ? 0 : -ENOMEM;
	}
	return -ELOOP;
}

int plan_agent_follow(PlanBuild *build, const char *path, PlanNode *ret)
{
	_cleanup_free_ char *at = strdup(path);

	for (unsigned i = 0; at && i < AGENT_LINKS_MAX; i++) {
		char *next = NULL;

		int r = build->view->resolve(build->view->userdata, at, ret);
		if (r != -ELOOP)
			return r;
		r = replace_link(build, at, &next);
		if (r < 0)
			return r;
		free(at);
		at = next;
	}
	return at ? -ELOOP : -ENOMEM;
}

/* Is what was found our own entry? Return: 1 with what it is, 0, -ENOMEM. */
static int is_ours(PlanBuild *build, const PlanNode *node, const char **ret_what)
{
	_cleanup_(agent_script_done) AgentScript script = { 0 };
	_cleanup_free_ char *head = NULL;
	ssize_t n;
	int r;

	*ret_what = "leads to the entry of the jail";
	if (is_our_place(node->path))
		return 1;
	n = plan_agent_read_head(build, node, &head);
	if (n < 0)
		return (int)n;
	*ret_what = "is a copy of the entry of the jail";
	if (agent_file_is_entry(head, (size_t)n))
		return 1;
	*ret_what = "is a script that starts the entry of the jail";
	r = agent_script_parse(head, (size_t)n, &script);
	return r > 0 ? agent_script_starts_entry(&script, head, (size_t)n) : r == -ENOMEM ? r : 0;
}

static int refuse_missing(PlanBuild *build, const char *own, const char *what)
{
	const char *name = build->profile->name;

	return what ? build_refuse(build, CS_ERROR_AGENT_MISSING, BECAUSE(AGENT_ODD), name, own, what, name)
		    : build_refuse(build, CS_ERROR_AGENT_MISSING, BECAUSE(AGENT_MISSING), name, name);
}

/* The one that root installed for everybody. Return: 1 and the agent's node, 0, -ENOMEM. */
static int find_installed(PlanBuild *build)
{
	const char *name = build->profile->name, *what;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s/%s", CS_AGENTS_DIR, name, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !plan_agent_is_program(&node) || node.uid != 0 || (node.mode & (S_IWGRP | S_IWOTH)))
		return 0;
	r = is_ours(build, &node, &what);
	if (r != 0)
		return r < 0 ? r : 0;
	build->agent.program = node;
	node = PLAN_NODE_INIT;
	return 1;
}

/* The person's. Return: 0 and the agent's node, or a refusal. */
static int find_own(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *own = NULL;
	const char *what = NULL;
	int r;

	if (asprintf(&own, "%s/.local/bin/%s", build->home, build->profile->name) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	r = plan_agent_follow(build, own, &node);
	if (r == -ENOMEM)
		return r;
	if (r == -ELOOP)
		return refuse_missing(build, own,
				      "is a link that leads in a circle or over a link that is not followed");
	if (r < 0)
		return refuse_missing(build, own, build->agent.links ? "is a link that leads nowhere" : NULL);
	if (!plan_agent_is_program(&node))
		return refuse_missing(build, own, "is no program that can be executed");
	r = is_ours(build, &node, &what);
	if (r != 0)
		return r < 0 ? r : refuse_missing(build, own, what);
	build->agent.program = node;
	node = PLAN_NODE_INIT;
	return 0;
}

static int find_system(PlanBuild *build)
{
	const char *path = build->profile->system_program;
	int r;

	r = build->view->resolve(build->view->userdata, path, &build->agent.program);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !plan_agent_is_program(&build->agent.program))
		return build_refuse(build, CS_ERROR_AGENT_MISSING,
				    "%s cannot be executed; install it with the system's package manager",
				    path);
	return 0;
}

int build_find_agent(PlanBuild *build)
{
	int r;

	if (build->profile->system_program) {
		r = find_system(build);
	} else {
		r = find_installed(build);
		if (r == 0)
			r = find_own(build);
	}
	if (r < 0)
		return r;
	build->agent.path = strdup(build->agent.program.path);
	if (!build->agent.path)
		return -ENOMEM;
	return build_find_needs(build);
}
