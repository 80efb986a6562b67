/* SPDX-License-Identifier: MIT */

/*
 * What first appeared inside and is the host's as well: directories of the account, and the transcripts of
 * this workspace. Each is moved as a whole where the host has none of the name; else what is in it and the
 * host has not. Nothing of the host's is ever replaced.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "service/session/project-names.h"
#include "service/session/project-state.h"
#include "service/session/state-directory.h"

#define NAMES_MAX 4096u

/* The host's directory of that path below the home. make: with what is missing on the way. */
static int open_host(const ProjectState *state, const char *below, bool make)
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

/* What is in own_fd and not in host_fd. */
static void move_names(int own_fd, int host_fd)
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
			(void)renameat2(own_fd, entry->d_name, host_fd, entry->d_name, RENAME_NOREPLACE);
	(void)closedir(directory);
}

static void publish(const ProjectState *state, const char *name)
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
	host_fd = open_host(state, path, true);
	if (host_fd < 0 || renameat2(parent_fd, last, host_fd, last, RENAME_NOREPLACE) == 0 ||
	    errno != EEXIST)
		return;
	there_fd = project_directory_open(host_fd, last, options->uid, false);
	if (there_fd >= 0)
		move_names(own_fd, there_fd);
}

void project_state_publish(const ProjectState *state)
{
	const Profile *profile = state->options.profile;

	for (size_t i = 0; profile->account_directories[i]; i++)
		publish(state, profile->account_directories[i]);
	if (state->transcripts)
		publish(state, state->transcripts);
}
