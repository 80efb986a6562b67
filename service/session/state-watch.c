/* SPDX-License-Identifier: MIT */
#include "service/session/state-watch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include "service/link/pack.h"
#include "service/session/state-child.h"
#include "service/session/state-mirror.h"

/* Whatever they say, a look is due. */
#define WATCH_LOST (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)
#define EVENTS_MAX 64u /* of other files, before nothing is listened to for an interval */
#define INTERVAL_USEC (250 * USEC_PER_MSEC)
#define RELEASE_USEC (50 * USEC_PER_MSEC)
#define REST_FACTOR 20u
#define REST_MAX_USEC (60 * USEC_PER_SEC)

typedef enum Stage {
	STAGE_BEGINNING,
	STAGE_RUNNING,
	STAGE_FINISHING,
} Stage;

/* A directory that is watched. */
typedef struct Watched {
	dev_t device;
	ino_t inode;
	sd_event_source *source;
} Watched;

struct StateWatch {
	sd_event *event;
	StateFiles files;
	StateWatchDone done;
	void *userdata;
	Stage stage;
	int home_fd; /* as the jail has it */
	StateChild *child;
	StateMirror *mirror;
	bool awaited;                    /* done is to be called */
	bool again;                      /* something has happened since the child started */
	bool missing;                    /* a file, for an interval already */
	bool let_go;                     /* a lock was let go since the child started */
	bool releases;                   /* or before that */
	uint64_t ready_usec;             /* CLOCK_MONOTONIC; no child starts before */
	uint64_t begun_usec;             /* the last one started */
	uint64_t finish_usec;            /* STAGE_FINISHING ends then, whatever is undone */
	uint64_t begun_digest, given_up; /* of the files: when the child started; when it could do nothing */
	char **warnings;
	Watched *watched;
	size_t n_watched;
	char **names; /* in those directories, that matter */
	unsigned n_events;
	sd_event_source *timer;
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
					    .sync = { .launch = watch->stage == STAGE_BEGINNING,
						      .deletions = watch->stage != STAGE_RUNNING ||
								   watch->missing } };

	watch->missing = false;

	watch->again = false;
	watch->releases = watch->releases || watch->let_go;
	watch->let_go = false;
	watch->begun_usec = now(watch);
	watch->begun_digest = state_files_digest(&watch->files);
	return state_child_start(watch->event, &options, on_child_ended, watch, &watch->child);
}

static void settle(StateWatch *watch)
{
	if (!watch->awaited)
		return;
	watch->awaited = false;
	if (watch->stage == STAGE_FINISHING)
		watch->mirror = state_mirror_free(watch->mirror);
	watch->done(watch->userdata);
}

static void arm(StateWatch *watch, uint64_t usec)
{
	(void)sd_event_source_set_time(watch->timer, usec);
	(void)sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
}

/* Start a child now, or when it is time. Whoever waits for a lock waits for its files. */
static void want(StateWatch *watch)
{
	uint64_t ready_usec = watch->let_go ? MIN_OF(watch->ready_usec, watch->begun_usec + RELEASE_USEC)
					    : watch->ready_usec;

	watch->again = true;
	if (watch->child)
		return;
	if (ready_usec > now(watch)) {
		arm(watch, ready_usec);
		return;
	}
	if (child_start(watch) < 0) {
		/* No process now: later there may be one. */
		watch->ready_usec = now(watch) + INTERVAL_USEC;
		watch->again = true;
		arm(watch, watch->ready_usec);
	}
}

