/* SPDX-License-Identifier: MIT */
#include "service/plan/entry-guard.h"

#include "service/plan/config-values.h"
#include "service/plan/plan-build.h"

#define ENTRIES_MAX 1024u /* of PATH */
#define LINKS_MAX 40u     /* as the kernel, path_resolution(7) */
#define LENGTH_MAX 4096u  /* PATH_MAX: no shell gets further either */

#define ORIGIN "entry-point guard"
#define PIN_REASON "stays where it is: it leads to a directory ahead of /usr/local/bin on PATH"
#define NAME_REASON "a program put there would run in the sandbox's place"
#define AHEAD "PATH has '%s' before /usr/local/bin, "
#define FIX "put /usr/local/bin before it on PATH"

static const char *const names[] = { "claude", "codex", "pi", "claude-sandbox", "claude-sandbox-tui", NULL };

typedef struct Guard {
	PlanBuild *build;
	char *shown; /* the entry of PATH, for sentences */
} Guard;

/* What a part of PATH leads to; place is canonical, "" for "/". */
typedef struct Walk {
	char *place, *rest;
	unsigned links;
} Walk;

static void walk_done(Walk *walk)
{
	free(walk->place);
	free(walk->rest);
}

const char *const *entry_guard_names(void)
{
	return names;
}

/* Call each for path, and for its other names. */
static int each_name(const PlanBuild *build, const char *path, int (*each)(void *userdata, const char *name),
		     void *userdata)
{
	const PlanView *view = build->view;
	int r = each(userdata, path);

	return r != 0 ? r : view->aliases(view->userdata, path, each, userdata);
}

/* Could the agent make or change names in the directory at path? Those on the way to it are pinned by now. */
static int can_change(void *userdata, const char *path)
{
	const PlanBuild *build = userdata;

	return build_written_by(build, path) && build->view->can_create(build->view->userdata, path);
}

static int agent_can_change(const Guard *guard, const char *place)
{
	return each_name(guard->build, *place ? place : "/", can_change, guard->build);
}

static int pin(PlanBuild *build, const char *path)
{
	Entry *pinned = NULL;
	int r = build_pin(build, path, ORIGIN, PIN_REASON, &pinned);

	if (r == -ESTALE)
		return build_refuse(build, CS_ERROR_UNSAFE_ENTRY_POINT,
				    "%s was replaced just now, and leads to a directory on PATH; start again",
				    path);
	if (pinned)
		pinned->pin = true;
	return r;
}

/* path and the directories above it. */
static int pin_all(void *userdata, const char *path)
{
	_cleanup_free_ char *prefix = strdup(path);

	if (!prefix)
		return -ENOMEM;
	for (char *end = strchr(prefix + 1, '/');; end = strchr(end + 1, '/')) {
		if (end)
			*end = '\0';
		int r = pin(userdata, prefix);
		if (r < 0 || !end)
			return r;
		*end = '/';
	}
}

/* Does anything exist at path? Return: 1, 0, or a negative errno. */
static int exists(const PlanBuild *build, const char *path)
{
	_cleanup_free_ char *text = NULL;
	int r = build->view->read_link(build->view->userdata, path, &text);

	if (r == 0 || r == -EINVAL)
		return 1;
	return r == -ENOENT || r == -EACCES ? 0 : r;
}

static int add_guarded(Plan *plan, const char *path)
{
	for (size_t i = 0; plan->guarded && plan->guarded[i]; i++)
		if (streq(plan->guarded[i], path))
			return 1;
	return strings_append(&plan->guarded, path);
}

