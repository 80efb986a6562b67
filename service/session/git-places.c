/* SPDX-License-Identifier: MIT */
#include "service/session/git-places.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/paths.h"

static bool is_same(int fd, int other_fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(other_fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Is path, absolute or relative to directory, the workspace? */
static bool leads_to(const PlanView *view, const char *directory, const char *path, const PlanNode *workspace)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *joined = git_places_join(directory, path);

	return joined && view->resolve(view->userdata, joined, &node) == 0 &&
	       streq(node.path, workspace->path) && is_same(node.fd, workspace->fd);
}

/*
 * A linked worktree's directory is a child of "worktrees" in the repository, and its file gitdir names the
 * worktree's file .git. Both count: whoever can make that child can write the repository anyway, but a
 * directory elsewhere could be an agent's, with a file commondir that names any repository. The child is
 * looked up in the repository that is held: two paths prove nothing about two descriptors.
 */
static bool is_linked_worktree(const PlanView *view, const GitPlaces *places, const PlanNode *workspace)
{
	_cleanup_close_ int trees_fd = FD_NONE, fd = FD_NONE;
	_cleanup_free_ char *line = NULL;
	const char *name = starts_with(places->directory.path, places->common.path);
	char *slash;

	name = name ? starts_with(name, "/worktrees/") : NULL;
	if (!name || !*name || strchr(name, '/'))
		return false;
	trees_fd = openat(places->common.fd, "worktrees", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (trees_fd >= 0)
		fd = openat(trees_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !is_same(fd, places->directory.fd) ||
	    git_places_read_line(places->directory.fd, "gitdir", &line) < 0)
		return false;
	slash = strrchr(line, '/');
	if (!slash || !streq(slash + 1, ".git"))
		return false;
	slash[1] = 0;
	return leads_to(view, places->directory.path, line, workspace);
}

bool git_places_point_back(const PlanView *view, const GitPlaces *places, const PlanNode *workspace)
{
	if (is_same(places->directory.fd, places->common.fd))
		return places->worktree &&
		       leads_to(view, places->directory.path, places->worktree, workspace);
	return is_linked_worktree(view, places, workspace);
}

static bool has_git(const PlanNode *workspace)
{
	struct stat st;

	return fstatat(workspace->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Where git stands above the workspace: its top, or a bare repository in which the workspace lies. */
static const char *top_above(const GitPlaces *places, const char *workspace)
{
	const char *top = places->top_level ?: places->directory.path;

	return !streq(top, workspace) && path_is_within(workspace, top) ? top : NULL;
}

/* What others own git uses only where the person said so (git-config(1), safe.directory). */
static bool is_trusted(const GitPlaces *places, const GitIdentity *git)
{
	const char *path = places->found;
	bool trusted = !places->foreign;

	for (size_t i = 0; git->safe_directories && git->safe_directories[i]; i++) {
		const char *safe = git->safe_directories[i];
		size_t n = strlen(safe);

		if (n == 0)
			trusted = !places->foreign;
		else if (streq(safe, "*") || streq(safe, path) ||
			 (n > 2 && streq(safe + n - 2, "/*") && strncmp(safe, path, n - 1) == 0))
			trusted = true;
	}
	return trusted;
}

const char *git_places_trusted(const GitPlaces *places, const GitIdentity *git)
{
	return places->directory.path && places->top_level && is_trusted(places, git) ? places->top_level
										      : NULL;
}

static int warn_of_strange(const GitPlaces *places, const char *repository, const char *workspace,
			   char ***warnings)
{
	if (streq(places->directory.path, places->common.path))
		return strings_appendf(
			warnings,
			"git does not work inside: .git names the repository %s, which knows no "
			"worktree here; if it should, run git config core.worktree %s there",
			repository, workspace);
	return strings_appendf(warnings,
			       "git does not work inside: .git names the repository %s, which knows no "
			       "worktree here; if it should, run git worktree repair there",
			       repository);
}

static int warn_of_problem(const GitPlaces *places, const GitIdentity *git, const char *workspace,
			   char ***warnings)
{
	const char *problem =
		places->unreadable ? "cannot read the repository's configuration" : git->problem;

	return !problem ? 0
			: strings_appendf(
				  warnings,
				  "git is not fully set up inside: outside it %s; run git status in %s to "
				  "see why",
				  problem, workspace);
}

int git_places_choose(const PlanView *view, const GitPlaces *places, const GitIdentity *git,
		      const PlanNode *node, const char *home, PlanFacts *facts, char ***warnings)
{
	const char *workspace = node->path, *top;
	int r;

	if (!workspace)
		return 0;
	if (places->unfollowed)
		return strings_appendf(warnings,
				       "git does not work inside: .git names %s, and a link on the way there "
				       "could have been changed by another program; name what it leads to",
				       places->unfollowed);
	if (!places->directory.path || !is_trusted(places, git)) {
		if (has_git(node))
			return strings_appendf(
				warnings,
				"git does not work inside: it finds no repository of yours by %s/.git; "
				"run git status there to see why",
				workspace);
		return warn_of_problem(places, git, workspace, warnings);
	}
	r = warn_of_problem(places, git, workspace, warnings);
	if (r < 0)
		return r;
	top = top_above(places, workspace);
	/* A home kept in git is no repository of the project's, and no workspace either. */
	if (top && home && path_is_within(home, top))
		return 0;
	if (top)
		return strings_appendf(warnings,
				       "git cannot work fully inside: the repository's top is %s, and the "
				       "workspace is only %s; start there",
				       top, workspace);
	if (path_is_within(places->directory.path, workspace))
		return path_is_within(places->common.path, workspace)
			       ? 0
			       : warn_of_strange(places, places->common.path, workspace, warnings);
	/* A work tree elsewhere is none of the workspace's, whoever names it. */
	if (places->top_level && !streq(places->top_level, workspace))
		return 0;
	if (!places->top_level || !git_places_point_back(view, places, node))
		return has_git(node) ? warn_of_strange(places, places->directory.path, workspace, warnings)
				     : 0;
	facts->git_directory = &places->directory;
	if (!path_is_within(places->common.path, workspace))
		facts->git_common_directory = &places->common;
	return 0;
}

/* What the value asks for beyond the owner. Return: mode bits of files; 0: nothing. */
static mode_t shared_mode(const char *value)
{
	static const struct {
		const char *name;
		mode_t mode;
	} names[] = { { "group", 0060 }, { "true", 0060 },      { "yes", 0060 },
		      { "on", 0060 },    { "1", 0060 },         { "all", 0064 },
		      { "world", 0064 }, { "everybody", 0064 }, { "2", 0064 } };
	char *end;
	unsigned long mode;

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (strcasecmp(value, names[i].name) == 0)
			return names[i].mode;
	mode = strtoul(value, &end, 8);
	return *end || end == value ? 0 : (mode_t)(mode & 0066);
}

bool git_needs_set_id(const GitPlaces *places, const GitIdentity *git, mode_t mask)
{
	mode_t mode = places->directory.path && git->shared ? shared_mode(git->shared) : 0;

	/* A directory may be searched by those who may read it. */
	return (mask & (mode | (mode & 0044) >> 2)) != 0;
}
