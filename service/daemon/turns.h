/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whose work the service does next. Whoever has something left of the budget is served at once; what is over it
 * waits here, and is taken in turn by user, one small step at a time, when nothing else is to do. Users do not
 * know of each other: a thousand waiting steps of one delay another user's by one step.
 *
 * THE WAY OUT is shared, too: the bus takes what the service sends as one queue, and slowly from a busy one. What
 * waits in it is everybody's delay, so no step is done before it is empty, and until then the time is charged to the
 * user for whom it was filled; of that user nothing is done at once.
 *
 * PRIORITIES of the loop: the bus, links, ends of sessions and turns have the same one, so that the loop serves them
 * in the order in which they came. With two, what never stops would keep the lower one from being served at all: a flood
 * of calls those links by which another user's launch goes on. What is over the budget is no source of the loop.
 */

#include <systemd/sd-event.h>

#include "dbus/base.h"
#include "service/daemon/budget.h"

#define PRIORITY_SERVED SD_EVENT_PRIORITY_NORMAL

typedef struct Turns Turns;
typedef struct TurnUser TurnUser;

/* Do one step. The turn waits for the next one, unless the step calls turns_leave(). */
typedef void (*TurnFunction)(void *userdata);

/* Lies in what waits. Of one that does not wait the last two are NULL. */
typedef struct Turn {
	TurnFunction step;
	void *userdata;
	TurnUser *user; /* where it waits */
	struct Turn *next;
} Turn;

int turns_new(sd_event *event, Turns **ret);
Turns *turns_free(Turns *turns);
DEFINE_CLEANUP(Turns, turns_free)

/*
 * May something of this user be done at once? Not where the budget is used up, or something of theirs waits. Root
 * has no limit: it can stop the service.
 */
bool turns_allow(const Turns *turns, uid_t uid);
/* A step is to be done for uid when their turn comes; nothing for one that waits. Return: 0 or -ENOMEM. */
int turns_wait(Turns *turns, uid_t uid, Turn *turn);
/* It does not wait any more. */
void turns_leave(Turns *turns, Turn *turn);

/* What the service does from now on is done for uid, until the next turns_begin() or turns_end(). */
void turns_begin(Turns *turns, uid_t uid);
/* After each event. sent: the way out is empty. */
void turns_end(Turns *turns, bool sent);
