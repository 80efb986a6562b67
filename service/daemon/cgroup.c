/* SPDX-License-Identifier: MIT */
#include "service/daemon/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "service/daemon/cgroup-file.h"
#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/registry.h"

#define TREE_NAME "claude-sandbox"
#define SYSTEMD_SIGN "/run/systemd/system" /* sd_booted(3) */
#define EMPTY_WAIT_USEC (6 * USEC_PER_SEC)

/* A group that was killed and is waited for. */
typedef struct Ending {
	Cgroups *cgroups;
	char *directory;
	int events_fd;
	sd_event_source *source, *timer;
	struct Ending *next;
} Ending;

struct Cgroups {
	sd_event *event;
	char *mount; /* NULL: there is no hierarchy */
	char *tree;  /* below it, where groups of our own are; NULL: none can be made */
	char *lent;  /* what the group above the tree was made to hand down, to be undone; NULL for nothing */
	bool systemd;
	Ending *endings;
};

static char *join(const char *a, const char *b, const char *c)
{
	char *path;

	return asprintf(&path, "%s%s%s", a, b, c) < 0 ? NULL : path;
}

/*
 * A group that processes can be in. The kernel must have cgroup.kill (5.14), and above it nothing may be threaded.
 * Return: 0 or a negative errno.
 */
static int make_directory(const char *directory)
{
	_cleanup_free_ char *kill = join(directory, "/", "cgroup.kill");

	if (!kill)
		return -ENOMEM;
	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (access(kill, W_OK) < 0 || !cgroup_file_takes_processes(directory)) {
		(void)rmdir(directory);
		return -EOPNOTSUPP;
	}
	return 0;
}

static char *try_tree(Cgroups *cgroups, const char *own)
{
	_cleanup_free_ char *parent = join(cgroups->mount, streq(own, "/") ? "" : own, ""),
			    *tree = join(streq(own, "/") ? "" : own, "/", TREE_NAME), *directory = NULL;

	directory = tree ? join(cgroups->mount, tree, "") : NULL;
	if (!parent || !directory || make_directory(directory) < 0)
		return NULL;
	/* Below systemd its own process would find no place in a unit whose groups have controllers. */
	if (!cgroups->systemd)
		cgroups->lent = cgroup_file_borrow(parent);
	cgroup_file_hand_down(directory);
	return TAKE_PTR(tree);
}

int cgroups_new(sd_event *event, Cgroups **ret)
{
	_cleanup_(cgroups_freep) Cgroups *cgroups = calloc(1, sizeof(*cgroups));
	_cleanup_free_ char *mountinfo = NULL, *own = NULL;

	if (!cgroups)
		return -ENOMEM;
	cgroups->event = sd_event_ref(event);
	cgroups->systemd = access(SYSTEMD_SIGN, F_OK) == 0;
	if (proc_read(getpid(), "mountinfo", &mountinfo) >= 0)
		cgroups->mount = cgroup_find_mount(mountinfo);
	own = cgroups->mount ? cgroups_of(getpid()) : NULL;
	/* "/.." is a group outside of what our cgroup namespace shows. */
	if (own && !strstr(own, "/.."))
		cgroups->tree = try_tree(cgroups, own);
	if (cgroups->mount && !cgroups->tree)
		cgroups->tree = try_tree(cgroups, "/");
	*ret = TAKE_PTR(cgroups);
	return 0;
}

static void ending_free(Ending *ending)
{
	for (Ending **e = &ending->cgroups->endings; *e; e = &(*e)->next)
		if (*e == ending) {
			*e = ending->next;
			break;
		}
	sd_event_source_disable_unref(ending->source);
	sd_event_source_disable_unref(ending->timer);
	close_fd(ending->events_fd);
	free(ending->directory);
	free(ending);
}

