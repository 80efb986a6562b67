/* SPDX-License-Identifier: MIT */
#pragma once

/* The calls of one session, and what it answers. It speaks of itself: its user can make it say anything. */

#include "dbus/client.h"

/* The properties of a session. */
typedef struct ClientDetails {
	ClientSession session; /* its path is not among them: NULL */
	uint32_t leader;
	bool jailed;
	int32_t exit_status;
	uint64_t denied;      /* attempts so far */
	ClientTable warnings; /* text */
	ClientTable posture;  /* layer, strength, detail */
} ClientDetails;

void client_details_done(ClientDetails *details);

/* A reply of GetAll. Return: 0; -EBADMSG for one of other types, or that lacks a property; -ENOMEM. */
int client_read_details(sd_bus_message *reply, ClientDetails *ret);

/*
 * id: the whole id of a session that the caller may see. Return: 0, or a negative errno with *reterr.
 */
int client_get_details(sd_bus *bus, const char *id, ClientDetails *ret, sd_bus_error *reterr);
/* path (bytes), kind, mode, origin, reason */
int client_list_exposure(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);
/* name, origin */
int client_list_environment(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);
/* port (decimal), direction, state, origin */
int client_list_ports(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);
/* last time, protocol, address, port, program, reason, count; CLIENT_DENIED_ROW */
#define CLIENT_DENIED_ROW "tssqsst"
int client_list_denied(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);
/* destination, verdict, device, reason, state */
int client_list_routes(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);
