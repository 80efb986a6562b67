/* SPDX-License-Identifier: MIT */

/*
 * What agents keep outside (profile.h). Whether something here is what is there is a matter of device and inode number:
 * both are the file's, in any mount namespace. A name that is not there yet would be made in the deepest directory on the
 * way to it that is, so that one is looked at. kinds_cases.py has another agent and a person look on while all of it is
 * written.
 */

#include "service/inside/probing.h"

#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "service/inside/measure.h"

static bool is_same(const ObjectIdentity *a, const ObjectIdentity *b)
{
	return a->known && b->known && a->device == b->device && a->inode == b->inode;
}

/* What of it this is, outside; NULL: nothing. */
static const ExpectedState *find_outside(const Expectations *e, const ObjectIdentity *object)
{
	for (size_t i = 0; i < e->n_states; i++)
		if (is_same(&e->states[i].object, object))
			return &e->states[i];
	return NULL;
}

/*
 * Everything on the way to it, from what the state lies in on. deepest: what is there of it; empty where there is no state.
 * Return: whether none of it is outside.
 */
static bool walk(Probing *p, const ExpectedState *state, char deepest[static PATH_MAX])
{
	size_t base = strlen(state->base), length = MIN_OF(strlen(state->path), (size_t)PATH_MAX - 1);
	const char *parent = strrchr(state->base, '/');

	deepest[0] = '\0';
	for (size_t n = parent ? (size_t)(parent - state->base) : 0; n <= length; n++) {
		char path[PATH_MAX];
		const ExpectedState *outside;
		ObjectIdentity object;

		if (n == 0 || (state->path[n] != '/' && state->path[n] != '\0'))
			continue;
		(void)snprintf(path, sizeof(path), "%.*s", (int)n, state->path);
		object = measure_target(path);
		if (!object.known && (errno == ENOENT || errno == ENOTDIR))
			return true;
		if (!object.known) {
			probing_refused(p, errno, "%s", path);
			return false;
		}
		outside = find_outside(p->expectations, &object);
		if (outside) {
			probing_escaped(p, "%s is %s of outside", path, outside->path);
			return false;
		}
		if (n >= base)
			memcpy(deepest, path, sizeof(path));
	}
	return true;
}

static bool is_private_memory(const char *path, const ObjectIdentity *object, const ObjectIdentity *base)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC && object->device != base->device;
}

/* Another session of the workspace has the same state, but not what is of a session. */
static void judge_session(Probing *p, const ExpectedState *state, const char *deepest)
{
	const ExpectedEntry *entry = probing_covering(p, state->base);
	ObjectIdentity base = measure_target(state->base), object = measure_target(deepest);
	bool all_private = entry && entry->kind == ENTRY_TMPFS;

	/* The session itself removes files of this kind, and an agent may keep one while it runs. */
	if (!S_ISDIR(object.mode) || streq(deepest, state->base)) {
		probing_blocked(p, "%s is the workspace's", state->path);
		return;
	}
	if (all_private || is_private_memory(deepest, &object, &base))
		probing_blocked(p, "%s is the session's", state->path);
	else
		probing_escaped(p, "%s is shared with other sessions", deepest);
}

static void attempt_kind(Probing *p, StateKind kind)
{
	const Expectations *e = p->expectations;

	for (size_t i = 0; e && i < e->n_states; i++) {
		const ExpectedState *state = &e->states[i];
		char deepest[PATH_MAX];

		if (state->kind != kind || !walk(p, state, deepest))
			continue;
		if (!deepest[0])
			probing_blocked(p, "%s is not here", state->base);
		else if (kind == STATE_SESSION)
			judge_session(p, state, deepest);
		else
			probing_blocked(p, "%s is the workspace's", state->path);
	}
}

static void attempt_orders(Probing *p)
{
	attempt_kind(p, STATE_ORDERS);
}

static void attempt_session(Probing *p)
{
	attempt_kind(p, STATE_SESSION);
}

static void attempt_transcripts(Probing *p)
{
	attempt_kind(p, STATE_TRANSCRIPTS);
}

/* A name that no list has is made, looked at and taken back. */
static void make_unlisted(Probing *p, const char *directory)
{
	char path[PATH_MAX];
	const ExpectedState *outside;
	ObjectIdentity object;
	int n = snprintf(path, sizeof(path), "%s/.probe-XXXXXX/..", directory);

	if (n < 0 || (size_t)n >= sizeof(path)) {
		probing_unclear(p, "%s: the path is too long", directory);
		return;
	}
	path[n - 3] = '\0';
	if (!mkdtemp(path)) {
		probing_refused(p, errno, "a new name in %s", directory);
		return;
	}
	/* What holds it. */
	path[n - 3] = '/';
	object = measure_target(path);
	path[n - 3] = '\0';
	(void)rmdir(path);
	outside = find_outside(p->expectations, &object);
	if (outside)
		probing_escaped(p, "a new name in %s is in %s of outside", directory, outside->path);
	else
		probing_blocked(p, "a new name in %s is the workspace's", directory);
}

static void attempt_unlisted(Probing *p)
{
	const Expectations *e = p->expectations;

	for (size_t i = 0; e && i < e->n_states; i++) {
		const ExpectedState *state = &e->states[i];
		char deepest[PATH_MAX];

		if (state->kind != STATE_ALL || !walk(p, state, deepest))
			continue;
		if (!deepest[0])
			probing_blocked(p, "%s is not here", state->base);
		else
			make_unlisted(p, state->base);
	}
}

const Probe probes_state[] = {
	{ "p109", "no agent outside takes orders from here",
	  "a job that the agent outside starts, without a jail", attempt_orders },
	{ "p110", "what is of one session is no other's",
	  "background services, PID files and editors' locks of other sessions", attempt_session },
	{ "p111", "a new name in an agent's state is the workspace's alone",
	  "a channel that a later version of the agent opens", attempt_unlisted },
	{ "p112", "no transcripts of other workspaces", "what was said and shown in other projects",
	  attempt_transcripts },
};
const size_t probes_state_count = ELEMENTSOF(probes_state);