Cgroups *cgroups_free(Cgroups *cgroups)
{
	_cleanup_free_ char *tree = NULL;

	if (!cgroups)
		return NULL;
	while (cgroups->endings)
		ending_free(cgroups->endings);
	/* Our own directory stays while a session lives in it; the kernel refuses then. */
	tree = cgroups->tree ? join(cgroups->mount, cgroups->tree, "") : NULL;
	if (tree && rmdir(tree) == 0 && cgroups->lent) {
		*strrchr(tree, '/') = '\0';
		cgroup_file_undo(tree, cgroups->lent);
	}
	sd_event_unref(cgroups->event);
	free(cgroups->mount);
	free(cgroups->tree);
	free(cgroups->lent);
	free(cgroups);
	return NULL;
}

char *cgroups_of(pid_t pid)
{
	_cleanup_free_ char *text = NULL;

	return proc_read(pid, "cgroup", &text) < 0 ? NULL : cgroup_find_own(text);
}

char *cgroups_directory(const Cgroups *cgroups, const char *path)
{
	return cgroups->mount ? join(cgroups->mount, path, "") : NULL;
}

static bool directory_carries_limits(const char *path)
{
	struct dirent *entry;
	DIR *directory = opendir(path);
	bool limits = false;

	if (!directory)
		return false;
	while (!limits && (entry = readdir(directory))) {
		_cleanup_free_ char *text = NULL;

		/* Names first: a group has a hundred files. */
		if (strstr(entry->d_name, ".max") || strstr(entry->d_name, ".high") ||
		    starts_with(entry->d_name, "cpuset."))
			text = cgroup_file_read(path, entry->d_name);
		limits = text && cgroup_text_limits(entry->d_name, text);
	}
	closedir(directory);
	return limits;
}

bool cgroup_carries_limits(const char *mount, const char *path, const char *base)
{
	_cleanup_free_ char *at = strdup(path);

	while (at && !cgroup_is_above(at, base) && !streq(at, "/")) {
		_cleanup_free_ char *directory = join(mount, at, "");
		char *slash = strrchr(at, '/');

		if (!directory || directory_carries_limits(directory))
			return true;
		if (!slash || slash == at)
			break;
		*slash = '\0';
	}
	return !at;
}

/* Must this session stay below its caller's group? */
static bool must_stay(const Cgroups *cgroups, const CgroupWish *wish)
{
	const char *caller = wish->caller, *base = cgroups->tree ?: "/";
	_cleanup_free_ char *slice = NULL;

	if (!cgroups->mount || !caller || strstr(caller, "/.."))
		return false;
	if (cgroups->systemd && !cgroup_is_above(caller, base)) {
		slice = cgroup_find_slice(caller);
		if (!slice)
			return true;
		/* Users make units of their own. */
		if (wish->by_name)
			return false;
	}
	return cgroup_carries_limits(cgroups->mount, caller, slice ?: base);
}

static int make_name(const char *parent, char **ret)
{
	char id[CS_ID_LENGTH + 1];
	int r = session_id_make(id);

	if (r < 0)
		return r;
	*ret = join(streq(parent, "/") ? "" : parent, "/" CGROUP_PREFIX, id);
	return *ret ? 0 : -ENOMEM;
}

static void set_limit(const char *directory, const char *name, uint64_t limit)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, limit);
	(void)cgroup_file_write(directory, name, text);
}

/* Return: the descriptor of a new group's directory below parent, or a negative errno. */
static int make_group(const Cgroups *cgroups, const char *parent, const CgroupWish *wish, char **ret_path)
{
	_cleanup_free_ char *path = NULL, *directory = NULL;
	int r, fd;

	r = make_name(parent, &path);
	if (r < 0)
		return r;
	directory = join(cgroups->mount, path, "");
	if (!directory)
		return -ENOMEM;
	r = make_directory(directory);
	if (r < 0)
		return r;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		(void)rmdir(directory);
		return r;
	}
	if (wish->memory_max > 0) {
		set_limit(directory, "memory.max", wish->memory_max);
		/* Else what does not fit would go to the disk, as much as there is of it. */
		set_limit(directory, "memory.swap.max", 0);
	}
	if (wish->tasks_max > 0)
		set_limit(directory, "pids.max", wish->tasks_max);
	*ret_path = TAKE_PTR(path);
	return fd;
}

