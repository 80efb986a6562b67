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

typedef struct Sync {
	const StateFiles *files;
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

static int sides_read(const Sync *sync, Sides *ret)
{
	const StateFiles *files = sync->files;
	const StatePlaces *places = &sync->places;
	int r;

	r = state_file_read(places->agent_fd, files->name, files->uid, true, &ret->agent);
	if (r == 0)
		r = state_file_read(places->host_fd, places->host_name, files->uid, true, &ret->host);
	if (r == 0)
		r = state_record_read(places->record_fd, places->base_name, files->uid, NULL, &ret->base);
	return r;
}

/* ---- one step ---- */

static int base_advance(const Sync *sync)
{
	const StatePlaces *places = &sync->places;

	return renameat(places->record_fd, places->next_name, places->record_fd, places->base_name) < 0
		       ? -errno
		       : 0;
}

static int step_write(const Sync *sync, StateSide side, const StateText *replaced,
		      const StateVersion *version)
{
	const StatePlaces *places = &sync->places;
	mode_t mode = replaced->mode ? replaced->mode : 0600;

	return side == STATE_HOST ? state_file_replace(places->host_fd, places->host_name, mode,
						       version->text, version->size, &replaced->stamp)
				  : state_file_replace(places->agent_fd, sync->files->name, mode,
						       version->text, version->size, &replaced->stamp);
}

/* side := version, base := base. */
static int step(const Sync *sync, StateSide side, const StateText *replaced, const StateVersion *version,
		const StateVersion *base)
{
	const StatePlaces *places = &sync->places;
	StateLock lock;
	int r;

	r = state_record_write(places->record_fd, places->next_name, side, version, base);
	if (r < 0)
		return r;
	r = state_lock_take(&lock, side == STATE_HOST ? places->home_fd : places->agent_fd,
			    sync->files->name);
	if (r == 0)
		r = step_write(sync, side, replaced, version);
	state_lock_drop(&lock);
	if (r < 0) {
		(void)unlinkat(places->record_fd, places->next_name, 0);
		return r;
	}
	/* If this fails, the next one to come finishes it. */
	return base_advance(sync);
}

/* What was begun and not finished. */
static int recover(const Sync *sync)
{
	const StateFiles *files = sync->files;
	const StatePlaces *places = &sync->places;
	_cleanup_(state_text_done) StateText next = { 0 }, found = { 0 };
	StateRecord record = { 0 };
	int r;

	state_lock_sweep(places->home_fd, files->name);
	state_lock_sweep(places->agent_fd, files->name);
	state_file_sweep(places->host_fd, places->host_name);
	state_file_sweep(places->agent_fd, files->name);
	r = state_record_read(places->record_fd, places->next_name, files->uid, &record, &next);
	if (r < 0 || next.mode == 0)
		return r;
	if (next.condition == STATE_VALID)
		r = record.side == STATE_HOST
			    ? state_file_read(places->host_fd, places->host_name, files->uid, true, &found)
			    : state_file_read(places->agent_fd, files->name, files->uid, true, &found);
	if (r < 0)
		return r;
	if (found.text && state_record_digest(found.text, found.size) == record.digest)
		return base_advance(sync);
	return unlinkat(places->record_fd, places->next_name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int bring_together(const Sync *sync, const Sides *sides)
{
	const StateVersion agent = version_of(&sides->agent), host = version_of(&sides->host),
			   base = version_of(&sides->base);
	_cleanup_free_ char *text = NULL;
	StateVersion merged;
	bool conflict;
	size_t size;
	int r;

	r = state_merge(&base, &agent, &host, &text, &size, &conflict);
	if (r == 0 && size > STATE_BYTES_MAX)
		r = -E2BIG;
	if (r == 0 && conflict)
		r = state_backup_text(sync->places.agent_fd, sync->files->name, &sides->agent);
	if (r < 0)
		return r;
	merged = (StateVersion){ .text = text, .size = size };
	if (!host.text || host.size != size || memcmp(host.text, text, size) != 0)
		return step(sync, STATE_HOST, &sides->host, &merged, &agent);
	return step(sync, STATE_AGENT, &sides->agent, &merged, &merged);
}

static int settled(const Sync *sync, const Sides *sides)
{
	const StatePlaces *places = &sync->places;
	const StateVersion both = version_of(&sides->agent);
	int r = 0;

	if (both.text && !equal(&sides->agent, &sides->base)) {
		r = state_record_write(places->record_fd, places->next_name, STATE_AGENT, &both, &both);
		if (r == 0)
			r = base_advance(sync);
	}
	return r == 0 ? state_seen_write(places, &sides->agent.stamp, &sides->host.stamp) : r;
}

static int warn_agent(const Sync *sync, const StateText *agent)
{
	const StateFiles *files = sync->files;

	return strings_appendf(sync->warnings,
			       "what agents save in %s/%s/%s is not brought to %s: it %s; move it away",
			       files->home, files->directory, files->name, sync->places.host_path,
			       agent->condition == STATE_FOREIGN
				       ? "is not a file of yours"
				       : "is not a JSON object, has a key twice, or is larger than 16 MiB");
}

static int warn_host(const Sync *sync, const StateText *host)
{
	return strings_appendf(sync->warnings,
			       "%s is neither given to agents nor brought up to date: it %s; correct it",
			       sync->places.host_path,
			       host->condition == STATE_FOREIGN
				       ? "is not a file of yours"
				       : "is not a JSON object, has a key twice, or is larger than 16 MiB");
}

/* Return: 1 when there may be more to do, 0 when nothing is. */
static int round_make(const Sync *sync)
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
			r = state_backup_move(sync->places.agent_fd, sync->files->name);
		else
			return warn_agent(sync, &sides.agent);
		return r < 0 ? r : 1;
	}
	if (equal(&sides.agent, &sides.host) || (!sides.agent.text && !sides.host.text))
		return settled(sync, &sides);
	r = bring_together(sync, &sides);
	return r < 0 ? r : 1;
}

static int sync_run(const Sync *sync)
{
	int r = recover(sync);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		r = round_make(sync);
		if (r <= 0 && r != -EAGAIN)
			return r;
	}
	return r < 0 ? r : -EAGAIN;
}

int state_sync(const StateFiles *files, const StateSyncOptions *options, char ***warnings)
{
	Sync sync = { .files = files, .options = options, .warnings = warnings, .places = STATE_PLACES_INIT };
	_cleanup_free_ char *problem = NULL;
	int r;

	while (flock(files->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	r = state_places_open(files, true, &sync.places, &problem);
	if (r == 0)
		r = sync_run(&sync);
	if (r < 0 && r != -EAGAIN && r != -ENOMEM)
		(void)strings_appendf(warnings, "%s/%s and what agents save are not brought together: %s",
				      files->home, files->name, problem ?: strerror(-r));
	state_places_done(&sync.places);
	(void)flock(files->lock_fd, LOCK_UN);
	return r;
}
