/* SPDX-License-Identifier: MIT */

/*
 * What first appeared inside and is the host's as well: directories of the account, and the transcripts of
 * this workspace. Each is moved as a whole where the host has none of the name; else what is in it and the
 * host has not. Nothing of the host's is ever replaced, but a transcript by a longer one (project-dated.h).
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "service/link/pack.h"
#include "service/session/project-copy.h"
#include "service/session/project-dated.h"
#include "service/session/project-names.h"
#include "service/session/project-state.h"
#include "service/session/state-directory.h"

#define NAMES_MAX 4096u

int project_host_open(const ProjectState *state, const char *below, bool make)
{
	const ProjectStateOptions *options = &state->options;
	_cleanup_free_ char *path = strdup(options->home);

	for (;;) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *name = strndup(below, strcspn(below, "/")), *parent = NULL;
		int r = path && name ? own_directory_open(&options->view, path, options->uid, &node)
				     : -ENOMEM;

		if (r < 0)
			return r;
		if (*below == 0) {
			int fd = openat(node.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			return fd < 0 ? -errno : fd;
		}
		if (make && mkdirat(node.fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		parent = TAKE_PTR(path);
		if (asprintf(&path, "%s/%s", parent, name) < 0)
			path = NULL;
		below += strlen(name);
		below += *below == '/';
	}
}

/* To another file system it is copied. Return: is it, or something else, there now? */
static bool move(int own_fd, int host_fd, const char *name, uid_t uid, CopyBudget *budget)
{
	if (renameat2(own_fd, name, host_fd, name, RENAME_NOREPLACE) == 0)
		return false;
	if (errno == EXDEV)
		copy_move(own_fd, host_fd, name, uid, budget);
	return errno == EEXIST;
}

/* What is in own_fd and not in host_fd. */
static void move_names(int own_fd, int host_fd, uid_t uid, CopyBudget *budget)
{
	int copy_fd = openat(own_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy_fd < 0 ? NULL : fdopendir(copy_fd);
	unsigned n = 0;

	if (!directory) {
		(void)close_fd(copy_fd);
		return;
	}
	for (const struct dirent *entry; n < NAMES_MAX && (entry = readdir(directory)); n++)
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			(void)move(own_fd, host_fd, entry->d_name, uid, budget);
	(void)closedir(directory);
}

static void publish(const ProjectState *state, const char *name, CopyBudget *budget)
{
	const ProjectStateOptions *options = &state->options;
	const char *last;
	_cleanup_close_ int parent_fd =
		project_parent_open(state->state_fd, name, options->uid, false, &last);
	_cleanup_close_ int own_fd =
		parent_fd < 0 ? parent_fd : project_directory_open(parent_fd, last, options->uid, false);
	_cleanup_close_ int host_fd = FD_NONE, there_fd = FD_NONE;
	_cleanup_free_ char *path = NULL;

	if (own_fd < 0 || project_directory_count(own_fd) <= 0)
		return;
	path = profile_path(options->profile, name);
	if (!path)
		return;
	*strrchr(path, '/') = 0;
	host_fd = project_host_open(state, path, true);
	if (host_fd < 0 || !move(parent_fd, host_fd, last, options->uid, budget))
		return;
	there_fd = project_directory_open(host_fd, last, options->uid, false);
	if (there_fd >= 0)
		move_names(own_fd, there_fd, options->uid, budget);
}

static bool is_dated(const ProjectState *state)
{
	return state->options.profile->transcripts_kept == TRANSCRIPTS_DATED;
}

static void publish_dated(const ProjectState *state, CopyBudget *budget)
{
	if (!project_dated_has(state))
		return;
	project_dated_publish(state, budget);
	if (!budget->spent)
		project_dated_settle(state);
}

void project_state_publish(const ProjectState *state)
{
	const Profile *profile = state->options.profile;
	CopyBudget budget = copy_budget();

	for (size_t i = 0; profile->account_directories[i]; i++)
		publish(state, profile->account_directories[i], &budget);
	if (state->transcripts)
		publish(state, state->transcripts, &budget);
	if (is_dated(state))
		publish_dated(state, &budget);
	/* After the end nobody reads it; then the next session says so. */
	if (budget.spent && state->warnings)
		(void)strings_appendf(
			state->warnings,
			"some files in %s are too many or too large to be copied to %s/%s; copy "
			"them yourself",
			state->path, state->options.home, profile->state);
}

void project_state_fetch(const ProjectState *state, bool alone)
{
	const Profile *profile = state->options.profile;
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int host_fd = FD_NONE;
	CopyBudget budget = copy_budget();

	if (!is_dated(state) || state->options.all_transcripts)
		return;
	path = profile_path(profile, profile->transcripts);
	host_fd = path ? project_host_open(state, path, false) : -ENOMEM;
	if (host_fd < 0)
		return;
	project_dated_fetch(state, host_fd, alone, &budget);
	if (alone && project_dated_has(state))
		project_dated_settle(state);
	if (budget.spent && state->warnings)
		(void)strings_appendf(
			state->warnings,
			"only the newest sessions of this workspace in %s/%s are visible: at most "
			"200 files and 64 MiB are copied",
			state->options.home, path);
}
