/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The account files of an agent, kept while its session lives: before the agent starts, whenever one of them
 * changes on either side, and once more after its end. The work is done in a short-lived child (state-sync.h),
 * because it reads what an agent wrote, waits for a lock and for the disk, and the session must be awake meanwhile.
 * Locks that agents make are the session's own work (state-mirror.h), since nobody waits for a process there.
 *
 * The jail's home is held from before the agent runs until the end: what replaced the link there is taken after the
 * last process of the jail is gone, and its mounts with it.
 *
 * However often an agent writes, a child starts at most four times a second, and rests twenty times as long
 * as the last one worked. When nothing happens nothing wakes up.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/session/state-files.h"

typedef struct StateWatch StateWatch;

/* The child that state_watch_begin() or state_watch_finish() started has ended. */
typedef void (*StateWatchDone)(void *userdata);

/* files is taken over; what it borrows must outlive the watch. Return: 0 or a negative errno. */
int state_watch_new(sd_event *event, StateFiles *files, StateWatchDone done, void *userdata,
		    StateWatch **ret);
/* Kills the child. */
StateWatch *state_watch_free(StateWatch *watch);
DEFINE_CLEANUP(StateWatch, state_watch_free)

/* Before the agent starts. Return: 1 when done will be called; 0 when there is nothing to do. */
int state_watch_begin(StateWatch *watch);
/* The jail is made and its agent not started; leader: its init, which waits. From now on changes are followed.
 * Return: 0; a negative errno when what replaces the link in the jail's home cannot be taken. */
int state_watch_enter(StateWatch *watch, pid_t leader);
/* Nothing of the jail runs any more. Return: as state_watch_begin(). */
int state_watch_finish(StateWatch *watch);
/* What stayed undone in the last run, one line each; NULL-terminated, borrowed. May be NULL. */
char *const *state_watch_warnings(const StateWatch *watch);
