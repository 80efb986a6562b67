/* SPDX-License-Identifier: MIT */
#include "service/session/mask-watch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/plan/mount-list.h"
#include "service/session/disturbance.h"
#include "service/session/jail-join.h"
#include "service/session/mask-renew.h"
#include "service/session/placeholder-file.h"

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define WATCH_FLAGS (IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
/* Whatever they say, the names alone do not tell any more. */
#define WATCH_LOST (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT)
#define EVENTS_BYTES 4096u
#define PF_EXITING 4u
#define RENEWALS_MAX 100u /* at once: some milliseconds each */

typedef struct Place {
	const Entry *entry; /* what hides */
	const Entry *under; /* the bind that would show it */
	dev_t device;       /* what is seen at the place */
	ino_t inode;
	bool missing;        /* nothing is at the place now, and no agent can make anything there */
	bool found;          /* before the jail was made something was hidden: */
	dev_t before_device; /* this */
	ino_t before_inode;
} Place;

typedef struct Name {
	int wd;
	const char *text; /* in a destination of the plan */
	size_t length;
} Name;

/* What is no mask, and is watched along with them: an instance of inotify is dear (128 for each user). */
typedef struct Beside {
	int wd;
	char *name; /* NULL: the watched thing itself */
} Beside;

#define BESIDE_MAX 32u

struct MaskWatch {
	const Plan *plan;
	Beside beside[BESIDE_MAX];
	size_t n_beside;
	MaskWatchBeside beside_changed;
	MaskWatchGone gone;
	void *userdata;
	sd_event *event;
	Place *places;
	Name *names;
	size_t n_places, n_names;
	int inotify_fd, mounts_fd, root_fd;
	bool known; /* device and inode are those of the start */
	bool stopped;
	pid_t leader;
	int space_fd; /* the jail's mount namespace */
	sd_event_source *inotify_source, *mounts_source;
};

/* The bind that would show what entry hides. Return: NULL when it hides nothing of the host's. */
static const Entry *shown_by(const Plan *plan, const Entry *entry)
{
	switch (entry->kind) {
	case ENTRY_TMPFS:
	case ENTRY_DEV:
	case ENTRY_PROC:
		return plan_under(plan, entry);
	case ENTRY_BIND:
	case ENTRY_FILE:
		return entry->pin || (entry->mode == ENTRY_MASKED && !entry->covers_listener)
			       ? plan_under(plan, entry)
			       : NULL;
	default:
		return NULL;
	}
}

/* What follows the destination of under in that of entry, without a slash before it. */
static const char *below(const Entry *under, const char *destination)
{
	size_t n = strlen(under->destination);

	return destination + (n == 1 ? 1 : n + 1);
}

/* Return: 0 or a negative errno of inotify_add_watch(2). */
static int watch_name(MaskWatch *watch, const Entry *under, const char *relative, const char *name,
		      size_t length)
{
	_cleanup_free_ char *path = NULL;
	int wd;

	/* By the descriptor: the very directory that the jail has, wherever it is now. */
	if (asprintf(&path, "/proc/self/fd/%d/./%.*s", under->source_fd, (int)(name - relative), relative) <
	    0) {
		path = NULL;
		return -ENOMEM;
	}
	wd = inotify_add_watch(watch->inotify_fd, path, WATCHED | WATCH_FLAGS);
	if (wd < 0)
		return -errno;
	for (size_t i = 0; i < watch->n_names; i++)
		if (watch->names[i].wd == wd && watch->names[i].length == length &&
		    memcmp(watch->names[i].text, name, length) == 0)
			return 0;

	Name *grown = reallocarray(watch->names, watch->n_names + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	watch->names = grown;
	grown[watch->n_names++] = (Name){ .wd = wd, .text = name, .length = length };
	return 0;
}

/* Its own name, and that of every directory on the way to it from the bind's root, as far as there are any. */
static int watch_way(MaskWatch *watch, const Place *place)
{
	const char *relative = below(place->under, place->entry->destination);
	int r = 0;

	for (const char *name = relative; r == 0;) {
		size_t length = strcspn(name, "/");

		r = watch_name(watch, place->under, relative, name, length);
		if (name[length] == 0)
			break;
		name += length + 1;
	}
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

static int watch_place(MaskWatch *watch, const Place *place)
{
	int r = watch_way(watch, place);

	/* Whoever may not list a directory does not see what others do in it. The mounts tell some of it. */
	return r == -EACCES ? 0 : r;
}

static int add_place(MaskWatch *watch, const Entry *entry, const Entry *under)
{
	Place *grown = reallocarray(watch->places, watch->n_places + 1, sizeof(*grown)), *place;
	struct stat st;

	if (!grown)
		return -ENOMEM;
	watch->places = grown;
	place = &grown[watch->n_places++];
	*place = (Place){ .entry = entry, .under = under };
	if (fstatat(under->source_fd, below(under, entry->destination), &st, AT_SYMLINK_NOFOLLOW) == 0) {
		place->found = true;
		place->before_device = st.st_dev;
		place->before_inode = st.st_ino;
	}
	return 0;
}

/* Is the directory that stays in place what its name leads to? Outside too: another one may have been put
 * there before bwrap mounted this one over it. */
static bool is_pinned(const Place *place, const struct stat *inside)
{
	struct stat pinned, outside;

	return fstat(place->entry->source_fd, &pinned) == 0 &&
	       fstatat(place->under->source_fd, below(place->under, place->entry->destination), &outside,
		       AT_SYMLINK_NOFOLLOW) == 0 &&
	       pinned.st_dev == inside->st_dev && pinned.st_ino == inside->st_ino &&
	       pinned.st_dev == outside.st_dev && pinned.st_ino == outside.st_ino;
}

/* What the jail shows at the place. Return: 0 or a negative errno. */
static int look_inside(const MaskWatch *watch, const Place *place, struct stat *ret)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
	_cleanup_close_ int fd =
		(int)syscall(SYS_openat2, watch->root_fd, place->entry->destination, &how, sizeof(how));

	return fd < 0 || fstat(fd, ret) < 0 ? -errno : 0;
}

static int look_outside(const Place *place, struct stat *ret)
{
	return fstatat(place->under->source_fd, below(place->under, place->entry->destination), ret,
		       AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

static bool is_hidden(const MaskWatch *watch, const Place *place, struct stat *ret)
{
	const Entry *entry = place->entry;
	struct stat outside;
	bool hidden;

	if (look_inside(watch, place, ret) < 0)
		return false;
	if (entry->pin)
		return is_pinned(place, ret);
	if (watch->known && !place->missing)
		hidden = ret->st_dev == place->device && ret->st_ino == place->inode;
	else
		/* Not another one than was there when the jail was begun: anchors.h holds that one. */
		hidden = look_outside(place, &outside) == 0 &&
			 (ret->st_dev != outside.st_dev || ret->st_ino != outside.st_ino) &&
			 (!place->found ||
			  (place->before_device == outside.st_dev && place->before_inode == outside.st_ino));
	/* The same of what keeps a name free: a mask over something else would hide that from the agent
	 * alone. */
	return hidden && (!entry->placeholder ||
			  placeholder_file_stands(place->under->source_fd,
						  below(place->under, entry->destination), getuid()));
}

/*
 * Whoever owns what is hidden replaced it: put the mask on again. Only where nothing but the mask has to hold: what an
 * agent could write it could replace from a mount namespace of its own (anchors.h), which root's agents cannot make.
 * Return: is the place hidden, or nothing there?
 */
static bool renew(MaskWatch *watch, Place *place, struct stat *ret)
{
	const Entry *entry = place->entry;
	bool read_only = place->under->mode == ENTRY_RO;
	struct stat outside;
	int r;

	if (watch->inotify_fd < 0 || entry->pin || entry->placeholder || entry->mode != ENTRY_MASKED ||
	    (!read_only && getuid() != 0))
		return false;
	/* Its owner may replace it again meanwhile, but not for ever. */
	for (unsigned i = 0; i < RENEWALS_MAX; i++) {
		/* First: what is replaced from now on is told. Directories on the way may be others than before. */
		if (watch_way(watch, place) < 0)
			return false;
		r = look_outside(place, &outside) ?: mask_renew(watch->leader, watch->space_fd, entry);
		place->missing = r == -ENOENT || r == -ENOTDIR;
		if (place->missing || r < 0)
			return place->missing && read_only;
		if (look_inside(watch, place, ret) == 0 && look_outside(place, &outside) == 0 &&
		    (ret->st_dev != outside.st_dev || ret->st_ino != outside.st_ino))
			return true;
	}
	return false;
}

/* renews: a mask may be put on again. Return: what does not lie in its place, or NULL. */
static const Entry *mask_watch_look(MaskWatch *watch, bool renews)
{
	if (watch->root_fd < 0)
		return NULL;
	for (size_t i = 0; i < watch->n_places; i++) {
		Place *place = &watch->places[i];
		struct stat inside = { 0 };

		if (!is_hidden(watch, place, &inside) && !(renews && renew(watch, place, &inside)))
			return place->entry;
		place->device = inside.st_dev;
		place->inode = inside.st_ino;
	}
	watch->known = true;
	return NULL;
}

static void mask_watch_check(MaskWatch *watch)
{
	const Entry *entry = mask_watch_look(watch, true);

	if (entry)
		watch->gone(watch->userdata, entry);
}

static bool concerns(const MaskWatch *watch, const struct inotify_event *event)
{
	if (event->mask & WATCH_LOST)
		return true;
	for (size_t i = 0; event->len > 0 && i < watch->n_names; i++)
		if (watch->names[i].wd == event->wd &&
		    strnlen(event->name, event->len) == watch->names[i].length &&
		    memcmp(event->name, watch->names[i].text, watch->names[i].length) == 0)
			return true;
	return false;
}

static bool concerns_beside(const MaskWatch *watch, const struct inotify_event *event)
{
	for (size_t i = 0; i < watch->n_beside; i++)
		if (watch->beside[i].wd == event->wd &&
		    (!watch->beside[i].name || event->len == 0 || streq(watch->beside[i].name, event->name)))
			return true;
	return false;
}

static void add_beside(MaskWatch *watch, const char *path, const char *name, uint32_t mask)
{
	_cleanup_free_ char *copy = name ? strdup(name) : NULL;
	int wd;

	if (watch->inotify_fd < 0 || watch->n_beside == BESIDE_MAX || (name && !copy))
		return;
	/* Where a mask is watched in the same directory, that goes on. */
	wd = inotify_add_watch(watch->inotify_fd, path, mask | IN_MASK_ADD);
	if (wd < 0)
		return;
	for (size_t i = 0; i < watch->n_beside; i++)
		if (watch->beside[i].wd == wd && (name != NULL) == (watch->beside[i].name != NULL) &&
		    (!name || streq(watch->beside[i].name, name)))
			return;
	watch->beside[watch->n_beside++] = (Beside){ .wd = wd, .name = TAKE_PTR(copy) };
}

void mask_watch_beside(MaskWatch *watch, const char *path, MaskWatchBeside changed)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = NULL;

	if (!slash || slash[1] == 0)
		return;
	directory = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!directory)
		return;
	watch->beside_changed = changed;
	add_beside(watch, directory, slash + 1, WATCHED | IN_CLOSE_WRITE | IN_ONLYDIR);
	/* A file that is mounted there has its name in another directory. */
	add_beside(watch, path, NULL, IN_CLOSE_WRITE | IN_MODIFY | IN_DONT_FOLLOW);
}

static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	MaskWatch *watch = userdata;
	bool look = false, beside = false;
	ssize_t n;

	n = read(fd, events, sizeof(events));
	for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
		const struct inotify_event *event = (const void *)(events + at);

		look = look || concerns(watch, event);
		beside = beside || concerns_beside(watch, event);
		at += (ssize_t)sizeof(*event) + (ssize_t)event->len;
	}
	if (beside)
		watch->beside_changed(watch->userdata);
	/* The last thing: it may be the end. */
	if (look)
		mask_watch_check(watch);
	return 0;
}

