/* SPDX-License-Identifier: MIT */

/*
 * The agent's state in three kinds (profile.h): 7 of the order in mounts.c.
 *
 * What stands at the state's name inside is never the host's directory, but one that belongs to the workspace
 * and that the session keeps elsewhere: so a name that no list has is of this project alone, whatever a new
 * version of the agent takes it for. The rest lies on top:
 *
 *   account  the host's directories, where it has them. Of files the session keeps a copy (state-files.h): a
 *            file that is mounted cannot be replaced by renaming
 *   session  private directories
 *   project  the transcripts of this workspace that the host has, so that either side can go on with them
 *
 * Agents write what these lie in. So every directory on the way to one is mounted on itself as well: no agent
 * moves it, in this session or in another of the same workspace (anchors.h).
 */

#include "service/plan/plan-build.h"

static const char reason_project[] =
	"project: the agent's state, of this workspace alone; files of the account follow the person's own";
static const char reason_lost[] = "session: the agent's state, which is lost at the end";
static const char reason_account[] = "account: shared with all sessions and with the agent outside";
static const char reason_account_file[] = "account: read-only, since there is no place for a copy";
static const char reason_session[] = "session: private, and gone at the end";
static const char reason_transcripts[] = "project: transcripts of this workspace, those from outside too";
static const char reason_history[] = "project: transcripts of all workspaces, as the configuration says";
static const char reason_way[] = "project: keeps what lies in it in its place";

typedef struct State {
	PlanBuild *build;
	char *outside; /* as the person spells it */
	char *inside;  /* in the canonical home */
	char *origin;
	bool kept; /* there is a directory of this workspace */
} State;

static void state_done(State *state)
{
	free(state->outside);
	free(state->inside);
	free(state->origin);
}

static char *join(const char *directory, const char *name)
{
	char *path;
	size_t n = strlen(name);

	n -= profile_is_directory(name);
	return asprintf(&path, "%s/%.*s", directory, (int)n, name) < 0 ? NULL : path;
}

/* The project's own directory, where it is what the session has found. Return: 1, 0 or a negative errno. */
static int resolve_own(const State *state, const char *name, PlanNode *ret)
{
	const char *own = state->build->facts->project_state;
	_cleanup_free_ char *path = name ? join(own, name) : strdup(own);
	PlanNode node = PLAN_NODE_INIT;

	if (!path)
		return -ENOMEM;
	int r = state->build->view->resolve(state->build->view->userdata, path, &node);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && S_ISDIR(node.mode) && node.uid == state->build->request->uid &&
	    streq(node.path, path)) {
		*ret = node;
		return 1;
	}
	plan_node_done(&node);
	return 0;
}

/* Each directory on the way to name, on itself. */
static int hold_way(const State *state, const char *name)
{
	for (const char *slash = strchr(name, '/'); slash && slash[1]; slash = strchr(slash + 1, '/')) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *part = strndup(name, (size_t)(slash - name));
		_cleanup_free_ char *place = part ? join(state->inside, part) : NULL;
		int r;

		if (!place)
			return -ENOMEM;
		if (!state->kept || plan_has(state->build->plan, place))
			continue;
		r = resolve_own(state, part, &node);
		if (r == 0)
			return build_refuse(state->build, CS_ERROR_PLAN_REFUSED,
					    "%s/%s was replaced just now; start again",
					    state->build->facts->project_state, part);
		if (r > 0)
			r = plan_add_bind(state->build->plan, &node, place, ENTRY_RW, state->origin,
					  reason_way);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the host has of this name, where it may be shown. Return: 1 bound, 0 not, or a negative errno. */
static int bind_host(const State *state, const char *name, ExposeTypes types, EntryMode mode,
		     const char *reason)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = join(state->outside, name), *place = join(state->inside, name);
	_cleanup_free_ char *text = NULL;
	const PlanView *view = state->build->view;
	int r;

	if (!path || !place)
		return -ENOMEM;
	/* The session makes the same link in the project's own directory (project-state.h). */
	if (view->read_link(view->userdata, path, &text) == 0)
		return 0;
	r = build_examine(state->build, path, types, mode, &node);
	if (r <= 0)
		return r == -ENOENT ? 0 : r;
	r = hold_way(state, name);
	if (r == 0)
		r = plan_add_bind(state->build->plan, &node, place, mode, state->origin, reason);
	return r < 0 ? r : 1;
}

