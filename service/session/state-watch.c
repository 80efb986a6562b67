/* SPDX-License-Identifier: MIT */
#include "service/session/state-watch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/link/pack.h"
#include "service/session/program.h"
#include "service/session/state-child.h"

#define WATCHED (IN_CLOSE_WRITE | IN_MOVED_TO)
#define WATCH_FLAGS (IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
#define EVENTS_BYTES 16384u
#define READS_MAX 64u
#define INTERVAL_USEC (250 * USEC_PER_MSEC)
#define REST_FACTOR 20u
#define REST_MAX_USEC (60 * USEC_PER_SEC)

typedef enum Stage {
	STAGE_BEGINNING,
	STAGE_RUNNING,
	STAGE_FINISHING,
} Stage;

struct StateWatch {
	sd_event *event;
	StateFiles files;
	StateWatchDone done;
	void *userdata;
	Stage stage;
	int inotify_fd, home_fd; /* home_fd: as the jail has it */
	StateChild *child;
	bool awaited;         /* done is to be called */
	bool again;           /* something has happened since the child started */
	uint64_t ready_usec;  /* CLOCK_MONOTONIC; no child starts before */
	uint64_t finish_usec; /* STAGE_FINISHING ends then, whatever is undone */
	char **warnings;
	sd_event_source *inotify_source, *timer;
};

static uint64_t now(const StateWatch *watch)
{
	uint64_t usec = 0;

	(void)sd_event_now(watch->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static void on_child_ended(void *userdata, int result, char **warnings, uint64_t took_usec);

static int child_start(StateWatch *watch)
{
	const StateChildOptions options = { .files = &watch->files,
					    .home_fd = watch->home_fd,
					    .launch = watch->stage == STAGE_BEGINNING };

	watch->again = false;
	return state_child_start(watch->event, &options, on_child_ended, watch, &watch->child);
}

static void settle(StateWatch *watch)
{
	if (!watch->awaited)
		return;
	watch->awaited = false;
	watch->done(watch->userdata);
}

static void arm(StateWatch *watch, uint64_t usec)
{
	(void)sd_event_source_set_time(watch->timer, usec);
	(void)sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
}

/* Start a child now, or when it is time. */
static void want(StateWatch *watch)
{
	watch->again = true;
	if (watch->child)
		return;
	if (watch->ready_usec > now(watch)) {
		arm(watch, watch->ready_usec);
		return;
	}
	if (child_start(watch) < 0) {
		/* No process now: later there may be one. */
		watch->ready_usec = now(watch) + INTERVAL_USEC;
		watch->again = true;
		arm(watch, watch->ready_usec);
	}
}

static void on_child_ended(void *userdata, int result, char **warnings, uint64_t took_usec)
{
	StateWatch *watch = userdata;
	bool late;

	watch->child = state_child_free(watch->child);
	watch->warnings = strings_free(watch->warnings);
	watch->warnings = warnings;
	if (result < 0 && result != -EAGAIN && !warnings)
		(void)strings_appendf(&watch->warnings,
				      "%s/%s and what agents save are not brought together: %s",
				      watch->files.home, watch->files.name, strerror(-result));
	watch->ready_usec =
		now(watch) + MAX_OF(INTERVAL_USEC, MIN_OF(REST_FACTOR * took_usec, REST_MAX_USEC));
	if (watch->inotify_source)
		(void)sd_event_source_set_enabled(watch->inotify_source, SD_EVENT_ON);
	late = watch->stage == STAGE_FINISHING && now(watch) >= watch->finish_usec;
	if (watch->stage == STAGE_FINISHING && result == -EAGAIN && !late) {
		/* Somebody else is at the file, which takes a moment. */
		watch->ready_usec = now(watch) + INTERVAL_USEC / 10;
		want(watch);
		return;
	}
	if (watch->stage == STAGE_RUNNING && (result == -EAGAIN || watch->again))
		want(watch);
	else if (watch->stage == STAGE_BEGINNING && result == -EAGAIN)
		watch->again = true;
	settle(watch);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	StateWatch *watch = userdata;

	if (watch->stage == STAGE_FINISHING && now(watch) >= watch->finish_usec) {
		watch->child = state_child_free(watch->child);
		settle(watch);
		return 0;
	}
	if (watch->inotify_source)
		(void)sd_event_source_set_enabled(watch->inotify_source, SD_EVENT_ON);
	if (watch->again && !watch->child)
		want(watch);
	return 0;
}

/* A file in the place of the link? */
static bool link_is_gone(const StateWatch *watch)
{
	struct stat st;

	return watch->home_fd >= 0 &&
	       fstatat(watch->home_fd, watch->files.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !S_ISLNK(st.st_mode);
}

static bool concerns(const StateWatch *watch, const struct inotify_event *event)
{
	size_t length = strlen(watch->files.name);

	return event->mask & IN_Q_OVERFLOW || (event->len > 0 && strnlen(event->name, event->len) == length &&
					       memcmp(event->name, watch->files.name, length) == 0);
}

/* Nothing is listened to until it is time again; the kernel bounds what gathers (max_queued_events). */
static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	StateWatch *watch = userdata;
	bool concerned = false;
	ssize_t n;

	for (unsigned i = 0; i < READS_MAX && (n = read(fd, events, sizeof(events))) > 0; i++)
		for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
			const struct inotify_event *event = (const void *)(events + at);

			concerned = concerned || concerns(watch, event);
			at += (ssize_t)sizeof(*event) + (ssize_t)event->len;
		}
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (watch->child)
		watch->again = watch->again || concerned;
	else if (concerned && (link_is_gone(watch) || !state_files_unchanged(&watch->files)))
		want(watch);
	else
		arm(watch, MAX_OF(watch->ready_usec, now(watch) + INTERVAL_USEC));
	return 0;
}

/* ---- what is watched ---- */

static int watch_directory(const StateWatch *watch, int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	return inotify_add_watch(watch->inotify_fd, path, WATCHED | WATCH_FLAGS) < 0 ? -errno : 0;
}

/* From its root, as the jail sees it. Return: a descriptor or a negative errno. */
static int open_inside(pid_t leader, const char *home)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve =
					      RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int root_fd = FD_NONE;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)leader);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, home, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int watch_both(StateWatch *watch)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	int r = state_places_open(&watch->files, false, &places, NULL);

	if (r < 0)
		return r;
	watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->inotify_fd < 0)
		return -errno;
	r = watch_directory(watch, places.agent_fd);
	if (r == 0 && watch->home_fd >= 0)
		r = watch_directory(watch, watch->home_fd);
	if (r == 0)
		r = sd_event_add_io(watch->event, &watch->inotify_source, watch->inotify_fd, EPOLLIN,
				    on_inotify, watch);
	return r;
}

