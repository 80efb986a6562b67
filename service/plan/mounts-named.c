/* SPDX-License-Identifier: MIT */

/*
 * The programs that the agent's settings name: hooks, a status line, MCP servers. A hook that guards and is
 * missing lets everything pass, so those are shown, read-only: 11 of the order in mounts.c.
 *
 * ORDER IS SECURITY. An agent may have written the settings, and must not open a place by naming it. Each file
 * is followed once, and what was examined is what is bound:
 *
 *  1. it lies in a home, and no link leads out of one (the view's rule for links);
 *  2. it lies in no store of keys, and in the state of no other agent;
 *  3. it is a regular file, the person's own or root's;
 *  4. it is a program: it may be executed, or its name or first bytes say that it is a script;
 *  5. there are at most NAMED_SHOWN_MAX of them.
 *
 * What is not shown is named in one warning; what is missing outside as well is not.
 */

#include "base/paths.h"
#include "service/plan/named-programs.h"
#include "service/plan/plan-build.h"

#define SETTINGS_BYTES_MAX (4u << 20) /* of one file; the rest of a longer one names nothing */
#define NAMED_SHOWN_MAX 16u

/* Known names of scripts, for those that are started by naming an interpreter. */
static const char *const script_names[] = { ".sh",  ".bash", ".zsh", ".fish", ".py", ".js",
					    ".mjs", ".cjs",  ".ts",  ".rb",   ".pl", ".lua" };

typedef struct Named {
	PlanBuild *build;
	char **paths;
	char *hidden; /* for the warning */
	size_t n_shown;
} Named;

static bool is_below(const char *path, const char *home, const char *name)
{
	const char *rest = path_is_within(path, home) ? starts_with(path + strlen(home), "/") : NULL;

	return rest && path_is_within(rest, name);
}

/* Does the canonical path lie in a store? Programs may lie in the agent's own state and in ~/.local/bin. */
static bool is_in_store(const PlanBuild *build, const char *path)
{
	static const char *const programs[] = { ".local/bin" };
	const char *const *stores = credential_paths();

	for (size_t h = 0; build->homes[h]; h++) {
		const char *home = build->homes[h];
		bool own = build->profile->state && is_below(path, home, build->profile->state);

		for (size_t i = 0; !own && i < ELEMENTSOF(programs); i++)
			own = is_below(path, home, programs[i]);
		for (size_t i = 0; !own && stores[i]; i++)
			if (is_below(path, home, stores[i]))
				return true;
	}
	return build_shows_store(build, path, NULL);
}

static bool is_in_home(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; build->homes[i]; i++)
		if (path_is_within(path, build->homes[i]))
			return true;
	return false;
}

static bool is_program(const PlanBuild *build, const PlanNode *node)
{
	size_t length = strlen(node->path);
	char head[2];

	if (plan_agent_is_program(node))
		return true;
	for (size_t i = 0; i < ELEMENTSOF(script_names); i++) {
		size_t n = strlen(script_names[i]);

		if (length > n && streq(node->path + length - n, script_names[i]))
			return true;
	}
	return build->view->read_head(build->view->userdata, node, head, sizeof(head)) == sizeof(head) &&
	       memcmp(head, "#!", 2) == 0;
}

/* Is what the host has there seen at that place already, or will the workspace show it? */
static bool is_shown(const PlanBuild *build, const char *path)
{
	const Entry *entry = plan_covering(build->plan, path);

	return path_is_within(path, build->plan->workspace) ||
	       (entry && entry->kind == ENTRY_BIND && entry->mode != ENTRY_MASKED && entry->source &&
		streq(entry->source, entry->destination));
}

static int tell_hidden(Named *named, const char *path)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", named->hidden ?: "", named->hidden ? ", " : "", path) < 0)
		return -ENOMEM;
	free(named->hidden);
	named->hidden = longer;
	return 0;
}

static int show(Named *named, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = named->build;
	int r = build->view->resolve(build->view->userdata, path, &node);

	/* Missing outside as well, or no file by that name: nothing that the jail changes. */
	if (r < 0)
		return r == -ELOOP && is_in_home(build, path) ? tell_hidden(named, path)
		       : r == -ENOMEM                         ? r
							      : 0;
	if (!is_in_home(build, node.path) || !S_ISREG(node.mode) || is_shown(build, node.path))
		return 0;
	if ((node.uid != build->request->uid && node.uid != 0) || is_in_store(build, node.path) ||
	    !is_program(build, &node) || named->n_shown >= NAMED_SHOWN_MAX)
		return tell_hidden(named, path);
	r = build_links(build, path, "settings");
	if (r < 0)
		return r;
	_cleanup_free_ char *place = strdup(node.path);
	if (!place)
		return -ENOMEM;
	named->n_shown++;
	return plan_add_bind(build->plan, &node, place, ENTRY_RO, "settings",
			     "a program that the agent's settings name");
}

static int read_settings(Named *named, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = named->build;
	_cleanup_free_ char *text = NULL;
	ssize_t n;
	int r;

	r = build->view->resolve(build->view->userdata, path, &node);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!S_ISREG(node.mode))
		return 0;
	text = malloc(SETTINGS_BYTES_MAX);
	if (!text)
		return -ENOMEM;
	n = build->view->read_head(build->view->userdata, &node, text, SETTINGS_BYTES_MAX);
	return n <= 0 ? 0
		      : named_programs_find(text, (size_t)n, build->profile->program_keys, build->home,
					    &named->paths);
}

int build_named(PlanBuild *build)
{
	const Profile *profile = build->profile;
	Named named = { .build = build };
	int r = 0;

	for (size_t i = 0; r == 0 && profile->settings[i]; i++) {
		const char *file = profile->settings[i];
		bool in_home = profile->home_file && streq(profile->home_file, file);
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s%s%s", build->home, in_home ? "" : profile->state,
			     in_home ? "" : "/", file) < 0) {
			path = NULL;
			r = -ENOMEM;
			break;
		}
		r = read_settings(&named, path);
	}
	for (size_t i = 0; r == 0 && named.paths && named.paths[i]; i++)
		r = show(&named, named.paths[i]);
	if (r == 0 && named.hidden)
		r = plan_warn(
			build->plan,
			"hidden in the jail, although the agent's settings name it: %s; a hook whose program "
			"is missing stops nothing: put the program itself, not a link, outside directories "
			"of keys and settings, for example in ~/bin",
			named.hidden);
	strings_free(named.paths);
	free(named.hidden);
	return r;
}
