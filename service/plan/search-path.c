/* SPDX-License-Identifier: MIT */
#include "service/plan/search-path.h"

#include "service/plan/config-values.h"
#include "service/plan/mount-list.h"

#define ENTRIES_MAX 256u /* of the caller's PATH that are looked at */
#define NAMED_MAX 4u     /* hidden directories that the warning names */

static const char *const system_directories[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
						  "/usr/bin",        "/sbin",          "/bin" };

typedef struct SearchPath {
	Plan *plan;
	const PlanView *view;
	char **first, **last; /* 1 and 3 of search-path.h */
	char **hidden;
} SearchPath;

const char *environment_value(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; environment && environment[i]; i++)
		if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=')
			return environment[i] + n + 1;
	return NULL;
}

static void search_path_done(SearchPath *path)
{
	strings_free(path->first);
	strings_free(path->last);
	strings_free(path->hidden);
}

static int append_once(char ***list, const char *directory)
{
	return strings_have(*list, directory) ? 0 : strings_append(list, directory);
}

/* Is directory the bin of an active environment: named by a variable, and on the caller's PATH? */
static bool is_environment(const SessionRequest *request, const char *directory)
{
	static const char *const variables[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };

	for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
		const char *value = environment_value(request->environment, variables[i]);
		const char *rest = value && value[0] == '/' ? starts_with(directory, value) : NULL;

		if (rest && (streq(rest, "/bin") || streq(rest, "/condabin")))
			return true;
	}
	return false;
}

static bool agent_writes(const SearchPath *path, const char *place)
{
	const Entry *entry = plan_covering(path->plan, place);

	return entry &&
	       (entry->mode == ENTRY_PRIVATE || (entry->kind == ENTRY_BIND && entry->mode == ENTRY_RW));
}

/* One directory of the caller's. */
static int sort_directory(SearchPath *path, const SessionRequest *request, const char *directory)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = path->view->resolve(path->view->userdata, directory, &node);

	if (r == -ENOMEM)
		return r;
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	/* What a link that could be turned round leads to is found by nobody inside. */
	if (r < 0 || !S_ISDIR(node.mode) || plan_hides(path->plan, node.path))
		return append_once(&path->hidden, directory);

	const char *shown = plan_hides(path->plan, directory) ? node.path : directory;
	if (agent_writes(path, node.path) && !is_environment(request, directory))
		return append_once(&path->last, shown);
	return append_once(&path->first, shown);
}

static int warn_hidden(const SearchPath *path)
{
	size_t n = strings_count(path->hidden);
	_cleanup_free_ char *names = NULL;

	for (size_t i = 0; i < n && i < NAMED_MAX; i++) {
		_cleanup_free_ char *before = TAKE_PTR(names), *shown = config_display(path->hidden[i]);

		if (!shown || asprintf(&names, "%s%s%s", before ?: "", before ? ", " : "", shown) < 0) {
			names = NULL;
			return -ENOMEM;
		}
	}
	if (n == 0)
		return 0;
	_cleanup_free_ char *first = config_display(path->hidden[0]);
	if (!first)
		return -ENOMEM;
	return plan_warn(
		path->plan,
		"hidden in the jail, %zu director%s of your PATH: %s%s; 'allow-read = %s' in " CS_CONFIG_PATH
		" shows %s",
		n, n == 1 ? "y" : "ies", names, n > NAMED_MAX ? ", ..." : "", first,
		n == 1 ? "it" : "the first");
}

static int join(char *const *list, char **text)
{
	for (size_t i = 0; list && list[i]; i++) {
		_cleanup_free_ char *before = TAKE_PTR(*text);

		if (asprintf(text, "%s%s%s", before ?: "", before ? ":" : "", list[i]) < 0) {
			*text = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

/* Where tools of the person are found though the caller has not that directory on PATH. */
static int add_own(SearchPath *path, const char *above, const char *name)
{
	_cleanup_free_ char *directory = NULL;

	if (asprintf(&directory, "%s/%s", above, name) < 0) {
		directory = NULL;
		return -ENOMEM;
	}
	return strings_have(path->first, directory) ? 0 : append_once(&path->last, directory);
}

int search_path_make(Plan *plan, const SessionRequest *request, const PlanView *view)
{
	_cleanup_(search_path_done) SearchPath path = { .plan = plan, .view = view };
	const char *entry = environment_value(request->environment, "PATH");
	const char *virtual_env = environment_value(request->environment, "VIRTUAL_ENV");
	_cleanup_free_ char *text = NULL;
	int r = 0;

	for (size_t n = 0; r == 0 && entry && n < ENTRIES_MAX; n++) {
		_cleanup_free_ char *directory = strndup(entry, strcspn(entry, ":"));

		if (!directory)
			return -ENOMEM;
		/* What depends on the current directory is another place inside. */
		r = directory[0] == '/' ? sort_directory(&path, request, directory) : 0;
		entry = strchr(entry, ':');
		entry = entry ? entry + 1 : NULL;
	}
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(system_directories); i++)
		r = append_once(&path.first, system_directories[i]);
	if (r == 0)
		r = add_own(&path, request->home, ".local/bin");
	/* A colon would add directories that nobody named. */
	if (r == 0 && virtual_env && virtual_env[0] == '/' && !strchr(virtual_env, ':')) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *bin = NULL;

		if (asprintf(&bin, "%s/bin", virtual_env) < 0) {
			bin = NULL;
			return -ENOMEM;
		}
		/* One that the agent does not see would only be a place that it could make. */
		if (view->resolve(view->userdata, bin, &node) == 0 && S_ISDIR(node.mode) &&
		    !plan_hides(plan, node.path))
			r = add_own(&path, virtual_env, "bin");
	}
	if (r == 0)
		r = warn_hidden(&path);
	if (r == 0 && (r = join(path.first, &text)) == 0)
		r = join(path.last, &text);
	if (r < 0)
		return r;
	r = plan_set_variable(plan, "PATH", text, "caller and sandbox");
	return r == -EEXIST ? 0 : r;
}
