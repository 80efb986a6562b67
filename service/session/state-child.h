/* SPDX-License-Identifier: MIT */
#pragma once

/* One run of state_take() and state_sync() in a process of its own, which dies with the session. */

#include <systemd/sd-event.h>

#include "service/session/state-sync.h"

/* What takes longer is killed, which loses nothing: somebody keeps the lock, or the disk hangs. */
#define STATE_CHILD_USEC (5 * USEC_PER_SEC)

typedef struct StateChild StateChild;

/*
 * It has ended. result: as of state_sync(). warnings: one line each, taken over.
 * took_usec: its life. May free the child.
 */
typedef void (*StateChildEnded)(void *userdata, int result, char **warnings, uint64_t took_usec);

typedef struct StateChildOptions {
	const StateFiles *files; /* borrowed until the end */
	int home_fd;             /* as the jail has it; FD_NONE: there is no jail */
	StateSyncOptions sync;
} StateChildOptions;

/* Return: 0 or a negative errno. */
int state_child_start(sd_event *event, const StateChildOptions *options, StateChildEnded ended,
		      void *userdata, StateChild **ret);
/* Kill, reap, and let go of the lock that it may have held. */
StateChild *state_child_free(StateChild *child);
DEFINE_CLEANUP(StateChild, state_child_free)
