/* SPDX-License-Identifier: MIT */
#include "service/daemon/launch-queue.h"

#include "service/daemon/launch-start.h"

static size_t starts_count(const Manager *manager, uid_t uid, size_t *ret_all)
{
	size_t n = 0, all = 0;

	for (const Launch *l = manager->launches; l; l = l->next) {
		all += l->session != NULL;
		n += l->session && l->client->uid == uid;
	}
	*ret_all = all;
	return n;
}

static Launch *launch_next(const Manager *manager)
{
	Launch *next = NULL;
	size_t fewest = 0;

	for (Launch *l = manager->launches; l; l = l->next) {
		size_t all, n;

		if (l->turn == 0 || l->session)
			continue;
		n = starts_count(manager, l->client->uid, &all);
		if (n >= LAUNCH_STARTS_OF_USER_MAX || (n > 0 && all >= LAUNCH_STARTS_MAX))
			continue;
		if (next && (n > fewest || (n == fewest && l->turn > next->turn)))
			continue;
		next = l;
		fewest = n;
	}
	return next;
}

static void launch_queue_run(Manager *manager)
{
	Launch *launch;

	/* Each round starts one or frees one. */
	while (!manager->stopping && (launch = launch_next(manager)))
		launch_continue(launch);
}

static int on_turns(sd_event_source *source, void *userdata)
{
	launch_queue_run(userdata);
	return 0;
}

int launch_queue_open(Manager *manager)
{
	int r;

	r = sd_event_add_defer(manager->event, &manager->launch_turns, on_turns, manager);
	return r < 0 ? r : sd_event_source_set_enabled(manager->launch_turns, SD_EVENT_OFF);
}

void launch_queue_add(Launch *launch)
{
	launch->turn = ++launch->manager->last_turn;
	launch_queue_run(launch->manager);
}

void launch_queue_moved(Manager *manager)
{
	if (manager->launch_turns && manager->launches)
		(void)sd_event_source_set_enabled(manager->launch_turns, SD_EVENT_ONESHOT);
}
