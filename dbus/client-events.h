/* SPDX-License-Identifier: MIT */
#pragma once

/* The audit log, as the service answers and signals it. */

#include "dbus/client.h"

typedef struct ClientEvent {
	uint64_t usec; /* CLOCK_REALTIME */
	char *kind;
	uint32_t uid;
	char *session;       /* "" for none */
	ClientTable details; /* name, text */
} ClientEvent;

typedef struct ClientEvents {
	ClientEvent *items;
	size_t n;
} ClientEvents;

void client_event_done(ClientEvent *event);
void client_events_done(ClientEvents *events);
/* Return: the text of a detail, or NULL. */
const char *client_event_detail(const ClientEvent *event, const char *name);

/* The event that stands next in m: the argument of the signal Event. Return: 0, -EBADMSG, -ENOMEM. */
int client_read_event(sd_bus_message *m, ClientEvent *ret);
int client_read_events(sd_bus_message *reply, ClientEvents *ret);
/* session: a whole id, or "" for all; only what is later than after_usec. Return: 0, or a negative errno with
 * *reterr. */
int client_list_events(sd_bus *bus, const char *session, uint64_t after_usec, ClientEvents *ret,
		       sd_bus_error *reterr);
/* From now on the manager's signals come to this connection. */
int client_subscribe(sd_bus *bus, sd_bus_error *reterr);
