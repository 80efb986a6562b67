/* SPDX-License-Identifier: MIT */
#include "service/session/state-mirror.h"

#include <fcntl.h>
#include <sys/inotify.h>

#include "service/session/state-directory.h"
#include "service/session/state-lock.h"

/* An agent that makes more events than this in that time is looked at again after it. */
#define EVENTS_MAX 256u
#define EVENTS_USEC (250 * USEC_PER_MSEC)

typedef struct Side {
	int directory_fd;  /* FD_NONE: the directory is missing */
	const char *name;  /* in it */
	dev_t made_device; /* what we made there; made_inode 0: nothing */
	ino_t made_inode;
	sd_event_source *source;
} Side;

enum { INSIDE, OUTSIDE, SIDES };

typedef struct Lock {
	StateMirror *mirror;
	const StateLockName *name;
	Side sides[SIDES];
} Lock;

struct StateMirror {
	sd_event *event;
	const StateFiles *files;
	StateMirrorLetGo let_go;
	void *userdata;
	Lock *locks;
	size_t n_locks;
	unsigned n_events;
	uint64_t since_usec;
	sd_event_source *timer;
};

typedef struct Found {
	bool there, ours, stands_for,
		old; /* ours: this session made it; stands_for: some session of ours did */
	struct stat st;
} Found;

static Found side_look(Side *side)
{
	Found found = { 0 };

	found.there = side->directory_fd >= 0 &&
		      fstatat(side->directory_fd, side->name, &found.st, AT_SYMLINK_NOFOLLOW) == 0;
	found.ours =
		found.there && side->made_inode == found.st.st_ino && side->made_device == found.st.st_dev;
	found.stands_for = found.there && state_lock_has_mode(&found.st, STATE_MIRROR_MODE);
	found.old = found.there && state_lock_is_old(&found.st);
	if (!found.ours)
		side->made_inode = 0;
	return found;
}

static void side_make(Side *side)
{
	struct stat st;

	if (side->directory_fd < 0 || mkdirat(side->directory_fd, side->name, STATE_MIRROR_MODE) < 0 ||
	    fstatat(side->directory_fd, side->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !state_lock_has_mode(&st, STATE_MIRROR_MODE))
		return;
	side->made_device = st.st_dev;
	side->made_inode = st.st_ino;
}

static void side_remove(Side *side)
{
	(void)unlinkat(side->directory_fd, side->name, AT_REMOVEDIR);
	side->made_inode = 0;
}

/* Its maker still has it. */
static void side_refresh(const Side *side)
{
	(void)utimensat(side->directory_fd, side->name, NULL, AT_SYMLINK_NOFOLLOW);
}

static bool is_newer(const Found *a, const Found *b)
{
	return a->st.st_mtim.tv_sec > b->st.st_mtim.tv_sec || (a->st.st_mtim.tv_sec == b->st.st_mtim.tv_sec &&
							       a->st.st_mtim.tv_nsec > b->st.st_mtim.tv_nsec);
}

/*
 * An agent's is what no session made. Outside, what another session made stands for its agent's, and holds ours off
 * as well.
 */
static bool is_held(const Found *found, size_t side)
{
	return found->there && !found->ours && !found->old && (side == OUTSIDE || !found->stands_for);
}

/* Return: does something that was made stand for nothing any more? */
static bool lock_look(Lock *lock)
{
	bool let_go = false;
	Found found[SIDES];

	for (size_t side = 0; side < SIDES; side++)
		found[side] = side_look(&lock->sides[side]);
	for (size_t side = 0; side < SIDES; side++) {
		Side *other = &lock->sides[!side];
		const Found *there = &found[!side];

		if (is_held(&found[side], side)) {
			if (!there->there)
				side_make(other);
			else if (there->ours && is_newer(&found[side], there))
				side_refresh(other);
		} else if (there->ours) {
			let_go = true;
		}
	}
	/* Of sessions that were killed. */
	if (found[OUTSIDE].stands_for && !found[OUTSIDE].ours && found[OUTSIDE].old)
		side_remove(&lock->sides[OUTSIDE]);
	if (found[INSIDE].stands_for && !found[INSIDE].ours && !found[OUTSIDE].there)
		side_remove(&lock->sides[INSIDE]);
	return let_go;
}

static void mirror_look(StateMirror *mirror)
{
	bool let_go = false;

	for (size_t i = 0; i < mirror->n_locks; i++)
		let_go |= lock_look(&mirror->locks[i]);
	if (let_go)
		mirror->let_go(mirror->userdata);
}

void state_mirror_release(StateMirror *mirror)
{
	for (size_t i = 0; mirror && i < mirror->n_locks; i++) {
		Lock *lock = &mirror->locks[i];

		for (size_t side = 0; side < SIDES; side++) {
			Found found = side_look(&lock->sides[side]), made = side_look(&lock->sides[!side]);

			if (made.ours && !is_held(&found, side))
				side_remove(&lock->sides[!side]);
		}
	}
}

/* ---- events ---- */

static void mirror_unwatch(StateMirror *mirror)
{
	for (size_t i = 0; i < mirror->n_locks; i++)
		for (size_t side = 0; side < SIDES; side++)
			mirror->locks[i].sides[side].source =
				sd_event_source_disable_unref(mirror->locks[i].sides[side].source);
}

static bool is_storm(StateMirror *mirror)
{
	uint64_t now = 0;

	(void)sd_event_now(mirror->event, CLOCK_MONOTONIC, &now);
	if (now - mirror->since_usec > EVENTS_USEC) {
		mirror->since_usec = now;
		mirror->n_events = 0;
	}
	return ++mirror->n_events > EVENTS_MAX;
}

static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	Lock *lock = userdata;
	StateMirror *mirror = lock->mirror;

	/* Those are for who watches files. */
	if (event->mask & (IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF))
		return 0;
	if (is_storm(mirror)) {
		mirror_unwatch(mirror);
		(void)sd_event_source_set_time(mirror->timer, mirror->since_usec + EVENTS_USEC);
		(void)sd_event_source_set_enabled(mirror->timer, SD_EVENT_ONESHOT);
		return 0;
	}
	for (size_t side = 0; side < SIDES; side++)
		if (event->mask & (IN_Q_OVERFLOW | IN_IGNORED) ||
		    (event->len > 0 && streq(event->name, lock->sides[side].name))) {
			if (lock_look(lock))
				mirror->let_go(mirror->userdata);
			break;
		}
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	state_mirror_watch(userdata);
	return 0;
}

