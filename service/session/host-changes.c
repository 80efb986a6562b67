/* SPDX-License-Identifier: MIT */
#include "service/session/host-changes.h"

#include <sys/epoll.h>

#include "base/clock.h"
#include "service/net/host.h"

#define AGAIN_USEC USEC_PER_SEC
/* Between two looks lies this much, and so many times what the last one took. */
#define PAUSE_USEC (10 * USEC_PER_MSEC)
#define PAUSE_FACTOR 10u

struct HostChanges {
	sd_event *event;
	HostChanged changed;
	void *userdata;
	int fd;
	uint64_t not_before_usec;
	sd_event_source *source, *timer;
};

/* Not the loop's time, which stands still while a look is taken. */
static void look(HostChanges *changes)
{
	uint64_t begin = clock_usec(CLOCK_MONOTONIC);
	int r;

	/* Before the look: what comes while it is taken is another change. */
	host_watch_drain(changes->fd);
	(void)sd_event_source_set_enabled(changes->timer, SD_EVENT_OFF);
	r = changes->changed(changes->userdata);
	changes->not_before_usec = clock_usec(CLOCK_MONOTONIC) + PAUSE_USEC +
				   PAUSE_FACTOR * (clock_usec(CLOCK_MONOTONIC) - begin);
	if (r >= 0)
		return;
	(void)sd_event_source_set_time_relative(changes->timer, AGAIN_USEC);
	(void)sd_event_source_set_enabled(changes->timer, SD_EVENT_ONESHOT);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	HostChanges *changes = userdata;

	if (clock_usec(CLOCK_MONOTONIC) >= changes->not_before_usec) {
		look(changes);
		return 0;
	}
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	(void)sd_event_source_set_time(changes->timer, changes->not_before_usec);
	(void)sd_event_source_set_enabled(changes->timer, SD_EVENT_ONESHOT);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	HostChanges *changes = userdata;

	(void)sd_event_source_set_enabled(changes->source, SD_EVENT_ON);
	look(changes);
	return 0;
}

int host_changes_new(sd_event *event, HostChanged changed, void *userdata, HostChanges **ret)
{
	_cleanup_(host_changes_freep) HostChanges *changes = malloc(sizeof(*changes));
	int r;

	if (!changes)
		return -ENOMEM;
	*changes = (HostChanges){
		.event = sd_event_ref(event), .changed = changed, .userdata = userdata, .fd = FD_NONE
	};
	r = host_watch_open(&changes->fd);
	if (r >= 0)
		r = sd_event_add_io(event, &changes->source, changes->fd, EPOLLIN, on_readable, changes);
	/* Whatever else waits: what must be denied comes first. */
	if (r >= 0)
		r = sd_event_source_set_priority(changes->source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_add_time(event, &changes->timer, CLOCK_MONOTONIC, 0, 1, on_timer, changes);
	if (r >= 0)
		r = sd_event_source_set_enabled(changes->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(changes);
	return 0;
}

HostChanges *host_changes_free(HostChanges *changes)
{
	if (!changes)
		return NULL;
	(void)sd_event_source_disable_unref(changes->source);
	(void)sd_event_source_disable_unref(changes->timer);
	(void)sd_event_unref(changes->event);
	(void)close_fd(changes->fd);
	free(changes);
	return NULL;
}
