/* SPDX-License-Identifier: MIT */
#include "service/daemon/cgroup.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "service/daemon/log.h"
#include "service/daemon/proc.h"
#include "service/daemon/registry.h"

#define GROUP_NAME "claude-sandbox"
#define EMPTY_WAIT_USEC (6 * USEC_PER_SEC)

/* A group that was killed and is waited for. */
typedef struct Ending {
	Cgroups *cgroups;
	char *path;
	int events_fd;
	sd_event_source *source, *timer;
	struct Ending *next;
} Ending;

struct Cgroups {
	sd_event *event;
	char *path;
	Ending *endings;
};

/* proc_pid_mountinfo(5): blanks and backslashes stand as \ooo. Undone in place. */
static void octal_unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

char *cgroup_find_mount(const char *mountinfo)
{
	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n');
		_cleanup_free_ char *copy = strndup(line, (size_t)(end - line));
		char *type, *field, *rest;

		if (!copy)
			return NULL;
		line = *end ? end + 1 : end;
		type = strstr(copy, " - ");
		if (!type || !starts_with(type + 3, "cgroup2 "))
			continue;
		/* mount id, parent id, device, root, mount point */
		rest = copy;
		for (int i = 0; i < 4 && rest; i++)
			(void)strsep(&rest, " ");
		field = rest ? strsep(&rest, " ") : NULL;
		if (!field || field[0] != '/')
			continue;
		octal_unescape(field);
		return strdup(field);
	}
	return NULL;
}

char *cgroup_find_own(const char *cgroup)
{
	for (const char *line = cgroup; *line;) {
		const char *end = strchrnul(line, '\n'), *path = starts_with(line, "0::");

		if (path && path[0] == '/')
			return strndup(path, (size_t)(end - path));
		line = *end ? end + 1 : end;
	}
	return NULL;
}

/* Can groups be made in directory? They must be of a kernel with cgroup.kill (5.14). Return: the path, or
 * NULL. */
static char *try_directory(const char *mount, const char *own)
{
	_cleanup_free_ char *path = NULL, *kill = NULL;

	if (asprintf(&path, "%s%s/" GROUP_NAME, mount, streq(own, "/") ? "" : own) < 0) {
		path = NULL;
		return NULL;
	}
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return NULL;
	if (asprintf(&kill, "%s/cgroup.kill", path) < 0) {
		kill = NULL;
		return NULL;
	}
	if (access(kill, W_OK) < 0) {
		(void)rmdir(path);
		return NULL;
	}
	return TAKE_PTR(path);
}

int cgroups_new(sd_event *event, Cgroups **ret)
{
	_cleanup_(cgroups_freep) Cgroups *cgroups = calloc(1, sizeof(*cgroups));
	_cleanup_free_ char *mountinfo = NULL, *cgroup = NULL, *mount = NULL, *own = NULL;

	if (!cgroups)
		return -ENOMEM;
	cgroups->event = sd_event_ref(event);
	if (proc_read(getpid(), "mountinfo", &mountinfo) >= 0)
		mount = cgroup_find_mount(mountinfo);
	if (mount && proc_read(getpid(), "cgroup", &cgroup) >= 0)
		own = cgroup_find_own(cgroup);
	/* "/.." is a group outside of what our cgroup namespace shows. */
	if (own && !strstr(own, "/.."))
		cgroups->path = try_directory(mount, own);
	if (mount && !cgroups->path)
		cgroups->path = try_directory(mount, "/");
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
	free(ending->path);
	free(ending);
}

Cgroups *cgroups_free(Cgroups *cgroups)
{
	if (!cgroups)
		return NULL;
	while (cgroups->endings)
		ending_free(cgroups->endings);
	/* Our own directory stays while a session lives in it; the kernel refuses then. */
	if (cgroups->path)
		(void)rmdir(cgroups->path);
	sd_event_unref(cgroups->event);
	free(cgroups->path);
	free(cgroups);
	return NULL;
}

const char *cgroups_path(const Cgroups *cgroups)
{
	return cgroups->path;
}

static char *group_path(const Cgroups *cgroups, const char *name, const char *file)
{
	char *path;

	if (asprintf(&path, "%s/%s%s%s", cgroups->path, name, file ? "/" : "", file ? file : "") < 0)
		return NULL;
	return path;
}

int cgroups_make(Cgroups *cgroups, char ret_name[static CS_ID_LENGTH + 1])
{
	_cleanup_free_ char *path = NULL;
	char name[CS_ID_LENGTH + 1];
	int fd, r;

	if (!cgroups->path)
		return -EOPNOTSUPP;
	r = session_id_make(name);
	if (r < 0)
		return r;
	path = group_path(cgroups, name, NULL);
	if (!path)
		return -ENOMEM;
	if (mkdir(path, 0755) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		(void)rmdir(path);
		return r;
	}
	memcpy(ret_name, name, sizeof(name));
	return fd;
}

bool cgroups_has(Cgroups *cgroups, const char *name)
{
	_cleanup_free_ char *path = cgroups->path && name[0] ? group_path(cgroups, name, NULL) : NULL;

	return path && access(path, F_OK) == 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Ending *ending = userdata;
	char text[256];
	ssize_t n;

	/* Reading makes the file quiet until the next change. */
	n = pread(fd, text, sizeof(text) - 1, 0);
	(void)n;
	if (rmdir(ending->path) == 0 || errno == ENOENT)
		ending_free(ending);
	return 0;
}

static int on_empty_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	Ending *ending = userdata;

	log_line("%s is not empty after it was killed", ending->path);
	ending_free(ending);
	return 0;
}

static void wait_until_empty(Cgroups *cgroups, char *path)
{
	_cleanup_free_ char *events = NULL;
	Ending *ending = calloc(1, sizeof(*ending));
	int r = -ENOMEM;

	if (!ending) {
		free(path);
		return;
	}
	*ending =
		(Ending){ .cgroups = cgroups, .path = path, .events_fd = FD_NONE, .next = cgroups->endings };
	cgroups->endings = ending;
	if (asprintf(&events, "%s/cgroup.events", path) < 0)
		events = NULL;
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
	if (r < 0 || rmdir(path) == 0)
		ending_free(ending);
}

void cgroups_end(Cgroups *cgroups, const char *name)
{
	_cleanup_free_ char *path = NULL, *kill = NULL;
	_cleanup_close_ int fd = FD_NONE;

	if (!cgroups->path)
		return;
	path = group_path(cgroups, name, NULL);
	kill = group_path(cgroups, name, "cgroup.kill");
	if (!path || !kill)
		return;
	fd = open(kill, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		fd = FD_NONE;
		return;
	}
	if (write(fd, "1", 1) < 0)
		log_line("%s cannot be killed: %s", path, strerror(errno));
	if (rmdir(path) < 0)
		wait_until_empty(cgroups, TAKE_PTR(path));
}
