/* SPDX-License-Identifier: MIT */
#include "service/session/git-places.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "service/plan/workspace-rules.h"

#define LINE_BYTES_MAX 4096u

/* Is path, absolute or relative to directory, the workspace? */
static bool leads_to(const PlanView *view, const char *directory, const char *path, const char *workspace)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *joined = NULL;

	if (path[0] != '/' && asprintf(&joined, "%s/%s", directory, path) < 0) {
		joined = NULL;
		return false;
	}
	return view->resolve(view->userdata, joined ?: path, &node) == 0 && streq(node.path, workspace);
}

/* The one line of a small regular file. Return: it, to be freed, or NULL. */
static char *read_line(int directory_fd, const char *name)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *line = malloc(LINE_BYTES_MAX + 1);
	struct stat st;
	ssize_t n;

	if (fd < 0 || !line || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	n = read(fd, line, LINE_BYTES_MAX);
	if (n <= 0 || n == LINE_BYTES_MAX || memchr(line, 0, (size_t)n))
		return NULL;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return TAKE_PTR(line);
}

/*
 * A linked worktree's directory is a child of "worktrees" in the repository, and its file gitdir names the
 * worktree's file .git. Both count: whoever can make that child can write the repository anyway, but a
 * directory elsewhere could be an agent's, with a file commondir that names any repository.
 */
static bool is_linked_worktree(const PlanView *view, const PlanNode *directory, const PlanNode *common,
			       const char *workspace)
{
	_cleanup_free_ char *line = NULL;
	const char *rest = starts_with(directory->path, common->path);
	char *slash;

	rest = rest ? starts_with(rest, "/worktrees/") : NULL;
	if (!rest || !*rest || strchr(rest, '/'))
		return false;
	line = read_line(directory->fd, "gitdir");
	slash = line ? strrchr(line, '/') : NULL;
	if (!slash || !streq(slash + 1, ".git"))
		return false;
	slash[1] = 0;
	return leads_to(view, directory->path, line, workspace);
}

bool git_places_point_back(const PlanView *view, const GitIdentity *git, const char *workspace)
{
	_cleanup_(plan_node_done) PlanNode directory = PLAN_NODE_INIT, common = PLAN_NODE_INIT;

	if (view->resolve(view->userdata, git->directory, &directory) < 0 || !S_ISDIR(directory.mode) ||
	    view->resolve(view->userdata, git->common_directory, &common) < 0 || !S_ISDIR(common.mode))
		return false;
	if (streq(directory.path, common.path))
		return git->worktree && leads_to(view, directory.path, git->worktree, workspace);
	return is_linked_worktree(view, &directory, &common, workspace);
}

static bool has_git(const PlanNode *workspace)
{
	struct stat st;

	return fstatat(workspace->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Where git stands above the workspace: its top, or a bare repository in which the workspace lies. */
static const char *top_above(const GitIdentity *git, const char *workspace)
{
	const char *top = git->top_level ?: git->directory;

	return !streq(top, workspace) && path_is_within(workspace, top) ? top : NULL;
}

static int warn_of_strange(const GitIdentity *git, const char *repository, const char *workspace,
			   char ***warnings)
{
	if (streq(git->directory, git->common_directory))
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

int git_places_choose(const PlanView *view, const GitIdentity *git, const PlanNode *node, const char *home,
		      PlanFacts *facts, char ***warnings)
{
	const char *workspace = node->path, *top;
	int r;

	if (!workspace)
		return 0;
	if (git->no_repository && has_git(node))
		return strings_appendf(
			warnings,
			"git does not work inside: it finds no repository of yours by %s/.git; "
			"run git status there to see why",
			workspace);
	if (git->problem) {
		r = strings_appendf(warnings,
				    "git is not fully set up inside: outside it %s; run git status in %s to "
				    "see why",
				    git->problem, workspace);
		if (r < 0)
			return r;
	}
	if (!git->directory || !git->common_directory)
		return 0;
	top = top_above(git, workspace);
	/* A home kept in git is no repository of the project's, and no workspace either. */
	if (top && home && path_is_within(home, top))
		return 0;
	if (top)
		return strings_appendf(warnings,
				       "git cannot work fully inside: the repository's top is %s, and the "
				       "workspace is only %s; start there",
				       top, workspace);
	if (path_is_within(git->directory, workspace))
		return path_is_within(git->common_directory, workspace)
			       ? 0
			       : warn_of_strange(git, git->common_directory, workspace, warnings);
	/* A work tree elsewhere is none of the workspace's, whoever names it. */
	if (git->top_level && !streq(git->top_level, workspace))
		return 0;
	if (!git->top_level || !git_places_point_back(view, git, workspace))
		return has_git(node) ? warn_of_strange(git, git->directory, workspace, warnings) : 0;
	facts->git_directory = git->directory;
	if (!path_is_within(git->common_directory, workspace))
		facts->git_common_directory = git->common_directory;
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

bool git_needs_set_id(const GitIdentity *git, mode_t mask)
{
	mode_t mode = git->directory && git->shared ? shared_mode(git->shared) : 0;

	/* A directory may be searched by those who may read it. */
	return (mask & (mode | (mode & 0044) >> 2)) != 0;
}
