/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Locks that agents make where their state lies, as directories or files: "I refresh the login, nobody else may".
 * One that an agent makes in a jail is made outside too, and one of the person's own agent, or of an agent in
 * another jail, is made inside, so that the other's mkdir(2) fails. It goes when its maker removes the first one,
 * after what was saved meanwhile has been brought to the other side: whoever waits for it reads that next.
 *
 * A window remains. Between an agent's mkdir(2) and ours lie an event and a wake-up (about a tenth of a
 * millisecond; more on a busy machine), and whoever makes the same lock on the other side in that time has it too.
 * Then both refresh, as two agents without a lock would.
 *
 * What we make has a mode of its own (state-lock.h). Our own are refreshed when the first one is; one that nobody
 * refreshes counts for nothing after ten seconds, by the agents' own rule, so a killed session's holds nobody up,
 * and the next session removes it.
 */

#include <sys/inotify.h>
#include <systemd/sd-event.h>

#include "service/session/state-files.h"

/*
 * What every source of inotify in this process that may share a directory asks for, here and in state-watch.c: an
 * event that no source of its directory asked for is never taken from its buffer by libsystemd 252, which then goes
 * round for ever. There is one as soon as of two sources with different masks one is removed.
 */
#define STATE_WATCHED                                                                                        \
	(IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | \
	 IN_MOVE_SELF | IN_ONLYDIR)

typedef struct StateMirror StateMirror;

/* A lock was let go: bring the files to the other side, then call state_mirror_release(). */
typedef void (*StateMirrorLetGo)(void *userdata);

/* files must outlive it. Return: 0 or a negative errno. */
int state_mirror_new(sd_event *event, const StateFiles *files, StateMirrorLetGo let_go, void *userdata,
		     StateMirror **ret);
/* Removes what it made. */
StateMirror *state_mirror_free(StateMirror *mirror);
DEFINE_CLEANUP(StateMirror, state_mirror_free)

/* Nothing is made any more; what was made stays until the end. mirror may be NULL. */
void state_mirror_stop(StateMirror *mirror);
/* Watch from now on, or again: a directory that was missing may be there. Looks at once. mirror may be NULL. */
void state_mirror_watch(StateMirror *mirror);
/* The files are the same on both sides: remove what stands for locks that were let go. mirror may be NULL. */
void state_mirror_release(StateMirror *mirror);
