/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Verify of the manager and of a session, and rows as they come: for clients that wait, and for those with a
 * loop of their own, which send the message themselves and read the answer and the signals in their
 * callbacks.
 */

#include "dbus/client.h"

/* What Verify of the manager is asked. Strings are borrowed. */
typedef struct ClientVerify {
	const char *agent;
	char *const *environment;
	const char *directory; /* absolute */
	const char *session;   /* the whole id of a session: it is checked, and the above is nothing */
	bool probes;
	const char *call; /* the option call: rows come as signals; NULL: in the answer alone */
	bool interactive; /* a person is there to answer polkit's dialog */
} ClientVerify;

/* What it answers. */
typedef struct ClientVerdict {
	bool passed;
	ClientTable rows; /* number, status, title, detail */
} ClientVerdict;

void client_verdict_done(ClientVerdict *verdict);

/* The message, to be sent and freed. Return: 0 or a negative errno. */
int client_verify_message(sd_bus *bus, const ClientVerify *verify, sd_bus_message **ret);
/* Return: 0, -EBADMSG, -ENOMEM. */
int client_read_verdict(sd_bus_message *reply, ClientVerdict *ret);

/*
 * The signal Row, of Verify and Doctor: *ret is a table of one row: id, status, title, detail, fix. Return:
 * 1; 0 when it is of another call than `call`; -EBADMSG; -ENOMEM.
 */
int client_read_row_signal(sd_bus_message *m, const char *call, ClientTable *ret);

/*
 * Send message, with the option call, and wait for its answer, however long that takes. function gets each
 * row as it comes; what it returns below 0 ends the wait. wait: waits until the bus has something to be
 * processed, and returns 0, or what ends this. Return: 0 with *ret_reply, or a negative errno with *reterr.
 */
typedef int (*ClientRowFunction)(void *userdata, const ClientTable *row);
int client_call_for_rows(sd_bus *bus, sd_bus_message *message, const char *call, ClientRowFunction function,
			 int (*wait)(void *userdata, sd_bus *bus), void *userdata, sd_bus_message **ret_reply,
			 sd_bus_error *reterr);