static void release(StateWatch *watch)
{
	watch->releases = false;
	state_mirror_release(watch->mirror);
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
				      "the account files in %s/%s and what agents save are not brought "
				      "together: %s",
				      watch->files.home, watch->files.state, strerror(-result));
	watch->ready_usec =
		now(watch) + MAX_OF(INTERVAL_USEC, MIN_OF(REST_FACTOR * took_usec, REST_MAX_USEC));
	if (watch->releases)
		release(watch);
	/* What cannot be brought together is tried again when it changes, and at the end. */
	if (result != -EAGAIN && state_files_digest(&watch->files) == watch->begun_digest) {
		watch->given_up = result > 0 ? 0 : watch->begun_digest;
		watch->missing = result > 0;
	}
	late = watch->stage == STAGE_FINISHING && now(watch) >= watch->finish_usec;
	if (watch->stage == STAGE_FINISHING && result == -EAGAIN && !late) {
		/* Somebody else is at the file, which takes a moment. */
		watch->ready_usec = now(watch) + INTERVAL_USEC / 10;
		want(watch);
		return;
	}
	if (watch->stage == STAGE_RUNNING && result == -EAGAIN) {
		watch->ready_usec = now(watch) + MAX_OF(INTERVAL_USEC / 10, REST_FACTOR * took_usec);
		want(watch);
	} else if (watch->stage == STAGE_RUNNING && (watch->again || watch->let_go))
		want(watch);
	else if (watch->stage == STAGE_RUNNING)
		arm(watch, watch->ready_usec);
	else if (watch->stage == STAGE_BEGINNING && result == -EAGAIN)
		watch->again = true;
	settle(watch);
}

static bool is_settled(const StateWatch *watch);
static void watch_again(StateWatch *watch);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	StateWatch *watch = userdata;

	if (watch->stage == STAGE_FINISHING && now(watch) >= watch->finish_usec) {
		watch->child = state_child_free(watch->child);
		settle(watch);
		return 0;
	}
	if (watch->stage == STAGE_RUNNING && !watch->child) {
		/* First the watch, then the look: what comes between is in neither or both. */
		watch_again(watch);
		watch->again = watch->again || !is_settled(watch);
	}
	if (watch->again && !watch->child)
		want(watch);
	return 0;
}

/* A file in the place of the link? */
static bool link_is_gone(const StateWatch *watch)
{
	struct stat st;

	return watch->home_fd >= 0 && watch->files.link &&
	       fstatat(watch->home_fd, watch->files.link, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !S_ISLNK(st.st_mode);
}

static bool is_settled(const StateWatch *watch)
{
	return !link_is_gone(watch) &&
	       (state_files_unchanged(&watch->files) || state_files_digest(&watch->files) == watch->given_up);
}

static void watch_nothing(StateWatch *watch)
{
	for (size_t i = 0; i < watch->n_watched; i++)
		(void)sd_event_source_disable_unref(watch->watched[i].source);
	freep(&watch->watched);
	watch->n_watched = 0;
	watch->names = strings_free(watch->names);
}

static void on_let_go(void *userdata)
{
	StateWatch *watch = userdata;

	if (!watch->child && is_settled(watch)) {
		release(watch);
		return;
	}
	watch->let_go = true;
	want(watch);
}

static bool concerns(const StateWatch *watch, const struct inotify_event *event)
{
	if (event->mask & WATCH_LOST)
		return true;
	for (size_t i = 0; event->len > 0 && watch->names && watch->names[i]; i++)
		if (streq(watch->names[i], event->name))
			return true;
	return false;
}

/* Nothing is listened to until it is time again. */
static void pause_watch(StateWatch *watch)
{
	watch_nothing(watch);
	arm(watch, MAX_OF(watch->ready_usec, now(watch) + INTERVAL_USEC));
}

/* An agent makes as many events as it likes. */
static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	StateWatch *watch = userdata;

	/* That is for who watches locks. */
	if (event->mask & IN_ATTRIB)
		return 0;
	if (++watch->n_events > EVENTS_MAX)
		pause_watch(watch);
	else if (!concerns(watch, event))
		return 0;
	else if (event->mask & IN_CREATE && !(event->mask & IN_ISDIR))
		/* What is made is written next, and closed; unless it is a link. */
		arm(watch, MAX_OF(watch->ready_usec, now(watch) + INTERVAL_USEC));
	else if (!is_settled(watch)) {
		watch_nothing(watch);
		want(watch);
	} else if (event->mask & (WATCH_LOST | IN_ISDIR))
		pause_watch(watch);
	return 0;
}

/* ---- what is watched ---- */