static int add_base(State *state)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = state->build;
	int r = build->facts->project_state ? resolve_own(state, NULL, &node) : 0;

	if (r < 0)
		return r;
	state->kept = r > 0;
	return state->kept ? plan_add_bind(build->plan, &node, state->inside, ENTRY_RW, state->origin,
					   reason_project)
			   : plan_add_tmpfs(build->plan, state->inside, 0700, ENTRY_PRIVATE, state->origin,
					    reason_lost);
}

static int add_account(const State *state)
{
	const Profile *profile = state->build->profile;
	int r = 0;

	for (size_t i = 0; r >= 0 && profile->account_directories[i]; i++)
		r = bind_host(state, profile->account_directories[i], EXPOSE_DIRECTORY, ENTRY_RW,
			      reason_account);
	/* Nobody can save there, but a login is worth having. */
	for (size_t i = 0; r >= 0 && !state->kept && profile->account_files[i]; i++)
		r = bind_host(state, profile->account_files[i], EXPOSE_FILE, ENTRY_RO, reason_account_file);
	return r < 0 ? r : 0;
}

static int add_session(const State *state)
{
	const char *const *names = state->build->profile->session_names;
	int r = 0;

	/* Where nothing is kept all is of the session. */
	for (size_t i = 0; r == 0 && state->kept && names[i]; i++) {
		_cleanup_free_ char *place = join(state->inside, names[i]);

		if (!place)
			return -ENOMEM;
		/* The session removes files of this kind. */
		if (!profile_is_directory(names[i]))
			continue;
		r = hold_way(state, names[i]);
		if (r == 0)
			r = plan_add_tmpfs(state->build->plan, place, 0700, ENTRY_PRIVATE, state->origin,
					   reason_session);
	}
	return r;
}

static int add_transcripts(const State *state)
{
	const PlanBuild *build = state->build;
	_cleanup_free_ char *name = NULL;
	int r;

	if (config_history_all(&build->request->config) && build->profile->transcripts)
		r = bind_host(state, build->profile->transcripts, EXPOSE_DIRECTORY, ENTRY_RW, reason_history);
	else {
		r = profile_find_transcripts(build->profile, build->plan->cwd, &name);
		if (r == 0)
			r = bind_host(state, name, EXPOSE_DIRECTORY, ENTRY_RW, reason_transcripts);
	}
	return r == -ENOENT ? 0 : r;
}

/* A file of the home leads to the one of the same name in the state. */
static int add_home_file(const State *state)
{
	const Profile *profile = state->build->profile;
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (!profile->home_file)
		return 0;
	path = join(state->build->home, profile->home_file);
	text = profile_path(profile, profile->home_file);
	return path && text ? plan_add_link(state->build->plan, path, text, state->origin,
					    "account: what the agent saves there comes out to the person's "
					    "file of this name")
			    : -ENOMEM;
}

int build_state(PlanBuild *build)
{
	_cleanup_(state_done) State state = { .build = build };
	const Profile *profile = build->profile;
	int r;

	if (!profile->state)
		return 0;
	state.outside = join(build->request->home, profile->state);
	state.inside = join(build->home, profile->state);
	if (asprintf(&state.origin, "profile %s", profile->name) < 0)
		state.origin = NULL;
	if (!state.outside || !state.inside || !state.origin)
		return -ENOMEM;
	r = add_base(&state);
	if (r == 0)
		r = add_account(&state);
	if (r == 0)
		r = add_session(&state);
	if (r == 0)
		r = add_transcripts(&state);
	return r < 0 ? r : add_home_file(&state);
}