static int make_below_caller(const Cgroups *cgroups, const CgroupWish *wish, char **ret_path)
{
	_cleanup_free_ char *directory = NULL;
	int r;

	r = make_group(cgroups, wish->caller, wish, ret_path);
	if (r >= 0 || r == -ENOMEM)
		return r;
	directory = join(cgroups->mount, wish->caller, "");
	if (!directory)
		return -ENOMEM;
	r = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r < 0)
		return -errno;
	*ret_path = NULL;
	return r;
}

/* A group for each user, in which an administrator may limit all of their sessions together. */
static int make_in_tree(const Cgroups *cgroups, const CgroupWish *wish, char **ret_path)
{
	_cleanup_free_ char *parent = NULL, *directory = NULL;
	int r;

	if (asprintf(&parent, "%s/%u", cgroups->tree, wish->uid) < 0) {
		parent = NULL;
		return -ENOMEM;
	}
	directory = join(cgroups->mount, parent, "");
	if (!directory)
		return -ENOMEM;
	r = make_directory(directory);
	if (r < 0)
		return r;
	cgroup_file_hand_down(directory);
	return make_group(cgroups, parent, wish, ret_path);
}

int cgroups_make(Cgroups *cgroups, const CgroupWish *wish, char **ret_path)
{
	if (!cgroups->mount)
		return -EOPNOTSUPP;
	if (must_stay(cgroups, wish))
		return make_below_caller(cgroups, wish, ret_path);
	return cgroups->tree ? make_in_tree(cgroups, wish, ret_path) : -EOPNOTSUPP;
}

char *cgroups_plan_scope(const Cgroups *cgroups, const CgroupWish *wish)
{
	_cleanup_free_ char *slice = NULL, *path = NULL;

	if (!cgroups->systemd || !cgroups->mount || must_stay(cgroups, wish))
		return NULL;
	/* systemd.slice(5): a dash in its name is a level of the hierarchy. */
	if (asprintf(&slice, "/user.slice/user-%u.slice", wish->uid) < 0) {
		slice = NULL;
		return NULL;
	}
	if (make_name(slice, &path) < 0)
		return NULL;
	return join(path, CGROUP_SCOPE, "");
}

bool cgroups_offers(const Cgroups *cgroups, const CgroupWish *wish, const char *controller)
{
	_cleanup_free_ char *directory = NULL, *text = NULL;
	bool stays = must_stay(cgroups, wish), scope = cgroups->systemd && !stays;

	if (!cgroups->mount || (!scope && !stays && !cgroups->tree))
		return false;
	/* systemd hands down what the root has; others can be had by whoever has them for those below. */
	directory = scope ? strdup(cgroups->mount)
			  : join(cgroups->mount, stays ? wish->caller : cgroups->tree, "");
	text = directory
		       ? cgroup_file_read(directory, scope ? "cgroup.controllers" : "cgroup.subtree_control")
		       : NULL;
	return text && cgroup_text_has(text, controller);
}

bool cgroups_are_possible(const Cgroups *cgroups, const CgroupWish *wish)
{
	return cgroups->mount && (cgroups->systemd || cgroups->tree || must_stay(cgroups, wish));
}

