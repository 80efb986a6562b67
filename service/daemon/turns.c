/* SPDX-License-Identifier: MIT */
#include "service/daemon/turns.h"

#include "base/clock.h"

/* Beyond what a user has to wait: several steps are done at once then, instead of one for each wake-up. */
#define PAUSE_USEC (20 * USEC_PER_MSEC)

struct TurnUser {
	uid_t uid;
	Turn *first, *last;
	TurnUser *next;
};

struct Turns {
	sd_event *event;
	sd_event_source *next, *later;
	Budget *budget;
	TurnUser *first, *last; /* who was served longest ago comes first */
	bool working;           /* for the user worker, since began_usec */
	uid_t worker;
	uint64_t began_usec;
	bool sending; /* for the user sender, since sends_usec: the way out is not empty */
	uid_t sender;
	uint64_t sends_usec;
};

/*
 * The time that passed, not the processor's: on a busy machine the service has little of that, and who takes all of
 * the little would never use up a part of the whole.
 */
static void work_end(Turns *turns)
{
	uint64_t now;

	if (!turns->working)
		return;
	now = clock_usec(CLOCK_MONOTONIC);
	(void)budget_charge(turns->budget, turns->worker, now, now - turns->began_usec);
	turns->working = false;
}

/* Charge what passed until now to whom the way out is filled for. */
static void send_end(Turns *turns)
{
	const uint64_t now = clock_usec(CLOCK_MONOTONIC);

	if (turns->sending)
		(void)budget_charge(turns->budget, turns->sender, now, now - turns->sends_usec);
	turns->sends_usec = now;
}

static void turns_schedule(Turns *turns)
{
	if (turns->first)
		(void)sd_event_source_set_enabled(turns->next, SD_EVENT_ONESHOT);
}

void turns_end(Turns *turns, bool sent)
{
	const bool worked = turns->working;

	work_end(turns);
	if (!turns->sending && (sent || !worked))
		return;
	send_end(turns);
	if (!turns->sending)
		turns->sender = turns->worker;
	turns->sending = !sent;
	if (sent)
		turns_schedule(turns);
}

void turns_begin(Turns *turns, uid_t uid)
{
	work_end(turns);
	turns->working = true;
	turns->worker = uid;
	turns->began_usec = clock_usec(CLOCK_MONOTONIC);
}

static TurnUser *user_find(const Turns *turns, uid_t uid)
{
	for (TurnUser *u = turns->first; u; u = u->next)
		if (u->uid == uid)
			return u;
	return NULL;
}

static uint64_t user_wait(const Turns *turns, uid_t uid)
{
	return uid == 0 ? 0 : budget_wait(turns->budget, uid, clock_usec(CLOCK_MONOTONIC));
}

bool turns_allow(const Turns *turns, uid_t uid)
{
	if (uid == 0)
		return true;
	return !(turns->sending && turns->sender == uid) && !user_find(turns, uid) &&
	       user_wait(turns, uid) == 0;
}

static void user_append(Turns *turns, TurnUser *user)
{
	user->next = NULL;
	if (turns->last)
		turns->last->next = user;
	else
		turns->first = user;
	turns->last = user;
}

static void user_remove(Turns *turns, TurnUser *user)
{
	TurnUser *before = NULL;

	for (TurnUser *u = turns->first; u != user; u = u->next)
		before = u;
	if (before)
		before->next = user->next;
	else
		turns->first = user->next;
	if (turns->last == user)
		turns->last = before;
}

static void turn_append(TurnUser *user, Turn *turn)
{
	turn->user = user;
	turn->next = NULL;
	if (user->last)
		user->last->next = turn;
	else
		user->first = turn;
	user->last = turn;
}

int turns_wait(Turns *turns, uid_t uid, Turn *turn)
{
	TurnUser *user;

	if (turn->user)
		return 0;
	user = user_find(turns, uid);
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		user_append(turns, user);
	}
	turn_append(user, turn);
	turns_schedule(turns);
	return 0;
}

void turns_leave(Turns *turns, Turn *turn)
{
	TurnUser *user = turn->user;
	Turn *before = NULL;

	if (!user)
		return;
	for (Turn *t = user->first; t != turn; t = t->next)
		before = t;
	if (before)
		before->next = turn->next;
	else
		user->first = turn->next;
	if (user->last == turn)
		user->last = before;
	turn->user = NULL;
	turn->next = NULL;
	if (user->first)
		return;
	user_remove(turns, user);
	free(user);
}

static void turns_step(Turns *turns, TurnUser *user)
{
	const uid_t uid = user->uid;
	Turn *turn = user->first;

	/* It goes behind the user's other turns, and the user behind the other users. */
	user_remove(turns, user);
	user_append(turns, user);
	user->first = turn->next;
	if (!user->first)
		user->last = NULL;
	turn_append(user, turn);
	turns_begin(turns, uid);
	turn->step(turn->userdata);
}

static int on_next(sd_event_source *source, void *userdata)
{
	Turns *turns = userdata;
	uint64_t least = UINT64_MAX;

	/* turns_end() goes on. */
	if (turns->sending)
		return 0;
	for (TurnUser *u = turns->first; u; u = u->next) {
		uint64_t wait = user_wait(turns, u->uid);

		if (wait == 0) {
			turns_step(turns, u);
			turns_schedule(turns);
			return 0;
		}
		least = MIN_OF(least, wait);
	}
	if (turns->first) {
		(void)sd_event_source_set_time_relative(turns->later, least + PAUSE_USEC);
		(void)sd_event_source_set_enabled(turns->later, SD_EVENT_ONESHOT);
	}
	return 0;
}

static int on_later(sd_event_source *source, uint64_t usec, void *userdata)
{
	turns_schedule(userdata);
	return 0;
}

int turns_new(sd_event *event, Turns **ret)
{
	_cleanup_(turns_freep) Turns *turns = calloc(1, sizeof(*turns));
	int r;

	if (!turns)
		return -ENOMEM;
	turns->event = sd_event_ref(event);
	turns->budget = budget_new();
	if (!turns->budget)
		return -ENOMEM;
	r = sd_event_add_defer(event, &turns->next, on_next, turns);
	if (r >= 0)
		r = sd_event_source_set_enabled(turns->next, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(turns->next, PRIORITY_SERVED);
	if (r >= 0)
		r = sd_event_add_time(event, &turns->later, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_later,
				      turns);
	if (r >= 0)
		r = sd_event_source_set_enabled(turns->later, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(turns->later, PRIORITY_SERVED);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(turns);
	return 0;
}

/* Whoever waits has left before. */
Turns *turns_free(Turns *turns)
{
	if (!turns)
		return NULL;
	sd_event_source_disable_unref(turns->next);
	sd_event_source_disable_unref(turns->later);
	sd_event_unref(turns->event);
	budget_free(turns->budget);
	free(turns);
	return NULL;
}
