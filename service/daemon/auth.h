/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who may do what. One table says it for every member of the interfaces, and what is not in the table is
 * denied. Where the table names an action, polkit is asked: about the sender's name on the bus,
 * asynchronously, with a dialog only if the caller's own message allows one (interactive flag). Nothing is
 * changed before the answer; the caller keeps the request and continues exactly it; a sender that leaves
 * takes its dialog along. Root is not asked about. Without an answer the answer is no, but for launch where
 * polkit is not there at all. Limits are looked at before: nobody types a password for what is refused
 * anyway.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/client.h"

typedef enum AuthRule {
	AUTH_DENIED, /* nobody */
	AUTH_OPEN,   /* everybody, who gets what they may see */
	AUTH_ACTION, /* who is allowed action */
	AUTH_OWNER,  /* whose session it is; others who are allowed action */
} AuthRule;

typedef struct AuthEntry {
	const char *interface, *member;
	AuthRule rule;
	const char *action;
	bool lists; /* it changes nothing: without its answer it is for nothing */
} AuthEntry;

/* For lists: index from 0; NULL at the end. */
const AuthEntry *auth_at(size_t index);
/* Return: the entry; one that denies for a member that has none. */
const AuthEntry *auth_find(const char *interface, const char *member);

typedef struct Auth Auth;
typedef struct AuthQuery AuthQuery;

int auth_new(sd_bus *bus, Auth **ret);
Auth *auth_free(Auth *auth);

/*
 * result: 0 for yes; -ENOKEY for what takes a password that the call did not allow to ask for; -EACCES for
 * no. reason: a sentence.
 */
typedef void (*AuthFunction)(void *userdata, int result, const char *reason);
/* The name of the error that says so. */
const char *auth_error_name(int result);

/* Strings are copied, but for the actions. */
typedef struct AuthQuestion {
	const char *actions[2]; /* all are needed; the second may be NULL */
	const char *message;    /* of the dialog; "$(KEY)" stands for a detail. NULL: the action's own */
	/* Key, value, ..., NULL: what rules can look up. Text of callers goes here alone, escaped and
	 * bounded: in message it could name a detail. May be NULL. */
	const char *const *details;
	bool quiet; /* never a dialog, whatever the call allows */
} AuthQuestion;

/*
 * May the sender of call do all of it? At most one dialog is shown, and only after everything else was
 * allowed; where two actions take a password it is about the second. Return: 1 for yes at once (root); 0 when
 * function will be called once, later, unless the query is cancelled first; a negative errno.
 */
int auth_ask_question(Auth *auth, const Client *client, sd_bus_message *call, const AuthQuestion *question,
		      AuthFunction function, void *userdata, AuthQuery **ret);
/* The same about one action. details: in words, for the dialog, or NULL. */
int auth_ask(Auth *auth, const Client *client, sd_bus_message *call, const char *action, const char *details,
	     AuthFunction function, void *userdata, AuthQuery **ret);
/* Take the question back; its dialog closes, function is not called. */
AuthQuery *auth_query_cancel(AuthQuery *query);
