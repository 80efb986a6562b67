/* SPDX-License-Identifier: MIT */
#include "service/session/git-discovery.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "service/session/git-config.h"
#include "service/session/git-file.h"

#define LINE_BYTES_MAX 4096u
#define CONFIG_BYTES_MAX (1024u * 1024u) /* of a repository with ten thousand branches */
#define REMOTES_MAX 64u

void git_places_done(GitPlaces *places)
{
	plan_node_done(&places->directory);
	plan_node_done(&places->common);
	free(places->found);
	free(places->top_level);
	free(places->worktree);
	free(places->unfollowed);
	free(places->head);
	free(places->settings);
	*places = GIT_PLACES_INIT;
}

char *git_places_join(const char *directory, const char *path)
{
	char *joined;

	if (path[0] == '/')
		return strdup(path);
	return asprintf(&joined, "%s/%s", directory, path) < 0 ? NULL : joined;
}

/* ---- reading, by a descriptor of the directory ---- */

/* A small regular file as a whole. Return: 0, the text and its size; -ENOENT; -EBADMSG; -ENOMEM. */
int git_places_read(int fd, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return -EBADMSG;
	/* It may grow while it is read. */
	text = malloc((size_t)st.st_size + 2);
	if (!text)
		return -ENOMEM;
	while (n <= (size_t)st.st_size) {
		ssize_t some = read(fd, text + n, (size_t)st.st_size + 1 - n);

		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return -EBADMSG;
		if (some == 0)
			break;
		n += (size_t)some;
	}
	if (n > (size_t)st.st_size)
		return -EBADMSG;
	text[n] = 0;
	*ret = TAKE_PTR(text);
	*ret_size = n;
	return 0;
}

static int read_file(int directory_fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd =
		openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EBADMSG;
	return git_places_read(fd, max, ret, ret_size);
}

int git_places_read_line(int directory_fd, const char *name, char **ret)
{
	_cleanup_free_ char *line = NULL;
	size_t size;
	int r = read_file(directory_fd, name, LINE_BYTES_MAX, &line, &size);

	if (r < 0)
		return r;
	if (size == 0 || memchr(line, 0, size))
		return -EBADMSG;
	line[strcspn(line, "\r\n")] = 0;
	*ret = TAKE_PTR(line);
	return 0;
}

static int read_link(int directory_fd, const char *name, char **ret)
{
	char text[LINE_BYTES_MAX + 1];
	ssize_t n = readlinkat(directory_fd, name, text, sizeof(text));

	if (n <= 0 || (size_t)n == sizeof(text))
		return -EBADMSG;
	*ret = strndup(text, (size_t)n);
	return *ret ? 0 : -ENOMEM;
}

static bool has_directory(int directory_fd, const char *name)
{
	struct stat st;

	return fstatat(directory_fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* HEAD, which is a link in old repositories. Return: 0 and "ref: refs/..." or a hash; another negative errno. */
static int read_head(int directory_fd, char **ret)
{
	_cleanup_free_ char *line = NULL, *text = NULL;
	int r = git_places_read_line(directory_fd, "HEAD", &line);

	if (r == -EBADMSG && read_link(directory_fd, "HEAD", &text) == 0) {
		if (!starts_with(text, "refs/"))
			return -EBADMSG;
		if (asprintf(&line, "ref: %s", text) < 0) {
			line = NULL;
			return -ENOMEM;
		}
		r = 0;
	}
	if (r == 0 && !starts_with(line, "ref:") &&
	    (strlen(line) < 40 || strspn(line, "0123456789abcdef") != strlen(line)))
		return -EBADMSG;
	if (r == 0)
		*ret = TAKE_PTR(line);
	return r;
}

/* ---- is it a repository? ---- */

static void take_node(PlanNode *from, PlanNode *to)
{
	plan_node_done(to);
	*to = *from;
	*from = PLAN_NODE_INIT;
}

/*
 * Does git take directory for one, and where is what all its worktrees share (gitrepository-layout(5))?
 * Return: 1 and places, 0, or -ENOMEM.
 */
static int take_repository(const PlanView *view, PlanNode *directory, GitPlaces *places)
{
	_cleanup_(plan_node_done) PlanNode common = PLAN_NODE_INIT;
	_cleanup_free_ char *line = NULL, *path = NULL, *head = NULL;
	int r = S_ISDIR(directory->mode) ? read_head(directory->fd, &head) : -ENOENT;

	if (r == 0) {
		r = git_places_read_line(directory->fd, "commondir", &line);
		if (r == -ENOENT)
			r = plan_node_copy(directory, &common);
		else if (r == 0)
			r = (path = git_places_join(directory->path, line))
				    ? view->resolve(view->userdata, path, &common)
				    : -ENOMEM;
	}
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!S_ISDIR(common.mode) || !has_directory(common.fd, "objects") ||
	    !has_directory(common.fd, "refs"))
		return 0;
	take_node(directory, &places->directory);
	take_node(&common, &places->common);
	free(places->head);
	places->head = TAKE_PTR(head);
	return 1;
}

/* What .git names, as a file or a link. Return: as take_repository(). */
static int take_named(const PlanView *view, const PlanNode *parent, const char *text, GitPlaces *places)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *path = git_places_join(parent->path, text);
	int r = path ? view->resolve(view->userdata, path, &node) : -ENOMEM;

	if (r == -ELOOP && !places->unfollowed) {
		places->unfollowed = TAKE_PTR(path);
		return 0;
	}
	return r < 0 ? (r == -ENOMEM ? r : 0) : take_repository(view, &node, places);
}

