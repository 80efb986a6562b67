/* SPDX-License-Identifier: MIT */

/* The real agent: found in two places and nowhere else, never through PATH, never our own entry. */

#include "service/plan/plan-build.h"

/* Links from a person's ~/.local/bin to where an installer put the program: so many, then it is a loop. */
#define AGENT_LINKS_MAX 8u

static bool is_ours(const char *path)
{
	return streq(path, CS_ENTRY_PATH) || path_is_within(path, CS_BIN_DIR) ||
	       (path_is_within(path, CS_LIBEXEC_DIR) && !path_is_within(path, CS_AGENTS_DIR));
}

/* "." and ".." taken out by the text alone; a link that is stepped back over is the view's to refuse. */
static char *join(const char *link, const char *text)
{
	_cleanup_free_ char *joined = NULL;
	size_t n = 0;

	if (text[0] == '/')
		joined = strdup(text);
	else if (asprintf(&joined, "%.*s/%s", (int)(strrchr(link, '/') - link), link, text) < 0)
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
 * Follow a person's own links, which the view does not: no session can write in ~/.local/bin, and what comes
 * out must be a place that none can write either (check_place). Return: 0, or the view's error.
 */
static int follow(PlanBuild *build, const char *path, PlanNode *ret)
{
	_cleanup_free_ char *at = strdup(path);

	for (unsigned i = 0; at && i < AGENT_LINKS_MAX; i++) {
		_cleanup_free_ char *text = NULL, *next = NULL;

		int r = build->view->resolve(build->view->userdata, at, ret);
		if (r != -ELOOP)
			return r;
		r = build->view->read_link(build->view->userdata, at, &text);
		if (r < 0)
			return r == -ENOMEM ? r : -ELOOP;
		next = join(at, text);
		free(at);
		at = TAKE_PTR(next);
	}
	return at ? -ELOOP : -ENOMEM;
}

static bool is_program(const PlanNode *node)
{
	return S_ISREG(node->mode) && (node->mode & (S_IXUSR | S_IXGRP | S_IXOTH)) && !is_ours(node->path);
}

/* Set the plan's program to where the agent is executed inside. */
static int choose_program(PlanBuild *build, const PlanNode *agent)
{
	char *program = NULL;

	if (!build->profile->native_path)
		program = strdup(agent->path);
	else if (asprintf(&program, "%s/.local/bin/%s", build->home, build->profile->name) < 0)
		program = NULL;
	if (!program)
		return -ENOMEM;
	build->plan->program = program;
	return 0;
}

int build_find_agent(PlanBuild *build, PlanNode *ret)
{
	const char *name = build->profile->name;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *installed = NULL, *own = NULL;
	int r;

	if (!build->profile->known)
		return build_refuse(build, CS_ERROR_AGENT_MISSING, "%s is not supported by this version",
				    name);

	if (build->profile->system_program) {
		r = build->view->resolve(build->view->userdata, build->profile->system_program, &node);
		if (r < 0 || !is_program(&node))
			return build_refuse(
				build, CS_ERROR_AGENT_MISSING,
				"%s cannot be executed; install it with the system's package manager",
				build->profile->system_program);
	} else {
		if (asprintf(&installed, "%s/%s/%s", CS_AGENTS_DIR, name, name) < 0) {
			installed = NULL;
			return -ENOMEM;
		}
		if (asprintf(&own, "%s/.local/bin/%s", build->home, name) < 0) {
			own = NULL;
			return -ENOMEM;
		}

		r = build->view->resolve(build->view->userdata, installed, &node);
		if (r < 0 || !is_program(&node) || node.uid != 0) {
			plan_node_done(&node);
			r = follow(build, own, &node);
		}
		if (r == -ENOMEM)
			return r;
		if (r < 0 || !is_program(&node))
			return build_refuse(build, CS_ERROR_AGENT_MISSING,
					    "%s is not installed; run 'sudo claude-sandbox install %s', or "
					    "its maker's installer, "
					    "which puts it at %s",
					    name, name, own);
	}

	r = choose_program(build, &node);
	if (r < 0)
		return r;
	*ret = node;
	node = PLAN_NODE_INIT;
	return 0;
}

/* Would a session like this one write to path? Then an earlier one may have. */
static int check_place(PlanBuild *build, const char *path)
{
	const Entry *entry = plan_covering(build->plan, path);

	if (!entry || entry->kind != ENTRY_BIND || entry->mode != ENTRY_RW)
		return 0;
	return build_refuse(
		build, CS_ERROR_PLAN_REFUSED,
		"the agent's program %s lies in %s, which agents may write (%s); install it elsewhere, with "
		"'sudo claude-sandbox install %s'",
		path, entry->destination, entry->origin, build->profile->name);
}

int build_agent(PlanBuild *build, PlanNode *agent)
{
	static const char reason[] = "the agent itself";
	_cleanup_free_ char *origin = NULL;

	if (!(build->agent = strdup(agent->path)))
		return -ENOMEM;
	int r = check_place(build, build->agent);
	if (r < 0)
		return r;

	/* What "/" shows read-only needs no entry, but for an agent, whose place the exposure table names. */
	if (build->profile->system_program)
		return 0;
	if (asprintf(&origin, "profile %s", build->profile->name) < 0) {
		origin = NULL;
		return -ENOMEM;
	}

	if (!streq(build->plan->program, build->agent)) {
		_cleanup_(plan_node_done) PlanNode again = PLAN_NODE_INIT;

		/* bwrap closes a descriptor that it has bound. */
		r = build->view->resolve(build->view->userdata, build->agent, &again);
		if (r < 0 || !streq(again.path, build->agent))
			return build_refuse(build, CS_ERROR_AGENT_MISSING,
					    "%s was replaced just now; start again", build->agent);
		r = plan_add_bind(build->plan, &again, build->plan->program, ENTRY_RO, origin, reason);
	}
	return r < 0 ? r : plan_add_bind(build->plan, agent, build->agent, ENTRY_RO, origin, reason);
}

int build_check_agent(PlanBuild *build)
{
	int r = check_place(build, build->agent);

	return r < 0 ? r : check_place(build, build->plan->program);
}
