/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The tables that callers ask for and a session answers: ListRoutes, ListExposure, ListEnvironment,
 * ListPorts, ListDenied. One question of a session is under way at a time, so that the link has room for what
 * the service itself asks; calls for the same table that came before it was sent share its answer, so that
 * whoever asks a silent session waits for three answers at most, however many others ask.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/manager.h"

/* Of one user, whatever they wait for; root is not counted. */
#define SESSION_TABLE_CALLS_OF_USER_MAX 16u
/* Rows that are taken of a table; a session has no more. */
#define SESSION_EXPOSURE_ROWS_MAX 256u
#define SESSION_ROUTES_ROWS_MAX 2048u

/* Is the member one of them? */
bool session_table_of_member(const char *member, LinkTable *ret);

/*
 * Answer call, of a client who may see session, with a table of it. Return: 1, the answer comes later; a
 * negative errno with *reterr.
 */
int session_table_answer(Manager *manager, Client *client, sd_bus_message *call, Session *session,
			 LinkTable table, sd_bus_error *reterr);

/* The client has left the bus: nobody waits any more. */
void session_tables_client_gone(Manager *manager, const Client *client);
/* Answer whatever still waits: the service stops. */
void session_tables_end_all(Manager *manager);
/* Appended to reply as the member's result: paths are bytes, the rest is text or a number. Return:
 * >= 0; -EBADMSG where a number should be and is none; another negative errno. */
int session_table_append(sd_bus_message *reply, LinkTable table, const LinkCells *cells);
/*
 * One row as a struct of the types signature ("qsss"; "ay" is bytes, and texts pass through wire_text(),
 * those of SESSION_DENIED_ROW, which hold names that agents choose, through wire_escape()). Return: >= 0;
 * -EBADMSG for a number that is none; another negative errno.
 */
int session_row_append(sd_bus_message *m, const char *signature, char *const *cells, size_t n_columns);
/* What -EPROTONOSUPPORT of a session is to a caller; its id. */
#define SESSION_FOREIGN_FORMAT                                                                            \
	"Another version of claude-sandbox has started the session %s, and it does not understand this; " \
	"stop it "                                                                                        \
	"('claude-sandbox stop') and start it anew."
/* Of LINK_TABLE_DENIED. */
#define SESSION_DENIED_ROW "tssqsst"