static void side_watch(Lock *lock, size_t number)
{
	Side *side = &lock->sides[number];
	char path[64];

	if (side->directory_fd < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", side->directory_fd);
	/* Where nothing can be watched (the user's limits of inotify), agents do without each other's locks. */
	(void)sd_event_add_inotify(lock->mirror->event, &side->source, path, STATE_WATCHED, on_inotify, lock);
}

static void sides_open(Lock *lock)
{
	const StateFiles *files = lock->mirror->files;
	_cleanup_(plan_node_done) PlanNode agent = PLAN_NODE_INIT, host = PLAN_NODE_INIT;
	_cleanup_free_ char *path = NULL;
	Side *sides = lock->sides;
	int fd;

	for (size_t side = 0; side < SIDES; side++)
		close_fdp(&sides[side].directory_fd);
	if (own_directory_open(&files->view, files->agent, files->uid, &agent) == 0) {
		fd = state_agent_directory(agent.fd, lock->name->agent);
		sides[INSIDE].directory_fd = fd < 0 ? FD_NONE : fd;
	}
	if (asprintf(&path, "%s/%.*s", files->home,
		     (int)(state_base_name(lock->name->host) - lock->name->host), lock->name->host) < 0) {
		path = NULL;
		return;
	}
	if (own_directory_open(&files->view, path, files->uid, &host) == 0) {
		fd = openat(host.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		sides[OUTSIDE].directory_fd = fd < 0 ? FD_NONE : fd;
	}
}

void state_mirror_watch(StateMirror *mirror)
{
	if (!mirror)
		return;
	mirror_unwatch(mirror);
	for (size_t i = 0; i < mirror->n_locks; i++) {
		sides_open(&mirror->locks[i]);
		for (size_t side = 0; side < SIDES; side++)
			side_watch(&mirror->locks[i], side);
	}
	mirror_look(mirror);
}

void state_mirror_stop(StateMirror *mirror)
{
	if (!mirror)
		return;
	mirror_unwatch(mirror);
	mirror->timer = sd_event_source_disable_unref(mirror->timer);
}

/* ---- begin, end ---- */

int state_mirror_new(sd_event *event, const StateFiles *files, StateMirrorLetGo let_go, void *userdata,
		     StateMirror **ret)
{
	_cleanup_(state_mirror_freep) StateMirror *mirror = malloc(sizeof(*mirror));
	int r;

	if (!mirror)
		return -ENOMEM;
	*mirror = (StateMirror){ .event = sd_event_ref(event),
				 .files = files,
				 .let_go = let_go,
				 .userdata = userdata,
				 .locks = calloc(files->n_locks + 1, sizeof(Lock)) };
	if (!mirror->locks)
		return -ENOMEM;
	for (size_t i = 0; i < files->n_locks; i++)
		mirror->locks[mirror->n_locks++] =
			(Lock){ .mirror = mirror,
				.name = &files->locks[i],
				.sides = { [INSIDE] = { .directory_fd = FD_NONE,
							.name = state_base_name(files->locks[i].agent) },
					   [OUTSIDE] = { .directory_fd = FD_NONE,
							 .name = state_base_name(files->locks[i].host) } } };
	r = sd_event_add_time(event, &mirror->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, mirror);
	if (r >= 0)
		r = sd_event_source_set_enabled(mirror->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(mirror);
	return 0;
}

StateMirror *state_mirror_free(StateMirror *mirror)
{
	if (!mirror)
		return NULL;
	mirror_unwatch(mirror);
	(void)sd_event_source_disable_unref(mirror->timer);
	for (size_t i = 0; i < mirror->n_locks; i++)
		for (size_t side = 0; side < SIDES; side++) {
			Side *one = &mirror->locks[i].sides[side];

			if (side_look(one).ours)
				side_remove(one);
			close_fdp(&one->directory_fd);
		}
	free(mirror->locks);
	(void)sd_event_unref(mirror->event);
	free(mirror);
	return NULL;
}
