/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One call of Launch, from the message to its answer. The message is kept, read once, and exactly what was
 * read is what runs.
 */

#include "service/daemon/manager.h"

/* Requests between their message and their answer. */
#define LAUNCHES_MAX 512u
#define LAUNCHES_OF_USER_MAX 64u
/* What they may ask for together (CLIENT_LAUNCH_BYTES_MAX is what one may), until they are handed on. */
#define LAUNCHES_BYTES_MAX (64u << 20)
#define LAUNCHES_BYTES_OF_USER_MAX (16u << 20)

/* Return: 1 when the answer comes later, or a negative errno with *reterr: nothing was started then. */
int launch_begin(Manager *manager, Client *client, sd_bus_message *call, const char *action,
		 sd_bus_error *reterr);

/* What happens to the session of a launch, if it has one. */
void launch_session_started(Manager *manager, Session *session);
void launch_session_failed(Manager *manager, Session *session, const char *error, const char *text);
void launch_session_ended(Manager *manager, Session *session);

/* The caller has left: its question is taken back, its session hung up. */
void launch_client_gone(Manager *manager, Client *client);
/* Refuse whatever is open, because the service ends. */
void launch_end_all(Manager *manager);