void state_watch_enter(StateWatch *watch, pid_t leader)
{
	_cleanup_(plan_node_done) PlanNode home = PLAN_NODE_INIT;

	watch->stage = STAGE_RUNNING;
	/* The link lies in the home by its canonical path. */
	if (watch->files.view.resolve(watch->files.view.userdata, watch->files.home, &home) == 0)
		watch->home_fd = open_inside(leader, home.path);
	/* Where nothing can be watched (the user's limits of inotify), the end is early enough. */
	(void)watch_both(watch);
	/* What an agent has saved before this made no event. */
	if (watch->again || link_is_gone(watch) || !state_files_unchanged(&watch->files))
		want(watch);
}

/* ---- begin, end ---- */

int state_watch_begin(StateWatch *watch)
{
	if (state_files_unchanged(&watch->files))
		return 0;
	watch->awaited = child_start(watch) == 0;
	return watch->awaited ? 1 : 0;
}

int state_watch_finish(StateWatch *watch)
{
	bool left =
		watch->child || watch->again || link_is_gone(watch) || !state_files_unchanged(&watch->files);

	watch->inotify_source = sd_event_source_disable_unref(watch->inotify_source);
	watch->stage = STAGE_FINISHING;
	watch->finish_usec = now(watch) + STATE_CHILD_USEC;
	if (!left)
		return 0;
	watch->awaited = true;
	watch->ready_usec = 0;
	/* A child that runs began before the end, and perhaps before the last change. */
	watch->child = state_child_free(watch->child);
	want(watch);
	return 1;
}

char *const *state_watch_warnings(const StateWatch *watch)
{
	return watch ? watch->warnings : NULL;
}

int state_watch_new(sd_event *event, const StateFiles *files, StateWatchDone done, void *userdata,
		    StateWatch **ret)
{
	_cleanup_(state_watch_freep) StateWatch *watch = malloc(sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	*watch = (StateWatch){ .event = sd_event_ref(event),
			       .files = *files,
			       .done = done,
			       .userdata = userdata,
			       .inotify_fd = FD_NONE,
			       .home_fd = FD_NONE };
	r = sd_event_add_time(event, &watch->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, watch);
	if (r >= 0)
		r = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(watch);
	return 0;
}

StateWatch *state_watch_free(StateWatch *watch)
{
	if (!watch)
		return NULL;
	(void)sd_event_source_disable_unref(watch->inotify_source);
	(void)sd_event_source_disable_unref(watch->timer);
	(void)state_child_free(watch->child);
	close_fdp(&watch->inotify_fd);
	close_fdp(&watch->home_fd);
	(void)strings_free(watch->warnings);
	(void)sd_event_unref(watch->event);
	free(watch);
	return NULL;
}
