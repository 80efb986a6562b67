/* SPDX-License-Identifier: MIT */
#include "service/session/project-state.h"

#include <fcntl.h>
#include <sys/file.h>

#include "service/link/pack.h"
#include "service/session/project-names.h"
#include "service/session/state-directory.h"
#include "service/session/state-file.h"
#include "service/session/workspace-key.h"

#define PROJECTS "projects"
#define WORKSPACE_FILE "workspace"
#define RECORDS_SUFFIX ".records"
#define TRIES_MAX 8u
#define WORKSPACE_BYTES_MAX 4096

static char *join(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* Whose is it? Written once. Return: 0; -EEXIST: another's. */
static int claim(int key_fd, const char *workspace)
{
	_cleanup_close_ int fd =
		openat(key_fd, WORKSPACE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[WORKSPACE_BYTES_MAX + 2];
	size_t size = strlen(workspace);
	ssize_t n;

	if (size > WORKSPACE_BYTES_MAX)
		return -ENAMETOOLONG;
	if (fd < 0)
		return errno == ENOENT ? state_file_put(key_fd, WORKSPACE_FILE, workspace, size, false)
				       : -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	return (size_t)n == size && memcmp(text, workspace, size) == 0 ? 0 : -EEXIST;
}

/* Return: 1 alone, 0 with others, or a negative errno. */
static int count(int key_fd)
{
	if (flock(key_fd, LOCK_EX | LOCK_NB) == 0)
		return 1;
	/* It waits only for one that is alone, which is done in a moment. */
	while (flock(key_fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int open_projects(const ProjectStateOptions *options, char **ret_path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	int r = state_directory_open(&options->view, options->home, options->uid, true, &node);

	if (r < 0)
		return r;
	*ret_path = join(node.path, PROJECTS);
	return *ret_path ? project_directory_open(node.fd, PROJECTS, options->uid, true) : -ENOMEM;
}

/* The directory of this workspace, and be counted. Return: as count(). */
static int open_key(ProjectState *state, int projects_fd, const char *key)
{
	int alone = -EAGAIN;

	for (unsigned i = 0; i < TRIES_MAX; i++) {
		struct stat st;

		close_fdp(&state->key_fd);
		state->key_fd = project_directory_open(projects_fd, key, state->options.uid, true);
		alone = state->key_fd < 0 ? state->key_fd : count(state->key_fd);
		/* Not one that a session has removed meanwhile, which made nothing in it. */
		if (alone < 0 || (fstat(state->key_fd, &st) == 0 && st.st_nlink > 0))
			return alone;
	}
	return -EAGAIN;
}

static int open_state(ProjectState *state, const char *projects, const char *key)
{
	const ProjectStateOptions *options = &state->options;
	_cleanup_close_ int records_fd = FD_NONE;
	_cleanup_free_ char *records = NULL;
	int r = claim(state->key_fd, options->workspace);

	if (r < 0)
		return r;
	if (asprintf(&records, "%s" RECORDS_SUFFIX, options->profile->state) < 0) {
		records = NULL;
		return -ENOMEM;
	}
	r = state->state_fd =
		project_directory_open(state->key_fd, options->profile->state, options->uid, true);
	if (r >= 0)
		r = records_fd = project_directory_open(state->key_fd, records, options->uid, true);
	if (r < 0)
		return r;
	if (asprintf(&state->path, "%s/%s/%s", projects, key, options->profile->state) < 0)
		state->path = NULL;
	if (asprintf(&state->records, "%s/%s/%s", projects, key, records) < 0)
		state->records = NULL;
	return state->path && state->records ? 0 : -ENOMEM;
}

/* Return: as count(). */
static int find(ProjectState *state)
{
	const ProjectStateOptions *options = &state->options;
	_cleanup_free_ char *projects = NULL;
	_cleanup_close_ int projects_fd = open_projects(options, &projects);
	char key[WORKSPACE_KEY_LENGTH + 1];
	int r = projects_fd < 0 ? projects_fd
				: workspace_key(projects_fd, options->uid, options->workspace, key);
	int alone = r < 0 ? r : open_key(state, projects_fd, key);

	r = alone < 0 ? alone : open_state(state, projects, key);
	return r < 0 ? r : alone;
}

/* ---- what the plan mounts something on ---- */

static int make_place(const ProjectState *state, const char *name)
{
	_cleanup_free_ char *path = strndup(name, strlen(name) - profile_is_directory(name));
	_cleanup_close_ int fd =
		path ? project_directory_open(state->state_fd, path, state->options.uid, true) : -ENOMEM;

	return fd < 0 ? fd : 0;
}

/* A link leads elsewhere from here than from the host's directory, if that is a link itself. */
static int make_link(const ProjectState *state, const char *host, const char *name, const char *text)
{
	const ProjectStateOptions *options = &state->options;
	_cleanup_(plan_node_done) PlanNode home = PLAN_NODE_INIT, node = PLAN_NODE_INIT;
	_cleanup_free_ char *straight = NULL, *absolute = NULL;

	if (text[0] != '/' && options->view.resolve(options->view.userdata, host, &node) == 0 &&
	    options->view.resolve(options->view.userdata, options->home, &home) == 0) {
		straight = join(home.path, options->profile->state);
		absolute = straight ? join(node.path, text) : NULL;
		if (!absolute)
			return -ENOMEM;
	}
	/* What an agent has put in its place is seen instead. */
	(void)project_link_make(state->state_fd, name, options->uid,
				absolute && !streq(straight, node.path) ? absolute : text);
	return 0;
}

/* Where the host has a directory, one to mount it on; where it has a link, the same link. */
static int make_shared(const ProjectState *state, const char *name)
{
	const ProjectStateOptions *options = &state->options;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *host = join(options->home, options->profile->state);
	_cleanup_free_ char *path = host ? join(host, name) : NULL, *text = NULL;
	int r;

	if (!path)
		return -ENOMEM;
	r = options->view.read_link(options->view.userdata, path, &text);
	if (r == 0)
		return make_link(state, host, name, text);
	r = r == -ENOMEM ? r : options->view.resolve(options->view.userdata, path, &node);
	if (r == 0 && S_ISDIR(node.mode))
		return make_place(state, name);
	return r == -ENOMEM ? r : 0;
}

static int make_places(const ProjectState *state)
{
	const Profile *profile = state->options.profile;
	int r = 0;

	for (size_t i = 0; r == 0 && profile->account_directories[i]; i++)
		r = make_shared(state, profile->account_directories[i]);
	for (size_t i = 0; r == 0 && profile->session_names[i]; i++)
		if (profile_is_directory(profile->session_names[i]))
			r = make_place(state, profile->session_names[i]);
	if (r == 0 && state->options.all_transcripts && profile->transcripts)
		r = make_shared(state, profile->transcripts);
	else if (r == 0 && state->transcripts)
		r = make_shared(state, state->transcripts);
	return r;
}

/* ---- its sessions ---- */

static void settle(const ProjectState *state)
{
	const Profile *profile = state->options.profile;

	for (size_t i = 0; profile->session_names[i]; i++)
		if (!profile_is_directory(profile->session_names[i]))
			project_name_remove(state->state_fd, profile->session_names[i], state->options.uid);
	project_state_publish(state);
}

/* A directory that something was mounted on, and those that only such lie in, where they are empty. */
static void remove_place(const ProjectState *state, const char *name)
{
	_cleanup_free_ char *path = strndup(name, strlen(name) - profile_is_directory(name));

	for (char *slash = path; slash;) {
		project_directory_remove(state->state_fd, path, state->options.uid);
		slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
	}
}

/* A session that did nothing leaves nothing. The caller is alone. */
static void remove_empty(const ProjectState *state)
{
	const Profile *profile = state->options.profile;
	uid_t uid = state->options.uid;
	_cleanup_close_ int projects_fd = openat(state->key_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *key = strdup(state->path);

	for (size_t i = 0; state->places && state->places[i]; i++) {
		project_file_remove(state->state_fd, state->places[i], uid);
		remove_place(state, state->places[i]);
	}
	for (size_t i = 0; profile->account_directories[i]; i++)
		remove_place(state, profile->account_directories[i]);
	for (size_t i = 0; profile->session_names[i]; i++)
		remove_place(state, profile->session_names[i]);
	if (state->transcripts)
		remove_place(state, state->transcripts);
	if (projects_fd < 0 || !key || !project_directory_remove(state->key_fd, profile->state, uid))
		return;
	(void)project_directory_remove(state->key_fd, strrchr(state->records, '/') + 1, uid);
	/* Another agent's state may be there; then its owner is needed, and the directory stays. */
	if (project_directory_count(state->key_fd) != 1)
		return;
	*strrchr(key, '/') = 0;
	(void)unlinkat(state->key_fd, WORKSPACE_FILE, 0);
	(void)project_directory_remove(projects_fd, strrchr(key, '/') + 1, uid);
}

static int begin(ProjectState *state)
{
	int alone = find(state), r;

	if (alone < 0)
		return alone;
	if (alone > 0)
		settle(state);
	r = make_places(state);
	if (r == 0)
		project_state_fetch(state, alone > 0);
	if (r == 0 && alone > 0 && flock(state->key_fd, LOCK_SH) < 0)
		r = -errno;
	return r;
}

static void forget(ProjectState *state)
{
	close_fdp(&state->key_fd);
	close_fdp(&state->state_fd);
	freep(&state->path);
	freep(&state->records);
	freep(&state->transcripts);
	state->places = strings_free(state->places);
	*state = PROJECT_STATE_INIT;
}

int project_state_open(const ProjectStateOptions *options, ProjectState *ret, char ***warnings)
{
	ProjectState state = PROJECT_STATE_INIT;
	int r;

	if (!options->profile->state)
		return 0;
	state.options = *options;
	state.warnings = warnings;
	r = profile_find_transcripts(options->profile, options->cwd, &state.transcripts);
	r = r == -ENOMEM ? r : begin(&state);
	if (r == 0) {
		state.warnings = NULL;
		*ret = state;
		return 0;
	}
	forget(&state);
	return r == -ENOMEM ? r
			    : strings_appendf(warnings,
					      "what the agent learns is lost at its end: %s/" STATE_DIRECTORY
					      "/" PROJECTS " cannot be used: %s",
					      options->home,
					      r == -EEXIST   ? "it has another workspace in this one's place"
					      : r == -ENOENT ? "a directory on the way is missing or "
							       "another user's"
							     : strerror(-r));
}

void project_state_release(ProjectState *state)
{
	/* Refused while another session counts. */
	if (state->path && flock(state->key_fd, LOCK_EX | LOCK_NB) == 0) {
		settle(state);
		remove_empty(state);
	}
	forget(state);
}
