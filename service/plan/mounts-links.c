/* SPDX-License-Identifier: MIT */

/*
 * Links inside of what is shown: they are seen as they are, and lead to nothing where the other end is hidden
 * (a settings file that lies in a repository of dotfiles). They are never followed from here, since an agent
 * can make links in these directories: what it wants to see it would point at, and have it shown the next
 * time. So the person is told, once for each directory.
 */

#include "service/plan/plan-build.h"

#define NAMES_MAX 4096u

typedef struct Search {
	PlanBuild *build;
	const char *directory;
	char *first, *target; /* the first of those found */
	size_t n;
} Search;

static int look(void *userdata, const char *name)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL, *text = NULL, *target = NULL;
	Search *search = userdata;
	const PlanView *view = search->build->view;

	if (asprintf(&path, "%s/%s", search->directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	int r = view->read_link(view->userdata, path, &text);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (asprintf(&target, "%s%s%s", text[0] == '/' ? "" : search->directory, text[0] == '/' ? "" : "/",
		     text) < 0) {
		target = NULL;
		return -ENOMEM;
	}
	/* What leads nowhere outside either is nobody's loss. */
	r = view->resolve(view->userdata, target, &node);
	if (r < 0 || !plan_hides(search->build->plan, node.path))
		return r == -ENOMEM ? r : 0;
	if (search->n++ > 0)
		return 0;
	search->first = TAKE_PTR(path);
	search->target = TAKE_PTR(node.path);
	return 0;
}

/* r: what the search came to. */
static int tell(Search *search, int r)
{
	char more[48] = "";

	if (search->n > 1)
		(void)snprintf(more, sizeof(more), " (and %zu more links)", search->n - 1);
	if (r != -ENOMEM)
		r = search->n == 0
			    ? 0
			    : plan_warn(search->build->plan,
					"%s%s leads to %s, which is hidden from the agent; put the thing "
					"itself "
					"there, or let an administrator name what it leads to in allow-write",
					search->first, more, search->target);
	free(search->first);
	free(search->target);
	return r;
}

static int check(PlanBuild *build, const char *name)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", build->home, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	int r = build->view->resolve(build->view->userdata, path, &node);
	if (r < 0 || !S_ISDIR(node.mode) ||
	    (plan_hides(build->plan, node.path) && !build_shown_elsewhere(build, node.path)))
		return r == -ENOMEM ? r : 0;

	Search search = { .build = build, .directory = node.path };
	r = build->view->links(build->view->userdata, node.path, NAMES_MAX, look, &search);
	return tell(&search, r);
}

/* What all sessions share of the agent's state: the directories that are shown, and links in their places. */
static int check_state(PlanBuild *build)
{
	const Profile *profile = build->profile;
	Search search = { .build = build };
	_cleanup_free_ char *state = NULL;
	int r = 0;

	if (asprintf(&state, "%s/%s", build->home, profile->state) < 0) {
		state = NULL;
		return -ENOMEM;
	}
	search.directory = state;
	for (size_t i = 0; r >= 0 && profile->account_directories[i]; i++) {
		_cleanup_free_ char *name = profile_path(profile, profile->account_directories[i]);

		r = name ? check(build, name) : -ENOMEM;
		if (r >= 0)
			r = look(&search, profile->account_directories[i]);
	}
	return tell(&search, r);
}

int build_check_links(PlanBuild *build)
{
	int r = build->profile->state ? check_state(build) : 0;

	return r < 0 ? r : check(build, ".agents/skills");
}