/* Cover the names in the directory at path, one of its names. */
static int cover(void *userdata, const char *path)
{
	PlanBuild *build = userdata;
	bool written = build_written_by(build, path);
	const Entry *elsewhere = written ? NULL : build_shown_elsewhere(build, path);

	/* No mask reaches that, but in the place where it is shown. */
	if (elsewhere)
		return build_refuse(build, CS_ERROR_UNSAFE_ENTRY_POINT,
				    "agents may write %s, which stands before /usr/local/bin on PATH, as %s; "
				    "put /usr/local/bin first",
				    path, elsewhere->destination);

	int r = written ? add_guarded(build->plan, path) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	/* What its mode forbids, it forbids to the agent too; what is there already is the session's to
	 * judge.
	 */
	bool writable = written && build->view->can_create(build->view->userdata, path);

	for (size_t i = 0; names[i]; i++) {
		_cleanup_free_ char *name = NULL;

		if (asprintf(&name, "%s/%s", path, names[i]) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		if (!written && build_written_by(build, name))
			return build_refuse(
				build, CS_ERROR_UNSAFE_ENTRY_POINT,
				"agents may write %s, which stands before /usr/local/bin on PATH; take "
				"it out of allow-write, or put /usr/local/bin first",
				name);
		if (written && build->plan->program && streq(name, build->plan->program))
			return build_refuse(
				build, CS_ERROR_UNSAFE_ENTRY_POINT,
				"%s is where this agent's program stands inside, agents may write "
				"around it, and PATH has its directory before /usr/local/bin; take it "
				"out of allow-write, or put /usr/local/bin first",
				name);
		r = writable ? 1 : written ? exists(build, name) : 0;
		if (r > 0)
			r = build_mask(build, name, S_IFCHR, ORIGIN, NAME_REASON) ?: 1;
		if (r < 0)
			return r;
		if (r > 0)
			build->plan->entries[build->plan->n_entries - 1].placeholder = true;
	}
	return 0;
}

/* The way ends before its end: cause says how. Harmless where the agent cannot make or change it. */
static int ends(const Guard *guard, const char *place, const char *cause)
{
	int r = agent_can_change(guard, place);

	if (r <= 0)
		return r;
	return build_refuse(guard->build, CS_ERROR_UNSAFE_ENTRY_POINT,
			    AHEAD "which %s, and agents could make it in %s; create it, take it out, or " FIX,
			    guard->shown, cause, place);
}

/* Stand where the link leads, whose text is taken. */
static int follow_link(const Guard *guard, Walk *walk, const char *link, char *text)
{
	char *rest;
	int r = agent_can_change(guard, walk->place);

	if (r > 0)
		return build_refuse(
			guard->build, CS_ERROR_UNSAFE_ENTRY_POINT,
			AHEAD "and agents could change the link %s on its way; name what the link leads "
			      "to, or " FIX,
			guard->shown, link);
	if (r < 0)
		return r;
	if (++walk->links > LINKS_MAX || strlen(text) + strlen(walk->rest) > LENGTH_MAX)
		return -ELOOP;
	if (asprintf(&rest, "%s/%s", text, walk->rest) < 0)
		return -ENOMEM;
	free(walk->rest);
	walk->rest = rest;
	if (text[0] == '/')
		walk->place[0] = '\0';
	return 0;
}

/* One component further. Return: 1, 0 when there is no way, a negative errno. */
static int step(const Guard *guard, Walk *walk, const char *name)
{
	const PlanView *view = guard->build->view;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *next = NULL, *text = NULL;
	char *slash = strrchr(walk->place, '/');
	int r;

	if (streq(name, "."))
		return 1;
	if (streq(name, "..")) {
		if (slash)
			*slash = '\0';
		return 1;
	}
	/* Its links lead elsewhere for the person's shell than for us (proc(5)). */
	if (walk->place[0] == '\0' && streq(name, "proc"))
		return build_refuse(guard->build, CS_ERROR_UNSAFE_ENTRY_POINT,
				    AHEAD "which leads through /proc, where each process has another "
					  "directory; name what it leads to, or " FIX,
				    guard->shown);
	if (asprintf(&next, "%s/%s", walk->place, name) < 0) {
		next = NULL;
		return -ENOMEM;
	}
	r = strlen(next) < LENGTH_MAX ? view->read_link(view->userdata, next, &text) : -ENAMETOOLONG;
	if (r == 0) {
		r = follow_link(guard, walk, next, text);
		return r == -ELOOP ? 0 : r < 0 ? r : 1;
	}
	if (r == -EINVAL)
		r = view->resolve(view->userdata, next, &node);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0)
		return ends(guard, walk->place, r == -ENOENT ? "does not exist" : "cannot be looked at");
	if (!S_ISDIR(node.mode))
		return ends(guard, walk->place, "is no directory");
	/* What is stepped back over with ".." has to stay as well. */
	r = each_name(guard->build, next, pin_all, guard->build);
	if (r < 0)
		return r;
	free(walk->place);
	walk->place = TAKE_PTR(next);
	return 1;
}