/* proc(5): the file of mounts has an exceptional condition after a change, until it is polled again. */
static int on_mounts(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	mask_watch_check(userdata);
	return 0;
}

static int warn(char ***warnings, int error)
{
	return strings_appendf(warnings,
			       "not everything is noticed that replaces, from outside, what is hidden from "
			       "the agent: %s; raise %s",
			       strerror(-error),
			       error == -ENOSPC ? "fs.inotify.max_user_watches"
						: "fs.inotify.max_user_instances");
}

int mask_watch_new(sd_event *event, const Plan *plan, MaskWatchGone gone, void *userdata, char ***warnings,
		   MaskWatch **ret)
{
	_cleanup_(mask_watch_freep) MaskWatch *watch = malloc(sizeof(*watch));
	int r = 0;

	if (!watch)
		return -ENOMEM;
	*watch = (MaskWatch){ .plan = plan,
			      .gone = gone,
			      .userdata = userdata,
			      .event = sd_event_ref(event),
			      .inotify_fd = FD_NONE,
			      .mounts_fd = FD_NONE,
			      .root_fd = FD_NONE,
			      .space_fd = FD_NONE };
	for (size_t i = 0; r == 0 && i < plan->n_entries; i++) {
		const Entry *under = shown_by(plan, &plan->entries[i]);

		if (under)
			r = add_place(watch, &plan->entries[i], under);
	}
	if (r < 0)
		return r;

	watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->inotify_fd < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < watch->n_places; i++)
		r = watch_place(watch, &watch->places[i]);
	/* A limit is no reason not to work: a change of the mounts is noticed in any case. */
	if (r < 0)
		r = r == -ENOMEM ? r : warn(warnings, r);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(watch);
	return 0;
}

