/* SPDX-License-Identifier: MIT */
#include "service/session/state-sync.h"

#include <fcntl.h>
#include <sys/file.h>

#include "service/link/pack.h"
#include "service/session/state-backup.h"
#include "service/session/state-lock.h"
#include "service/session/state-merge.h"
#include "service/session/state-record.h"

/* Each round follows one change of another program's; one that changes without end is come back to. */
#define ROUNDS_MAX 8u
#define ROUND_DELETION 2

typedef struct Sync {
	const StateFiles *files;
	const StateName *name;
	const StateSyncOptions *options;
	char ***warnings;
	StatePlaces places;
} Sync;

typedef struct Sides {
	StateText agent, host, base;
} Sides;

static void sides_done(Sides *sides)
{
	state_text_done(&sides->agent);
	state_text_done(&sides->host);
	state_text_done(&sides->base);
}

static StateVersion version_of(const StateText *text)
{
	return (StateVersion){ .text = text->text, .size = text->size };
}

static bool equal(const StateText *a, const StateText *b)
{
	return a->text && b->text && a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static int side_read(const Sync *sync, StateSide side, StateText *ret)
{
	const StatePlaces *places = &sync->places;
	int directory_fd = side == STATE_HOST ? places->host_fd : places->agent_fd;

	if (directory_fd < 0) {
		*ret = (StateText){ 0 };
		return 0;
	}
	return state_file_read(directory_fd, side == STATE_HOST ? places->host_name : places->agent_name,
			       sync->files->uid, sync->name->json, ret);
}

static int record_read(const Sync *sync, const char *name, StateRecord *ret_record, StateText *ret)
{
	return state_record_read(sync->places.record_fd, name, sync->files->uid, sync->name->json, ret_record,
				 ret);
}

static int sides_read(const Sync *sync, Sides *ret)
{
	int r;

	r = side_read(sync, STATE_AGENT, &ret->agent);
	if (r == 0)
		r = side_read(sync, STATE_HOST, &ret->host);
	if (r == 0)
		r = record_read(sync, sync->name->record, NULL, &ret->base);
	return r;
}

/* ---- one step ---- */

static int record_remove(const Sync *sync, const char *name)
{
	return unlinkat(sync->places.record_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int base_advance(const Sync *sync)
{
	const StatePlaces *places = &sync->places;

	return renameat(places->record_fd, places->next_name, places->record_fd, sync->name->record) < 0
		       ? -errno
		       : 0;
}

/* Where agents take one for this file. */
static int lock_side(const Sync *sync, StateSide side, StateLock *lock)
{
	const StatePlaces *places = &sync->places;

	*lock = (StateLock){ .directory_fd = FD_NONE };
	if (!sync->name->locked)
		return 0;
	return side == STATE_HOST ? state_lock_take(lock, places->lock_fd, places->lock_name)
				  : state_lock_take(lock, places->agent_fd, places->agent_name);
}

static int step_write(const Sync *sync, StateSide side, const StateText *replaced,
		      const StateVersion *version)
{
	const StatePlaces *places = &sync->places;
	mode_t mode = replaced->mode ? replaced->mode : 0600;

	return side == STATE_HOST ? state_file_replace(places->host_fd, places->host_name, mode,
						       version->text, version->size, &replaced->stamp)
				  : state_file_replace(places->agent_fd, places->agent_name, mode,
						       version->text, version->size, &replaced->stamp);
}

/* side := version, base := base. */
static int step(Sync *sync, StateSide side, const StateText *replaced, const StateVersion *version,
		const StateVersion *base)
{
	StatePlaces *places = &sync->places;
	StateLock lock;
	int r;

	r = side == STATE_HOST ? state_places_make_host(sync->files, sync->name, places)
			       : state_places_make_agent(sync->name, places);
	if (r == 0)
		r = state_record_write(places->record_fd, places->next_name, side, version, base);
	if (r < 0)
		return r;
	r = lock_side(sync, side, &lock);
	if (r == 0)
		r = step_write(sync, side, replaced, version);
	state_lock_drop(&lock);
	if (r < 0) {
		(void)record_remove(sync, places->next_name);
		return r;
	}
	/* If this fails, the next one to come finishes it. */
	return base_advance(sync);
}

/*
 * The other side's deletion is followed. The base goes first: killed between, the file comes back where it was
 * deleted, and is not lost.
 */
static int step_delete(const Sync *sync, StateSide side, const StateText *deleted)
{
	const StatePlaces *places = &sync->places;
	StateLock lock;
	int r;

	r = lock_side(sync, side, &lock);
	if (r == 0)
		r = record_remove(sync, sync->name->record);
	if (r == 0)
		r = side == STATE_HOST
			    ? state_file_remove(places->host_fd, places->host_name, &deleted->stamp)
			    : state_file_remove(places->agent_fd, places->agent_name, &deleted->stamp);
	state_lock_drop(&lock);
	return r;
}

static void sweep(int directory_fd, const char *name)
{
	if (directory_fd < 0)
		return;
	state_lock_sweep(directory_fd, name);
	state_file_sweep(directory_fd, name);
}

/* What was begun and not finished. */
static int recover(const Sync *sync)
{
	const StatePlaces *places = &sync->places;
	_cleanup_(state_text_done) StateText next = { 0 }, found = { 0 };
	StateRecord record = { 0 };
	int r;

	sweep(places->lock_fd, places->lock_name);
	sweep(places->host_fd, places->host_name);
	sweep(places->agent_fd, places->agent_name);
	r = record_read(sync, places->next_name, &record, &next);
	if (r < 0 || next.mode == 0)
		return r;
	if (next.condition == STATE_VALID)
		r = side_read(sync, record.side, &found);
	if (r < 0)
		return r;
	if (found.text && state_record_digest(found.text, found.size) == record.digest)
		return base_advance(sync);
	return record_remove(sync, places->next_name);
}

/* Of two that were changed, the one that was changed last: by ctime, which nobody sets. */
static int choose_newer(const Sync *sync, const Sides *sides, char **ret_text, size_t *ret_size)
{
	bool agent = sides->agent.stamp.changed_nsec > sides->host.stamp.changed_nsec;
	const StateText *winner = agent ? &sides->agent : &sides->host,
			*loser = agent ? &sides->host : &sides->agent;
	int r = state_backup_text(sync->places.root_fd, sync->places.agent_name, loser);

	if (r < 0)
		return r;
	*ret_text = malloc(winner->size + 1);
	if (!*ret_text)
		return -ENOMEM;
	memcpy(*ret_text, winner->text, winner->size + 1);
	*ret_size = winner->size;
	return 0;
}

static int merge(const Sync *sync, const Sides *sides, char **ret_text, size_t *ret_size)
{
	const StateVersion agent = version_of(&sides->agent), host = version_of(&sides->host),
			   base = version_of(&sides->base);
	bool conflict;
	int r;

	if (!sync->name->json && agent.text && host.text && !equal(&sides->agent, &sides->base) &&
	    !equal(&sides->host, &sides->base))
		return choose_newer(sync, sides, ret_text, ret_size);
	r = state_merge(&base, &agent, &host, ret_text, ret_size, &conflict);
	if (r == 0 && conflict)
		r = state_backup_text(sync->places.root_fd, sync->places.agent_name, &sides->agent);
	return r;
}

static int bring_together(Sync *sync, const Sides *sides)
{
	const StateVersion agent = version_of(&sides->agent), host = version_of(&sides->host);
	_cleanup_free_ char *text = NULL;
	StateVersion merged;
	size_t size;
	int r;

	r = merge(sync, sides, &text, &size);
	if (r == 0 && size > STATE_BYTES_MAX)
		r = -E2BIG;
	if (r < 0)
		return r;
	merged = (StateVersion){ .text = text, .size = size };
	if (!host.text || host.size != size || memcmp(host.text, text, size) != 0)
		return step(sync, STATE_HOST, &sides->host, &merged, &agent);
	return step(sync, STATE_AGENT, &sides->agent, &merged, &merged);
}

/* Was the one that is missing deleted, and the other not changed since? */
static bool is_deleted(const Sync *sync, const Sides *sides)
{
	if (sides->agent.text && sides->host.text)
		return false;
	if (!sides->agent.text)
		/* Before an agent starts, its directory may be a new one. */
		return !sync->options->launch && equal(&sides->host, &sides->base);
	return equal(&sides->agent, &sides->base);
}

static int settled(const Sync *sync, const Sides *sides)
{
	const StatePlaces *places = &sync->places;
	const StateVersion both = version_of(&sides->agent);
	int r = 0;

	if (!both.text) {
		r = record_remove(sync, sync->name->record);
		return r == 0 ? record_remove(sync, places->seen_name) : r;
	}
	if (!equal(&sides->agent, &sides->base)) {
		r = state_record_write(places->record_fd, places->next_name, STATE_AGENT, &both, &both);
		if (r == 0)
			r = base_advance(sync);
	}
	return r == 0 ? state_seen_write(places, &sides->agent.stamp, &sides->host.stamp) : r;
}

static const char *fault_of(const Sync *sync, const StateText *text)
{
	if (text->condition == STATE_FOREIGN)
		return "is not a file of yours";
	return sync->name->json ? "is not a JSON object, has a key twice, or is larger than 16 MiB"
				: "cannot be read, or is larger than 16 MiB";
}

static int warn_agent(const Sync *sync, const StateText *agent)
{
	return strings_appendf(sync->warnings,
			       "what agents save in %s/%s/%s is not brought to %s: it %s; move it away",
			       sync->files->home, sync->files->state, sync->name->agent,
			       sync->places.host_path, fault_of(sync, agent));
}

static int warn_host(const Sync *sync, const StateText *host)
{
	return strings_appendf(sync->warnings,
			       "%s is neither given to agents nor brought up to date: it %s; correct it",
			       sync->places.host_path, fault_of(sync, host));
}

/* Return: 1 when there may be more to do, 0 when nothing is, ROUND_DELETION when only that. */
static int round_make(Sync *sync)
{
	_cleanup_(sides_done) Sides sides = { 0 };
	int r = sides_read(sync, &sides);

	if (r < 0)
		return r;
	if (sides.host.condition > STATE_VALID)
		return warn_host(sync, &sides.host);
	if (sides.agent.condition > STATE_VALID) {
		/* A link may be the person's own; whatever else is there, the next agent could not use. */
		if (sync->options->launch && !S_ISLNK(sides.agent.mode) && sides.host.text)
			r = state_backup_move(sync->places.root_fd, sync->places.agent_fd,
					      sync->places.agent_name);
		else
			return warn_agent(sync, &sides.agent);
		return r < 0 ? r : 1;
	}
	if (equal(&sides.agent, &sides.host) || (!sides.agent.text && !sides.host.text))
		return settled(sync, &sides);
	if (is_deleted(sync, &sides) && !sync->options->deletions)
		return ROUND_DELETION;
	if (is_deleted(sync, &sides))
		r = sides.agent.text ? step_delete(sync, STATE_AGENT, &sides.agent)
				     : step_delete(sync, STATE_HOST, &sides.host);
	else
		r = bring_together(sync, &sides);
	return r < 0 ? r : 1;
}

static int sync_run(Sync *sync)
{
	int r = recover(sync);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		r = round_make(sync);
		if (r == ROUND_DELETION)
			return 1;
		if (r <= 0 && r != -EAGAIN)
			return r;
	}
	return r < 0 ? r : -EAGAIN;
}

static int sync_file(const StateFiles *files, const StateName *name, const StateSyncOptions *options,
		     char ***warnings)
{
	Sync sync = { .files = files,
		      .name = name,
		      .options = options,
		      .warnings = warnings,
		      .places = STATE_PLACES_INIT };
	_cleanup_free_ char *problem = NULL;
	int r;

	r = state_places_open(files, name, true, &sync.places, &problem);
	if (r == 0)
		r = sync_run(&sync);
	if (r < 0 && r != -EAGAIN && r != -ENOMEM)
		(void)strings_appendf(warnings, "%s/%s and what agents save are not brought together: %s",
				      files->home, name->host, problem ?: strerror(-r));
	state_places_done(&sync.places);
	return r;
}

int state_sync(const StateFiles *files, const StateSyncOptions *options, char ***warnings)
{
	int result = 0;

	while (flock(files->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	/* What one of them has keeps no other from being followed. */
	for (size_t i = 0; i < files->n_names; i++) {
		int r = state_file_unchanged(files, &files->names[i])
				? 0
				: sync_file(files, &files->names[i], options, warnings);

		if (r > 0 ? result == 0 : r < 0 && (result >= 0 || result == -EAGAIN))
			result = r;
	}
	(void)flock(files->lock_fd, LOCK_UN);
	return result;
}
