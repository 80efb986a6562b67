/* SPDX-License-Identifier: MIT */
#include "service/session/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/paths.h"
#include "service/link/pack.h"
#include "service/plan/workspace-rules.h"

/*
 * The walk. From "/", one component at a time, each opened O_PATH | O_NOFOLLOW, so that what is examined is
 * what is held. A link is never left to the kernel: its owner and its place decide (may_follow), then its
 * text is put before what is left of the path. ".." shortens the canonical path and opens that anew without
 * following anything, so that path and descriptor cannot drift apart when a directory is moved meanwhile.
 */

#define VIEW_LINKS_MAX 40u /* as the kernel, path_resolution(7) */
#define VIEW_PATH_MAX 4096u

static int open_component(int directory_fd, const char *name, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = resolve };
	int fd = (int)syscall(SYS_openat2, directory_fd, name, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int view_init(View *view, uid_t uid, const char *home)
{
	PlanNode node = PLAN_NODE_INIT;
	PlanView functions;
	int root_fd;

	*view = (View){ .uid = uid };
	root_fd = open_component(AT_FDCWD, "/", 0);
	if (root_fd < 0)
		return root_fd;
	(void)close_fd(root_fd);
	functions = view_functions(view);
	if (home && functions.resolve(view, home, &node) == 0)
		view->home = TAKE_PTR(node.path);
	else if (home)
		view->home = strdup(home);
	plan_node_done(&node);
	return home && !view->home ? -ENOMEM : 0;
}

void view_done(View *view)
{
	free(view->home);
	strings_free(view->writable);
	mount_table_free(view->mounts);
	*view = (View){ 0 };
}

int view_add_writable(View *view, const char *path)
{
	return strings_append(&view->writable, path);
}

/* A link of /proc whose text is not where it leads (proc(5), /proc/PID/fd, exe, cwd, root, ns). */
static bool is_magic(int directory_fd, int link_fd, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	struct statfs fs;
	int fd;

	if (fstatfs(link_fd, &fs) < 0)
		return true;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return false;
	fd = (int)syscall(SYS_openat2, directory_fd, name, &how, sizeof(how));
	if (fd < 0)
		return errno == ELOOP;
	(void)close_fd(fd);
	return false;
}

/*
 * directory: canonical path of where the link lies. In a session of root the agent's links are root's too, so
 * there the owner says nothing: a link counts only in places of the system, where no session writes. One that
 * an earlier session left in its workspace leads nowhere, whatever the workspace is now.
 */
static bool may_follow(const View *view, const char *directory, const struct stat *st)
{
	if (view->home && streq(directory, view->home))
		return true;
	if (st->st_uid != 0)
		return false;
	if (view->uid != 0)
		return true;
	for (size_t i = 0; view->writable && view->writable[i]; i++)
		if (path_is_within(directory, view->writable[i]))
			return false;
	return directory_is_systems(directory);
}

static int read_link_fd(int fd, char **ret)
{
	_cleanup_free_ char *text = malloc(VIEW_PATH_MAX + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = readlinkat(fd, "", text, VIEW_PATH_MAX + 1);
	if (n < 0)
		return -errno;
	if (n == 0 || (size_t)n > VIEW_PATH_MAX)
		return -ENAMETOOLONG;
	text[n] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

typedef struct Walk {
	int fd;     /* where it stands */
	char *path; /* canonical; "" is the root */
	char *rest; /* what is left, owned */
	unsigned links;
} Walk;

static void walk_done(Walk *walk)
{
	close_fdp(&walk->fd);
	freep(&walk->path);
	freep(&walk->rest);
}

/* Stand at path, which is canonical. Nothing is followed on the way. */
static int walk_restart(Walk *walk, const char *path)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *copy;

	if (root_fd < 0)
		return -errno;
	if (*path) {
		int fd = open_component(root_fd, path + 1, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

		if (fd < 0)
			return fd;
		close_fdp(&root_fd);
		root_fd = fd;
	}
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	close_fdp(&walk->fd);
	free(walk->path);
	walk->fd = TAKE_FD(root_fd);
	walk->path = copy;
	return 0;
}

static int walk_up(Walk *walk)
{
	_cleanup_free_ char *parent = strdup(walk->path);
	struct stat st;
	char *slash;

	if (!parent)
		return -ENOMEM;
	if (fstat(walk->fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	slash = strrchr(parent, '/');
	if (slash)
		*slash = 0;
	return walk_restart(walk, parent);
}

static int walk_link(Walk *walk, const View *view, const char *name, int link_fd, const struct stat *st)
{
	_cleanup_free_ char *text = NULL;
	char *rest;
	int r;

	if (++walk->links > VIEW_LINKS_MAX || is_magic(walk->fd, link_fd, name) ||
	    !may_follow(view, *walk->path ? walk->path : "/", st))
		return -ELOOP;
	r = read_link_fd(link_fd, &text);
	if (r < 0)
		return r;
	if (strlen(text) + strlen(walk->rest) > VIEW_PATH_MAX)
		return -ENAMETOOLONG;
	if (asprintf(&rest, "%s/%s", text, walk->rest) < 0)
		return -ENOMEM;
	free(walk->rest);
	walk->rest = rest;
	return text[0] == '/' ? walk_restart(walk, "") : 0;
}

/*
 * Inside, root has no capabilities: what the mode forbids to uid 0 is forbidden there, and bwrap, which looks
 * every source up by its path, would end. Out here root passes everywhere, so the kernel must not be asked.
 */
static int check_search(const View *view, int directory_fd)
{
	struct stat st;
	mode_t needed;

	if (view->uid != 0)
		return 0;
	if (fstat(directory_fd, &st) < 0)
		return -errno;
	needed = st.st_uid == 0                                      ? S_IXUSR
		 : st.st_gid == getegid() || group_member(st.st_gid) ? S_IXGRP
								     : S_IXOTH;
	return st.st_mode & needed ? 0 : -EACCES;
}

static int walk_down(Walk *walk, const View *view, const char *name)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	char *path;
	int r;

	r = check_search(view, walk->fd);
	if (r < 0)
		return r;
	fd = open_component(walk->fd, name, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return walk_link(walk, view, name, fd, &st);
	if (strlen(walk->path) + 1 + strlen(name) > VIEW_PATH_MAX)
		return -ENAMETOOLONG;
	if (asprintf(&path, "%s/%s", walk->path, name) < 0)
		return -ENOMEM;
	free(walk->path);
	walk->path = path;
	close_fdp(&walk->fd);
	walk->fd = TAKE_FD(fd);
	return 0;
}

/* Take the next component off the rest. Return: it, to be freed; NULL with *ret_end, or without memory. */
static char *walk_next(Walk *walk, bool *ret_end)
{
	char *start = walk->rest + strspn(walk->rest, "/"), *name;
	size_t n = strcspn(start, "/");

	*ret_end = n == 0;
	if (n == 0)
		return NULL;
	name = strndup(start, n);
	memmove(walk->rest, start + n, strlen(start + n) + 1);
	return name;
}

/* A path that ends in "/" or "/." names a directory (path_resolution(7)). */
static bool names_directory(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && (path[n - 1] == '/' || (n > 1 && path[n - 1] == '.' && path[n - 2] == '/'));
}

/* Does path name each step itself: no "//", ".", "..", nor a "/" at its end? */
static bool is_straight(const char *path)
{
	for (const char *at = path; *at; at += 1 + strcspn(at + 1, "/")) {
		size_t n = strcspn(at + 1, "/");

		if (n == 0 || (n <= 2 && memcmp(at + 1, "..", n) == 0))
			return false;
	}
	return true;
}

/*
 * Most paths have no link on their way. Then the kernel comes to the same place as the walk, which has
 * nothing to decide, with one call for all components. Return: as view_resolve(); -ELOOP where there is a
 * link.
 */
static int resolve_at_once(const char *path, PlanNode *ret)
{
	_cleanup_close_ int fd = open_component(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat st;
	char *copy;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* The last component is held itself, a link too (openat2(2), O_PATH and O_NOFOLLOW). */
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*ret = (PlanNode){ .path = copy,
			   .mode = st.st_mode,
			   .uid = st.st_uid,
			   .gid = st.st_gid,
			   .device = st.st_rdev,
			   .fd = TAKE_FD(fd) };
	return 0;
}

static int view_resolve(void *userdata, const char *path, PlanNode *ret)
{
	_cleanup_(walk_done) Walk walk = { .fd = FD_NONE };
	const View *view = userdata;
	struct stat st;
	int r;

	if (path[0] != '/')
		return -EINVAL;
	if (strlen(path) > VIEW_PATH_MAX)
		return -ENAMETOOLONG;
	/* Where root may go (check_search) the kernel is not asked; its own limit is one byte shorter. */
	r = view->uid != 0 && is_straight(path) ? resolve_at_once(path, ret) : -ELOOP;
	if (r != -ELOOP && r != -ENAMETOOLONG)
		return r;
	walk.rest = strdup(path);
	if (!walk.rest)
		return -ENOMEM;
	r = walk_restart(&walk, "");
	while (r == 0) {
		_cleanup_free_ char *name = NULL;
		bool end;

		name = walk_next(&walk, &end);
		if (end)
			break;
		if (!name)
			r = -ENOMEM;
		else if (streq(name, ".."))
			r = walk_up(&walk);
		else if (!streq(name, "."))
			r = walk_down(&walk, view, name);
	}
	if (r < 0)
		return r;
	if (fstat(walk.fd, &st) < 0)
		return -errno;
	if (names_directory(path) && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (!*walk.path) {
		free(walk.path);
		walk.path = strdup("/");
		if (!walk.path)
			return -ENOMEM;
	}
	*ret = (PlanNode){ .path = TAKE_PTR(walk.path),
			   .mode = st.st_mode,
			   .uid = st.st_uid,
			   .gid = st.st_gid,
			   .device = st.st_rdev,
			   .fd = TAKE_FD(walk.fd) };
	return 0;
}

/* Open path itself: its directory by the walk, its last component without following it. */
static int view_open_itself(View *view, const char *path, int *ret_fd)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_free_ char *directory = NULL;
	const char *slash = strrchr(path, '/');
	int r, fd;

	if (path[0] != '/' || !slash[1])
		return -EINVAL;
	directory = strndup(path, (size_t)(slash - path) + 1);
	if (!directory)
		return -ENOMEM;
	r = view_resolve(view, directory, &node);
	if (r < 0)
		return r;
	fd = open_component(node.fd, slash + 1, 0);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int view_read_link(void *userdata, const char *path, char **ret)
{
	_cleanup_close_ int fd = FD_NONE;
	struct stat st;
	int r;

	r = view_open_itself(userdata, path, &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode) ? read_link_fd(fd, ret) : -EINVAL;
}

static ssize_t view_read_head(void *userdata, const PlanNode *node, void *buffer, size_t size)
{
	char path[64]; /* "/proc/self/fd/NUMBER" */
	_cleanup_close_ int fd = FD_NONE;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->fd);
	fd = S_ISREG(node->mode) ? open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd < 0)
		return S_ISREG(node->mode) ? -errno : -EINVAL;
	while (n < size) {
		ssize_t some = read(fd, (char *)buffer + n, size - n);

		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return -errno;
		if (some == 0)
			break;
		n += (size_t)some;
	}
	return (ssize_t)n;
}

static bool view_readable(void *userdata, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;

	return view_resolve(userdata, path, &node) == 0 && faccessat(node.fd, "", R_OK, AT_EMPTY_PATH) == 0;
}

static bool view_can_create(void *userdata, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const View *view = userdata;

	if (view_resolve(userdata, path, &node) < 0)
		return false;
	return faccessat(node.fd, "", W_OK, AT_EMPTY_PATH) == 0 || (errno == EACCES && node.uid == view->uid);
}

typedef struct Alias {
	View *view;
	const PlanNode *node;
	int (*each)(void *each_userdata, const char *alias);
	void *each_userdata;
} Alias;

/* A later mount may lie over it. */
static int view_alias(void *userdata, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const Alias *alias = userdata;
	struct stat here, there;
	int r = view_resolve(alias->view, path, &node);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || !streq(node.path, path) || fstat(node.fd, &there) < 0 ||
	    fstat(alias->node->fd, &here) < 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino)
		return 0;
	return alias->each(alias->each_userdata, path);
}

static int view_aliases(void *userdata, const char *path, int (*each)(void *each_userdata, const char *alias),
			void *each_userdata)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	View *view = userdata;
	int r = view->mounts ? 0 : mount_table_read(&view->mounts);

	if (r == 0)
		r = view_resolve(view, path, &node);
	return r < 0 ? r
		     : mount_table_aliases(view->mounts, path, view_alias,
					   &(Alias){ .view = view,
						     .node = &node,
						     .each = each,
						     .each_userdata = each_userdata });
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(int fd, size_t max, bool links, char ***ret)
{
	_cleanup_(strings_freep) char **names = NULL;
	size_t n = 0, seen = 0, allocated = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(fd);
	int r = 0;

	if (!dir) {
		r = -errno;
		(void)close_fd(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		if (seen++ >= max) {
			r = -E2BIG;
			break;
		}
		/* Where the file system does not tell, whoever asks will see. */
		if (links && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
			continue;
		if (n + 1 >= allocated) {
			char **grown = reallocarray(names, allocated + 64, sizeof(char *));

			if (!grown) {
				r = -ENOMEM;
				break;
			}
			names = grown;
			allocated += 64;
		}
		names[n] = strdup(entry->d_name);
		if (!names[n])
			r = -ENOMEM;
		else
			names[++n] = NULL;
	}
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(dir);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(names, n, sizeof(char *), compare_names);
	*ret = TAKE_PTR(names);
	return 0;
}

static int list_names(View *view, const char *directory, size_t max, bool links,
		      int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	_cleanup_(strings_freep) char **names = NULL;
	int r, fd;

	r = view_resolve(view, directory, &node);
	if (r < 0)
		return r;
	fd = openat(node.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = read_names(fd, max, links, &names);
	for (size_t i = 0; r == 0 && names && names[i]; i++)
		r = each(each_userdata, names[i]);
	return r;
}

static int view_list(void *userdata, const char *directory, size_t max,
		     int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	return list_names(userdata, directory, max, false, each, each_userdata);
}

static int view_links(void *userdata, const char *directory, size_t max,
		      int (*each)(void *each_userdata, const char *name), void *each_userdata)
{
	return list_names(userdata, directory, max, true, each, each_userdata);
}

PlanView view_functions(View *view)
{
	return (PlanView){ .userdata = view,
			   .resolve = view_resolve,
			   .read_link = view_read_link,
			   .read_head = view_read_head,
			   .readable = view_readable,
			   .can_create = view_can_create,
			   .aliases = view_aliases,
			   .list = view_list,
			   .links = view_links };
}