void mask_watch_stop(MaskWatch *watch)
{
	if (!watch)
		return;
	watch->inotify_source = sd_event_source_disable_unref(watch->inotify_source);
	watch->mounts_source = sd_event_source_disable_unref(watch->mounts_source);
	watch->stopped = true;
}

MaskWatch *mask_watch_free(MaskWatch *watch)
{
	if (!watch)
		return NULL;
	(void)sd_event_source_disable_unref(watch->inotify_source);
	(void)sd_event_source_disable_unref(watch->mounts_source);
	close_fdp(&watch->inotify_fd);
	close_fdp(&watch->mounts_fd);
	close_fdp(&watch->root_fd);
	close_fdp(&watch->space_fd);
	(void)sd_event_unref(watch->event);
	for (size_t i = 0; i < watch->n_beside; i++)
		free(watch->beside[i].name);
	free(watch->places);
	free(watch->names);
	free(watch);
	return NULL;
}

/*
 * A process that ends has no root any more, and newer kernels refuse to look for it. proc(5): the ninth field
 * of stat is the flags; include/linux/sched.h of the kernel: PF_EXITING is 4.
 */
static bool is_ending(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	const char *name_end;
	size_t size = 0;
	unsigned flags;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || getdelim(&text, &size, 0, f) <= 0)
		return true;
	name_end = strrchr(text, ')');
	return name_end && sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & PF_EXITING;
}

