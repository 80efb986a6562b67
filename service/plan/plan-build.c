/* SPDX-License-Identifier: MIT */
#include "service/plan/plan-build.h"

#include <stdarg.h>

#include "base/paths.h"

int build_refuse(PlanBuild *build, const char *error, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}

	free(build->problem);
	build->problem = TAKE_PTR(text);
	build->error = error;
	return -EPERM;
}

/* Where is the object at path, without its descriptor? Return: 0 and *ret, or the view's error. */
static int canonical(const PlanBuild *build, const char *path, char **ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	int r = build->view->resolve(build->view->userdata, path, &node);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(node.path);
	return 0;
}

int build_links(PlanBuild *build, const char *path, const char *origin)
{
	_cleanup_free_ char *parent = strdup("");

	if (!parent)
		return -ENOMEM;

	/* parent is canonical, with "" for "/"; end runs over the slashes of path. */
	for (const char *end = path; *end != '\0';) {
		_cleanup_free_ char *prefix = NULL, *place = NULL, *target = NULL;
		const char *name = end + strspn(end, "/");
		size_t n = strcspn(name, "/");

		if (n == 0)
			break;
		end = name + n;

		prefix = strndup(path, (size_t)(end - path));
		if (!prefix)
			return -ENOMEM;
		if (asprintf(&place, "%s/%.*s", parent, (int)n, name) < 0) {
			place = NULL;
			return -ENOMEM;
		}

		/* What was there a moment ago and has gone needs no link: it is bound at its canonical place.
		 */
		int r = canonical(build, prefix, &target);
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES)
			return 0;
		if (r < 0)
			return r;

		bool dots = strncmp(name, "..", n) == 0 || strncmp(name, ".", n) == 0;
		if (!dots && !streq(target, place) && plan_hides(build->plan, place) &&
		    !plan_has(build->plan, place)) {
			r = plan_add_link(build->plan, place, target, origin,
					  "a link that the person has there");
			if (r < 0)
				return r;
		}
		free(parent);
		parent = streq(target, "/") ? strdup("") : TAKE_PTR(target);
		if (!parent)
			return -ENOMEM;
	}
	return 0;
}

static bool is_accepted(mode_t mode, ExposeTypes types)
{
	if (S_ISDIR(mode))
		return types & EXPOSE_DIRECTORY;
	if (S_ISREG(mode))
		return types & EXPOSE_FILE;
	if (S_ISSOCK(mode) || S_ISFIFO(mode))
		return types & EXPOSE_SOCKET;
	return false;
}

int build_examine(PlanBuild *build, const char *path, ExposeTypes types, EntryMode mode, PlanNode *ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *cause = NULL;

	int r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ELOOP)
		return plan_warn(build->plan,
				 "%s stays hidden: the way there is a link that another program could have "
				 "changed; put the directory itself there",
				 path);
	if (r == -ENOENT || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0)
		return plan_warn(build->plan, "%s stays hidden: %s", path, strerror(-r));

	if (!is_accepted(node.mode, types))
		return plan_warn(build->plan, "%s stays hidden: it is not a %s", path,
				 types & EXPOSE_DIRECTORY ? "directory" : "regular file");
	/* A link may lead anywhere; read-write it must not lead to a place that would open more than its name
	 * says. */
	if (mode == ENTRY_RW &&
	    directory_check(node.path, (const char *const *)build->homes, &cause) == -EPERM)
		return plan_warn(build->plan, "%s stays hidden: it leads to %s, and %s", path, node.path,
				 cause);
	if (build_shows_store(build, node.path, path))
		return plan_warn(build->plan,
				 "%s stays hidden: it leads to %s, where other stores of the person lie",
				 path, node.path);
	*ret = node;
	node = PLAN_NODE_INIT;
	return 1;
}

int build_expose(PlanBuild *build, const char *path, ExposeTypes types, EntryMode mode, const char *origin,
		 const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = build_examine(build, path, types, mode, &node);

	if (r <= 0)
		return r;
	r = build_links(build, path, origin);
	if (r < 0)
		return r;
	_cleanup_free_ char *destination = strdup(node.path);
	if (!destination)
		return -ENOMEM;
	r = plan_add_bind(build->plan, &node, destination, mode, origin, reason);
	return r < 0 ? r : 1;
}

int build_mask(PlanBuild *build, const char *path, mode_t type, const char *origin, const char *reason)
{
	_cleanup_(plan_node_done) PlanNode null = PLAN_NODE_INIT;

	if (S_ISDIR(type))
		return plan_add_tmpfs(build->plan, path, 0700, ENTRY_MASKED, origin, reason);
	if (S_ISREG(type))
		return plan_add_mask(build->plan, path, origin, reason);

	int r = build->view->resolve(build->view->userdata, "/dev/null", &null);
	if (r < 0)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "/dev/null cannot be had, and %s has to be covered: %s", path,
				    strerror(-r));
	return plan_add_bind(build->plan, &null, path, ENTRY_MASKED, origin, reason);
}

typedef struct Hidden {
	PlanBuild *build;
	const char *reason;
} Hidden;

static int hide_alias(void *userdata, const char *alias)
{
	const Hidden *hidden = userdata;
	Plan *plan = hidden->build->plan;

	return plan_hides(plan, alias)
		       ? 0
		       : plan_add_tmpfs(plan, alias, 0755, ENTRY_PRIVATE, "system", hidden->reason);
}

int build_hide_aliases(PlanBuild *build, const char *path, const char *reason)
{
	Hidden hidden = { .build = build, .reason = reason };
	int r = build->view->aliases(build->view->userdata, path, hide_alias, &hidden);

	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP ? 0 : r;
}

const Entry *build_written_by(const PlanBuild *build, const char *path)
{
	const Entry *entry = plan_covering(build->plan, path);

	return entry && entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && entry->source &&
			       streq(entry->source, entry->destination)
		       ? entry
		       : NULL;
}

const Entry *build_shown_elsewhere(const PlanBuild *build, const char *path)
{
	for (size_t i = 0; i < build->plan->n_entries; i++) {
		const Entry *entry = &build->plan->entries[i];

		if (entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW && !entry->device && entry->source &&
		    !streq(entry->source, entry->destination) && path_is_within(path, entry->source))
			return entry;
	}
	return NULL;
}

int build_pin(PlanBuild *build, const char *path, const char *origin, const char *reason, Entry **ret)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const Entry *entry = build_written_by(build, path);
	size_t index;

	if (!entry || streq(entry->destination, path))
		return 0;
	int r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0 || !S_ISDIR(node.mode) || !streq(node.path, path))
		return -ESTALE;
	index = (size_t)(entry - build->plan->entries) + 1;
	r = plan_insert_bind(build->plan, index, &node, node.path, origin, reason);
	if (r < 0)
		return r;
	*ret = &build->plan->entries[index];
	return 0;
}
