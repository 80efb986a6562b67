/* SPDX-License-Identifier: MIT */
#pragma once

/* The one call that launch makes. */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "shim/further.h"
#include "shim/streams.h"

typedef struct LaunchCall {
	const char *agent;
	char *const *arguments;   /* without the program's name */
	char *const *environment; /* the caller's whole one */
	const Streams *streams;
	const Further *further;
	bool interactive; /* somebody may be asked for a password */
	bool background;  /* the terminal is another job's at the moment */
	int slave_fd;     /* stands for every terminal among the streams; FD_NONE without one */
} LaunchCall;

/*
 * Send Launch without a time limit: a person may be typing a password. The working directory is ours. handler
 * gets the reply or an error. Return: 0; a negative errno: -ENOENT when the working directory is gone.
 */
int launch_call_send(sd_bus *bus, const LaunchCall *call, sd_bus_message_handler_t handler, void *userdata);
/* Return: 0 with *ret_lifeline_fd to be closed, -EBADMSG, -EMFILE. */
int launch_call_read(sd_bus_message *reply, int *ret_lifeline_fd);