int mask_watch_enter(MaskWatch *watch, pid_t leader)
{
	_cleanup_close_ int mounts_fd = FD_NONE, root_fd = FD_NONE, space_fd = jail_mounts_open(leader);
	char path[64];
	int r;

	if (space_fd < 0)
		return is_ending(leader) ? -ESRCH : space_fd;
	/*
	 * Both are held for as long as is watched: the file of mounts keeps the namespace together, so that
	 * an agent that ends is not taken for one whose masks went.
	 */
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)leader);
	mounts_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (mounts_fd < 0) {
		r = -errno;
		return is_ending(leader) ? -ESRCH : r;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)leader);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) {
		r = -errno;
		return is_ending(leader) ? -ESRCH : r;
	}
	watch->mounts_fd = TAKE_FD(mounts_fd);
	watch->root_fd = TAKE_FD(root_fd);
	watch->leader = leader;
	watch->space_fd = TAKE_FD(space_fd);
	return 0;
}

const Entry *mask_watch_first(MaskWatch *watch)
{
	if (watch->root_fd < 0 || watch->stopped)
		return NULL;
	return start_misplaced(watch->plan, watch->root_fd) ?: mask_watch_look(watch, false);
}

int mask_watch_start(MaskWatch *watch)
{
	int r = 0;

	if (watch->root_fd < 0 || watch->stopped)
		return 0;
	/* Before everything else that waits: the agent may be looking. */
	if (watch->inotify_fd >= 0)
		r = sd_event_add_io(watch->event, &watch->inotify_source, watch->inotify_fd, EPOLLIN,
				    on_inotify, watch);
	if (r >= 0 && watch->inotify_source)
		r = sd_event_source_set_priority(watch->inotify_source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_add_io(watch->event, &watch->mounts_source, watch->mounts_fd, EPOLLPRI,
				    on_mounts, watch);
	if (r >= 0)
		r = sd_event_source_set_priority(watch->mounts_source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;
	mask_watch_check(watch);
	return 0;
}