static int take_directory(const PlanView *view, const PlanNode *parent, int *fd, const struct stat *st,
			  GitPlaces *places)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	node = (PlanNode){ .path = git_places_join(streq(parent->path, "/") ? "" : parent->path, ".git"),
			   .mode = st->st_mode,
			   .uid = st->st_uid,
			   .gid = st->st_gid,
			   .fd = TAKE_FD(*fd) };
	return node.path ? take_repository(view, &node, places) : -ENOMEM;
}

/*
 * The .git of one directory. Return: 1 when git stops here (places tells with what), 0 when it looks on, or
 * -ENOMEM.
 */
static int look_at(const PlanView *view, const PlanNode *parent, uid_t uid, GitPlaces *places)
{
	_cleanup_close_ int fd = openat(parent->fd, ".git", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	places->foreign = st.st_uid != uid || parent->uid != uid;
	if (S_ISDIR(st.st_mode))
		r = take_directory(view, parent, &fd, &st, places);
	else if (S_ISLNK(st.st_mode))
		r = read_link(fd, "", &text) == 0 ? take_named(view, parent, text, places) : 0;
	else if (S_ISREG(st.st_mode)) {
		const char *name;

		/* By its name once more, so it may be another file by now; it is this one that is read. */
		r = git_places_read_line(parent->fd, ".git", &text);
		if (r == -ENOMEM)
			return r;
		name = r == 0 ? starts_with(text, "gitdir: ") : NULL;
		r = name ? take_named(view, parent, name, places) : 0;
		/* git ends where such a file leads nowhere. */
		if (r == 0)
			r = 1;
	}
	return r == 0 && places->unfollowed ? 1 : r;
}

/* ---- its configuration ---- */

typedef struct Settings {
	FILE *out;
	char *worktree;
	bool bare, extended;
	unsigned remotes;
	bool own; /* of this worktree alone */
} Settings;

static bool is_true(const char *value)
{
	return !value || strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0 || streq(value, "1");
}

static int settings_put(const Settings *settings, const char *section, const char *name, const char *value)
{
	_cleanup_free_ char *quoted = git_config_quote(value);

	if (!quoted)
		return -ENOMEM;
	(void)fprintf(settings->out, "[%s]\n\t%s = %s\n", section, name, quoted);
	return 0;
}

static int settings_take(void *userdata, const char *key, const char *value)
{
	static const struct {
		const char *key, *section, *name;
	} kept[] = {
		{ "user.name", "user", "name" },
		{ "user.email", "user", "email" },
		{ "init.defaultbranch", "init", "defaultBranch" },
		{ "core.sharedrepository", "core", "sharedRepository" },
	};
	Settings *settings = userdata;
	size_t n = strlen(key);

	if (streq(key, "core.bare"))
		settings->bare = is_true(value);
	if (streq(key, "extensions.worktreeconfig"))
		settings->extended = is_true(value);
	if (!value)
		return 0;
	if (streq(key, "core.worktree")) {
		free(settings->worktree);
		settings->worktree = strdup(value);
		return settings->worktree ? 0 : -ENOMEM;
	}
	/* For a condition of the person's (includeIf "hasconfig:remote.*.url:..."), which asks no name. */
	if (starts_with(key, "remote.") && n > 4 && streq(key + n - 4, ".url") &&
	    settings->remotes++ < REMOTES_MAX)
		return settings_put(settings, "remote \"x\"", "url", value);
	for (size_t i = 0; i < ELEMENTSOF(kept); i++)
		if (streq(key, kept[i].key))
			return settings_put(settings, kept[i].section, kept[i].name, value);
	return 0;
}

static int settings_read(Settings *settings, int directory_fd, const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = read_file(directory_fd, name, CONFIG_BYTES_MAX, &text, &size);

	return r < 0 ? (r == -ENOENT ? 0 : r) : git_file_parse(text, size, settings_take, settings);
}

/* Return: 0, -EBADMSG when git would not read it or not as a file, -ENOMEM. */
static int read_settings(GitPlaces *places, bool linked, bool *ret_bare)
{
	_cleanup_free_ char *text = NULL, *worktree = NULL;
	/* Closed first: what it has written is text. */
	_cleanup_fclose_ FILE *out = NULL;
	Settings settings = { 0 };
	size_t size;
	int r;

	out = settings.out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	r = settings_read(&settings, places->common.fd, "config");
	/* What all worktrees share says nothing about where one of them is. */
	if (linked) {
		freep(&settings.worktree);
		settings.bare = false;
	}
	if (r == 0 && settings.extended)
		r = settings_read(&settings, places->directory.fd, "config.worktree");
	worktree = settings.worktree;
	if (r < 0)
		return r;
	if (fflush(out) != 0 || ferror(out))
		return -ENOMEM;
	fclosep(&out);
	places->settings = TAKE_PTR(text);
	places->worktree = TAKE_PTR(worktree);
	*ret_bare = settings.bare;
	return 0;
}

/* As git: core.worktree, else the directory of .git, else none. */
static int find_top_level(const PlanView *view, GitPlaces *places, bool by_name)
{
	bool linked = !streq(places->directory.path, places->common.path), bare = false;
	int r = read_settings(places, linked, &bare);

	if (r == -EBADMSG)
		places->unreadable = true;
	else if (r < 0)
		return r;
	if (places->worktree) {
		_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
		_cleanup_free_ char *path = git_places_join(places->directory.path, places->worktree);

		if (!path)
			return -ENOMEM;
		r = view->resolve(view->userdata, path, &node);
		if (r == -ENOMEM)
			return r;
		places->top_level = r < 0 ? TAKE_PTR(path) : TAKE_PTR(node.path);
	} else if (by_name && !bare) {
		places->top_level = strdup(places->found);
		if (!places->top_level)
			return -ENOMEM;
	}
	return 0;
}

/* ---- from the workspace upwards ---- */

/* *node, or what is above it; on another file system git does not look. Return: 1, 0 at the end, -ENOMEM. */
static int step_up(const PlanView *view, PlanNode *node)
{
	_cleanup_(plan_node_done) PlanNode above = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;
	const char *slash = strrchr(node->path, '/');
	struct stat here, there;
	int r;

	if (streq(node->path, "/"))
		return 0;
	path = slash == node->path ? strdup("/") : strndup(node->path, (size_t)(slash - node->path));
	if (!path)
		return -ENOMEM;
	r = view->resolve(view->userdata, path, &above);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!S_ISDIR(above.mode) || fstat(node->fd, &here) < 0 || fstat(above.fd, &there) < 0 ||
	    here.st_dev != there.st_dev)
		return 0;
	take_node(&above, node);
	return 1;
}

int git_places_find(const PlanView *view, const PlanNode *workspace, uid_t uid, GitPlaces *ret)
{
	_cleanup_(git_places_done) GitPlaces places = GIT_PLACES_INIT;
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	bool by_name = false;
	int r = plan_node_copy(workspace, &node);

	while (r == 0) {
		_cleanup_free_ char *path = strdup(node.path);

		if (!path)
			return -ENOMEM;
		r = look_at(view, &node, uid, &places);
		by_name = r == 1;
		if (r == 0) {
			_cleanup_(plan_node_done) PlanNode bare = PLAN_NODE_INIT;

			places.foreign = node.uid != uid;
			r = plan_node_copy(&node, &bare);
			if (r == 0)
				r = take_repository(view, &bare, &places);
		}
		if (r == 1) {
			places.found = TAKE_PTR(path);
			break;
		}
		if (r < 0 || (r = step_up(view, &node)) <= 0)
			break;
		r = 0;
	}
	if (r >= 0 && places.directory.path) {
		places.foreign = places.foreign || places.directory.uid != uid;
		r = find_top_level(view, &places, by_name);
	}
	if (r < 0)
		return r;
	*ret = places;
	places = GIT_PLACES_INIT;
	return 0;
}
