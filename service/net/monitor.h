/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the watching socket of a jail's network tells: when the wire is up, and that somebody else has changed
 * something.
 */

#include "dbus/base.h"
#include "service/net/foreign.h"

typedef struct Monitor {
	int watch_fd; /* JailSockets.watch_fd, borrowed */
	ForeignView view;
	/* Of what was read: */
	bool wire_up; /* jail0 has LOWER_UP and the kernel sends by it; as it was when nothing was about it */
	bool look;    /* everything must be read back: a device changed, or events were lost */
	char *foreign; /* the first change that is somebody else's, in words */
	unsigned n_events;
} Monitor;

/* Nothing is kept open. sockets and denial are borrowed. Return: 0 or a negative errno. */
int monitor_init(Monitor *monitor, const JailSockets *sockets, const Denial *denial);
void monitor_done(Monitor *monitor);

/*
 * Read what waits, never blocking. Return: 0; -ENOBUFS when the kernel dropped events (look is set then);
 * another negative errno.
 */
int monitor_read(Monitor *monitor);
/*
 * Drop what waits: everything up to now was ours, or is about to be read back. Return: 0 or a negative errno.
 */
int monitor_forget(int watch_fd);
/* Ask the kernel now. Return: 1 up, 0 not, negative errno. */
int monitor_wire_is_up(int route_fd);
