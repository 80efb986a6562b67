/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What one session is told of the configuration's addresses: always all of them, in one packet, and never a
 * second one before the first is answered; who asks meanwhile waits for the newest. The service remembers
 * what the session has taken.
 */

#include "dbus/base.h"
#include "service/daemon/registry.h"
#include "service/plan/config.h"

/* The configuration's addresses at one time, shared by all who are told of them. */
typedef struct AllowList {
	unsigned n_ref;
	char **texts; /* NULL-terminated, or NULL for none */
} AllowList;

/* Those that do not come from a caller's environment. Return: NULL without memory. */
AllowList *allow_list_new(const Config *config);
AllowList *allow_list_ref(AllowList *list);
AllowList *allow_list_unref(AllowList *list);
DEFINE_CLEANUP(AllowList, allow_list_unref)

typedef struct SessionReach SessionReach;

/*
 * result: 0, and problem says in the session's words what could not be opened, or is NULL; -ESRCH when the
 * session has ended; its own no; -ETIMEDOUT; -ECONNRESET and others when it does not keep to the protocol.
 */
typedef void (*ReachFunction)(void *userdata, int result, const char *problem);

/* known: what the session was started with, NULL for one that was taken over. Return: 0 or -ENOMEM. */
int session_reach_new(Session *session, const Config *known);
/* The session has ended: -ESRCH to whoever waits. Return: NULL. */
SessionReach *session_reach_free(SessionReach *reach);

/* Tell it; function is called once, later. Return: 0 or a negative errno. */
int session_reach_tell(Session *session, AllowList *list, ReachFunction function, void *userdata);

/* Is that result the session's own no? Any other error says that it did not listen to the end. */
bool session_reach_is_refusal(int result);
/* May one of the configuration's addresses be open in it, as far as we know, that list does not have? */
bool session_reach_has_more(const Session *session, const AllowList *list);
/* Has it what list has, as far as we know, and nothing else? */
bool session_reach_is(const Session *session, const AllowList *list);
