/* SPDX-License-Identifier: MIT */
#include "service/session/project-places.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "service/session/project-names.h"

static const char reason_way[] = "project: keeps what lies in it in its place";

static bool is_own(const ProjectState *state, const Entry *entry)
{
	return entry->kind == ENTRY_BIND && entry->source && path_is_within(entry->source, state->path);
}

/* What bwrap's path goes through last before the place of the entry at index. */
static const Entry *way_of(const Plan *plan, size_t index)
{
	const Entry *entry = &plan->entries[index], *way = NULL;

	for (size_t i = 0; i < index; i++) {
		const Entry *other = &plan->entries[i];

		if (other->kind != ENTRY_DESCRIPTOR && other->kind != ENTRY_DIRECTORY &&
		    other->kind != ENTRY_LINK && !streq(other->destination, entry->destination) &&
		    path_is_within(entry->destination, other->destination))
			way = other;
	}
	return way;
}

/* Every directory on the way to name. Return: how many entries were put before the one at index, -errno. */
static int hold_way(const ProjectState *state, Plan *plan, size_t index, const char *inside, const char *name)
{
	_cleanup_free_ char *origin = strdup(plan->entries[index].origin);
	int n = 0;

	if (!origin)
		return -ENOMEM;
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_free_ char *part = strndup(name, (size_t)(slash - name)), *place = NULL;
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		int r;

		if (!part || asprintf(&place, "%s/%s", inside, part) < 0) {
			place = NULL;
			return -ENOMEM;
		}
		node.fd = project_directory_open(state->state_fd, part, state->options.uid, true);
		if (node.fd < 0)
			return node.fd;
		if (plan_has(plan, place))
			continue;
		if (asprintf(&node.path, "%s/%s", state->path, part) < 0) {
			node.path = NULL;
			return -ENOMEM;
		}
		r = plan_insert_bind(plan, index + (size_t)n, &node, place, origin, reason_way);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

static bool wants_directory(const Entry *entry)
{
	struct stat st;

	switch (entry->kind) {
	case ENTRY_BIND:
		return entry->source_fd >= 0 && fstat(entry->source_fd, &st) == 0 && S_ISDIR(st.st_mode);
	case ENTRY_TMPFS:
	case ENTRY_DEV:
	case ENTRY_PROC:
	case ENTRY_DIRECTORY:
		return true;
	default:
		return false;
	}
}

static int make_place(const ProjectState *state, Entry *entry, const char *name)
{
	uid_t uid = state->options.uid;

	if (entry->kind == ENTRY_LINK) {
		entry->prepared = true;
		return project_link_make(state->state_fd, name, uid, entry->data);
	}
	if (wants_directory(entry)) {
		_cleanup_close_ int fd = project_directory_open(state->state_fd, name, uid, true);

		return fd < 0 ? fd : 0;
	}
	return project_file_make(state->state_fd, name, uid);
}

/* index: of an entry that is mounted in what is ours. Return: as hold_way(). */
static int prepare(ProjectState *state, Plan *plan, size_t index, const char *inside, char **ret_problem)
{
	const char *name = plan->entries[index].destination + strlen(inside) + 1;
	int n = hold_way(state, plan, index, inside, name), r;

	r = n < 0 ? n : make_place(state, &plan->entries[index + (size_t)n], name);
	/* The name belongs to the entry, which has moved with it. */
	if (r == 0)
		r = strings_append(&state->places, name);
	if (r == 0 || r == -ENOMEM || r == -E2BIG)
		return r < 0 ? r : n;
	return refuse(ret_problem, -EPERM,
		      "%s/%s stands in the place of what belongs at %s/%s in the jail (%s); move it away and "
		      "start again",
		      state->path, name, inside, name, strerror(-r));
}

int project_places_make(ProjectState *state, Plan *plan, char **ret_problem)
{
	_cleanup_free_ char *inside = NULL;
	int r;

	for (size_t i = 0; i < plan->n_entries && state->path; i++) {
		const Entry *entry = &plan->entries[i];
		const Entry *way;

		if (!inside) {
			if (entry->kind == ENTRY_BIND && entry->source && streq(entry->source, state->path)) {
				inside = strdup(entry->destination);
				if (!inside)
					return -ENOMEM;
			}
			continue;
		}
		if (entry->kind == ENTRY_DESCRIPTOR || is_own(state, entry) ||
		    streq(entry->destination, inside) || !path_is_within(entry->destination, inside))
			continue;
		way = way_of(plan, i);
		if (!way || !is_own(state, way))
			continue;
		r = prepare(state, plan, i, inside, ret_problem);
		if (r < 0)
			return r;
		i += (size_t)r;
	}
	return 0;
}