int cgroups_enter(int directory_fd, pid_t pid)
{
	_cleanup_close_ int fd = openat(directory_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	char text[16];

	if (fd < 0) {
		int r = -errno;

		fd = FD_NONE;
		return r;
	}
	(void)snprintf(text, sizeof(text), "%d", pid);
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroups_follow_v1(const char *text)
{
	_cleanup_free_ char *own = NULL, *mountinfo = NULL;
	const char *next = text;
	int r = proc_read(getpid(), "cgroup", &own);

	while (r >= 0) {
		_cleanup_free_ char *controllers = cgroup_next_v1(&next), *theirs = NULL, *ours = NULL,
				    *directory = NULL;

		if (!controllers)
			return 0;
		theirs = cgroup_find_v1(text, controllers);
		ours = cgroup_find_v1(own, controllers);
		if (!theirs || strstr(theirs, "/..") || (ours && streq(theirs, ours)))
			continue;
		if (!mountinfo)
			r = proc_read(getpid(), "mountinfo", &mountinfo);
		if (r >= 0)
			directory = cgroup_find_v1_directory(mountinfo, controllers, theirs);
		if (r >= 0)
			r = directory ? cgroup_file_write(directory, "cgroup.procs", "0") : -ENOENT;
	}
	return r;
}

bool cgroups_has(Cgroups *cgroups, const char *path)
{
	_cleanup_free_ char *directory = cgroups_directory(cgroups, path);

	return directory && access(directory, F_OK) == 0;
}

static uint64_t read_limit(const char *directory, const char *name)
{
	_cleanup_free_ char *text = cgroup_file_read(directory, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

CgroupLimits cgroups_limits(const Cgroups *cgroups, const char *path)
{
	_cleanup_free_ char *directory = cgroups_directory(cgroups, path);

	if (!directory)
		return (CgroupLimits){ 0 };
	return (CgroupLimits){ .memory_max = read_limit(directory, "memory.max"),
			       .tasks_max = read_limit(directory, "pids.max") };
}

/* The user's, when it was the last one in it. Return: 0 or a negative errno of the session's. */
static int remove_group(const char *directory)
{
	_cleanup_free_ char *parent = NULL;
	const char *slash = strrchr(directory, '/'), *name;

	if (rmdir(directory) < 0 && errno != ENOENT)
		return -errno;
	parent = strndup(directory, (size_t)(slash - directory));
	name = parent ? strrchr(parent, '/') : NULL;
	if (name && name[1] && name[1 + strspn(name + 1, "0123456789")] == '\0')
		(void)rmdir(parent);
	return 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Ending *ending = userdata;
	char text[256];
	ssize_t n;

	/* Reading makes the file quiet until the next change. */
	n = pread(fd, text, sizeof(text) - 1, 0);
	(void)n;
	if (remove_group(ending->directory) == 0)
		ending_free(ending);
	return 0;
}

static int on_empty_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	Ending *ending = userdata;

	log_line("%s is not empty after it was killed", ending->directory);
	ending_free(ending);
	return 0;
}

static void wait_until_empty(Cgroups *cgroups, char *directory)
{
	_cleanup_free_ char *events = join(directory, "/", "cgroup.events");
	Ending *ending = calloc(1, sizeof(*ending));
	int r = -ENOMEM;

	if (!ending) {
		free(directory);
		return;
	}
	*ending = (Ending){
		.cgroups = cgroups, .directory = directory, .events_fd = FD_NONE, .next = cgroups->endings
	};
	cgroups->endings = ending;
	if (events) {
		ending->events_fd = open(events, O_RDONLY | O_CLOEXEC);
		r = ending->events_fd < 0 ? -errno : 0;
	}
	if (r >= 0)
		r = sd_event_add_io(cgroups->event, &ending->source, ending->events_fd, EPOLLPRI, on_events,
				    ending);
	if (r >= 0)
		r = sd_event_add_time_relative(cgroups->event, &ending->timer, CLOCK_MONOTONIC,
					       EMPTY_WAIT_USEC, 0, on_empty_timeout, ending);
	/* It may have become empty before we watched. */
	if (r < 0 || remove_group(directory) == 0)
		ending_free(ending);
}

void cgroups_end(Cgroups *cgroups, const char *path)
{
	_cleanup_free_ char *directory = NULL;
	const char *scope;
	int r;

	if (!cgroups->mount || !cgroup_path_is_sessions(path))
		return;
	directory = cgroups_directory(cgroups, path);
	if (!directory)
		return;
	r = cgroup_file_write(directory, "cgroup.kill", "1");
	if (r == -ENOENT)
		return;
	if (r < 0)
		log_line("%s cannot be killed: %s", directory, strerror(-r));
	/* systemd removes what it has made. */
	scope = strrchr(path, '.');
	if (scope && streq(scope, CGROUP_SCOPE))
		return;
	if (remove_group(directory) < 0)
		wait_until_empty(cgroups, TAKE_PTR(directory));
}