static void watch_directory(StateWatch *watch, int fd)
{
	Watched *grown, *added;
	char path[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	for (size_t i = 0; i < watch->n_watched; i++)
		if (watch->watched[i].device == st.st_dev && watch->watched[i].inode == st.st_ino)
			return;
	grown = reallocarray(watch->watched, watch->n_watched + 1, sizeof(*grown));
	if (!grown)
		return;
	watch->watched = grown;
	added = &grown[watch->n_watched];
	*added = (Watched){ .device = st.st_dev, .inode = st.st_ino };
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	/* Where nothing can be watched (the user's limits of inotify), the end is early enough. */
	if (sd_event_add_inotify(watch->event, &added->source, path, STATE_WATCHED, on_inotify, watch) >= 0)
		watch->n_watched++;
}

static void add_name(StateWatch *watch, const char *name, size_t length)
{
	_cleanup_free_ char *copy = strndup(name, length);

	for (size_t i = 0; copy && watch->names && watch->names[i]; i++)
		if (streq(watch->names[i], copy))
			return;
	if (copy)
		(void)strings_append(&watch->names, copy);
}

/* The last name of a path, and every one on the way, which may have to come first. */
static void add_names(StateWatch *watch, const char *path)
{
	for (; *path; path += *path == '/') {
		size_t length = strcspn(path, "/");

		add_name(watch, path, length);
		path += length;
	}
}

static void watch_file(StateWatch *watch, const StateName *name)
{
	_cleanup_(state_places_done) StatePlaces places = STATE_PLACES_INIT;
	_cleanup_(plan_node_done) PlanNode home = PLAN_NODE_INIT;

	add_names(watch, name->agent);
	add_names(watch, name->host);
	if (state_places_open(&watch->files, name, false, &places, NULL) < 0)
		return;
	add_name(watch, places.host_name, strlen(places.host_name));
	watch_directory(watch, places.root_fd);
	watch_directory(watch, places.agent_fd);
	watch_directory(watch, places.lock_fd);
	watch_directory(watch, places.host_fd);
	if (places.host_fd < 0 &&
	    watch->files.view.resolve(watch->files.view.userdata, watch->files.home, &home) == 0)
		watch_directory(watch, home.fd);
}

static void watch_again(StateWatch *watch)
{
	watch_nothing(watch);
	watch->n_events = 0;
	for (size_t i = 0; i < watch->files.n_names; i++)
		watch_file(watch, &watch->files.names[i]);
	watch_directory(watch, watch->home_fd);
	state_mirror_watch(watch->mirror);
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

int state_watch_enter(StateWatch *watch, pid_t leader)
{
	_cleanup_(plan_node_done) PlanNode home = PLAN_NODE_INIT;
	int r;

	watch->stage = STAGE_RUNNING;
	close_fdp(&watch->home_fd);
	/* The link lies in the home by its canonical path. */
	r = watch->files.view.resolve(watch->files.view.userdata, watch->files.home, &home);
	if (r == 0)
		r = open_inside(leader, home.path);
	if (r >= 0)
		watch->home_fd = r;
	watch_again(watch);
	/* What was changed before this made no event. */
	if (watch->again || !is_settled(watch))
		want(watch);
	return watch->home_fd < 0 && watch->files.link ? r : 0;
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

	watch_nothing(watch);
	state_mirror_stop(watch->mirror);
	watch->stage = STAGE_FINISHING;
	watch->finish_usec = now(watch) + STATE_CHILD_USEC;
	if (!left) {
		watch->mirror = state_mirror_free(watch->mirror);
		return 0;
	}
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

int state_watch_new(sd_event *event, StateFiles *files, StateWatchDone done, void *userdata, StateWatch **ret)
{
	_cleanup_(state_watch_freep) StateWatch *watch = malloc(sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	*watch = (StateWatch){ .event = sd_event_ref(event),
			       .files = *files,
			       .done = done,
			       .userdata = userdata,
			       .home_fd = FD_NONE };
	*files = (StateFiles){ .lock_fd = FD_NONE };
	r = sd_event_add_time(event, &watch->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, watch);
	if (r >= 0)
		r = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = state_mirror_new(event, &watch->files, on_let_go, watch, &watch->mirror);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(watch);
	return 0;
}

StateWatch *state_watch_free(StateWatch *watch)
{
	if (!watch)
		return NULL;
	watch_nothing(watch);
	(void)sd_event_source_disable_unref(watch->timer);
	(void)state_child_free(watch->child);
	(void)state_mirror_free(watch->mirror);
	close_fdp(&watch->home_fd);
	(void)strings_free(watch->warnings);
	state_files_done(&watch->files);
	(void)sd_event_unref(watch->event);
	free(watch);
	return NULL;
}
