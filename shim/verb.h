/* SPDX-License-Identifier: MIT */
#pragma once

/* What the verbs share: the bus, complaints, the session that a verb is about. */

#include "dbus/client-session.h"
#include "shim/sandbox.h"

static inline void bus_close(sd_bus **bus)
{
	sd_bus_flush_close_unref(*bus);
}

#define _cleanup_bus_ _cleanup_(bus_close)
#define _cleanup_error_ _cleanup_(sd_bus_error_free)

/* Connect to the bus that is meant. Return as client_open(). */
int verb_open(const SandboxContext *context, sd_bus **ret, sd_bus_error *reterr);

/* Say why a call failed. Return: CS_EXIT_FOUND when there is no such session, else CS_EXIT_REFUSED. */
int verb_complain(const SandboxContext *context, int error, const sd_bus_error *e);
/* Return: CS_EXIT_REFUSED. */
int verb_complain_memory(const SandboxContext *context);
/* Say a sentence: cause and fix. Return: status. */
_printf_(3, 4) int verb_refuse(const SandboxContext *context, int status, const char *format, ...);

/* The table as lines or JSON. Return: an exit status. */
int verb_show_table(const SandboxCall *call, const SandboxContext *context, const PrintTable *table,
		    const char *empty);

/*
 * A call failed with error: would a password help that nobody was asked for yet, and is a person there? Then
 *who asks for it is started, *asked is set, and the call is to be made again, interactively:
 *
 *	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
 *	bool asked = false;
 *	do
 *		r = client_x(bus, asked, &error);
 *	while (r < 0 && verb_asks(context, &agent, &asked, &error));
 */
bool verb_asks(const SandboxContext *context, TextAgent *agent, bool *asked, sd_bus_error *error);

/*
 * Everybody's sessions; where that takes a password and a person is there, it is asked for. Return: as
 * client_list_all_sessions().
 */
int verb_list_all(const SandboxContext *context, sd_bus *bus, ClientSessions *ret, sd_bus_error *reterr);

/*
 * Connect, and find the session that is meant: by its id or its beginning, or, for NULL, the only one that
 * the caller may see, or the only one whose workspace the current directory lies in. A whole id that
 * is not among them may name a session that only an administrator may see: a person is asked for a password.
 * Return: 0 with *ret_bus and *ret_id, both set only then; else an exit status, and the sentence is said.
 */
int verb_find_session(const SandboxContext *context, const char *id, sd_bus **ret_bus, char **ret_id);

/* A table of a session, such as client_list_routes(). */
typedef int (*VerbList)(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr);

/*
 * Find the session as verb_find_session() does, and ask for one table of it. Return: 0 with *ret_id (which
 * may be NULL) and *ret_table; else an exit status, and the sentence is said.
 */
int verb_list(const SandboxContext *context, const char *id, VerbList list, char **ret_id,
	      ClientTable *ret_table);

/*
 * For verbs that follow: wait until the bus has something to be processed. Return: 0; 1 when whoever read the
 * output has gone, and nothing is left to be done; a negative errno.
 */
int verb_wait(const SandboxContext *context, sd_bus *bus);