/* Most entries: a directory to which no link leads. Return: as follow(); 0 when it has to be looked at
 * closely.
 */
static int follow_straight(const Guard *guard, const char *entry, char **ret)
{
	const PlanView *view = guard->build->view;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r;

	if (view->resolve(view->userdata, entry, &node) < 0 || !S_ISDIR(node.mode) ||
	    !streq(node.path, entry))
		return 0;
	r = each_name(guard->build, entry, pin_all, guard->build);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(node.path);
	return 1;
}

/*
 * Follow an entry of PATH as a shell would, whoever's the links are: nothing is opened by it. Return: 1 and
 * *ret, the canonical directory; 0 when it leads nowhere, and the agent cannot change that; a negative errno.
 */
static int follow(const Guard *guard, const char *entry, char **ret)
{
	_cleanup_(walk_done) Walk walk = { .place = strdup(""), .rest = strdup(entry) };

	int r = follow_straight(guard, entry, ret);

	if (r != 0)
		return r;
	if (!walk.place || !walk.rest)
		return -ENOMEM;
	for (;;) {
		char *start = walk.rest + strspn(walk.rest, "/");
		size_t n = strcspn(start, "/");
		_cleanup_free_ char *name = strndup(start, n);

		if (!name)
			return -ENOMEM;
		if (n == 0)
			break;
		memmove(walk.rest, start + n, strlen(start + n) + 1);
		r = step(guard, &walk, name);
		if (r <= 0)
			return r;
	}
	*ret = *walk.place ? TAKE_PTR(walk.place) : strdup("/");
	return *ret ? 1 : -ENOMEM;
}

/* Return: 1 when the entry is where the sandbox's own programs are, 0 to go on, or a negative errno. */
static int guard_entry(Guard *guard, const char *entry, const char *bin)
{
	PlanBuild *build = guard->build;
	_cleanup_free_ char *directory = NULL;

	if (entry[0] == '\0')
		return build_refuse(build, CS_ERROR_UNSAFE_ENTRY_POINT,
				    "PATH has an empty entry before /usr/local/bin, which means the current "
				    "directory, where an agent may have put a program; take it out");
	if (entry[0] != '/')
		return build_refuse(build, CS_ERROR_UNSAFE_ENTRY_POINT,
				    AHEAD
				    "which depends on the current directory, where an agent may have put a "
				    "program; name it from / on, or " FIX,
				    guard->shown);
	int r = follow(guard, entry, &directory);
	if (r <= 0)
		return r;
	if (streq(directory, bin))
		return 1;
	return each_name(build, directory, cover, build);
}

static const char *caller_path(const PlanBuild *build)
{
	char *const *environment = build->request->environment;

	for (size_t i = 0; environment && environment[i]; i++) {
		const char *value = starts_with(environment[i], "PATH=");

		if (value)
			return value;
	}
	return NULL;
}

int build_entry_guard(PlanBuild *build)
{
	_cleanup_(plan_node_done) PlanNode bin = PLAN_NODE_INIT;
	const char *path = caller_path(build);
	int r = build->view->resolve(build->view->userdata, CS_BIN_DIR, &bin);

	if (r == -ENOMEM)
		return r;
	for (size_t n = 0; path; n++) {
		_cleanup_free_ char *entry = strndup(path, strcspn(path, ":"));
		_cleanup_free_ char *shown = entry ? config_display(entry) : NULL;
		Guard guard = { .build = build, .shown = shown };

		if (!shown)
			return -ENOMEM;
		if (n >= ENTRIES_MAX)
			return build_refuse(build, CS_ERROR_UNSAFE_ENTRY_POINT,
					    "PATH has more than %u entries before /usr/local/bin; shorten it",
					    ENTRIES_MAX);
		r = guard_entry(&guard, entry, bin.path ?: CS_BIN_DIR);
		if (r != 0)
			return r < 0 ? r : 0;
		path = strchr(path, ':');
		path = path ? path + 1 : NULL;
	}
	return 0;
}
