/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who sees which session: its user, root, and a connection that polkit has allowed manage-sessions (auth.h).
 * That yes holds for SIGHT_USEC, as long as polkit keeps a password by itself; then it is asked again.
 *
 * Lists, counts, signals and the tree of objects show what a connection sees, and never ask. Two things ask:
 * ListAllSessions, and a call to the object of a session that another user runs. The latter is answered, when
 * the answer is no, as if the object were not there; until the answer, what comes behind it on that
 * connection waits.
 */

#include "service/daemon/manager.h"

#define SIGHT_USEC (5 * 60 * USEC_PER_SEC)
/* Questions of one user that are open. */
#define SIGHTS_OF_USER_MAX 16u

bool sight_is_wide(const Client *client);
bool sight_allows(const Client *client, const Session *session);

/* ClientEvents.holds: must m wait until polkit has answered? */
bool sight_holds(Manager *manager, Client *client, sd_bus_message *m);

/* reply(manager, client, call) is called when client may see everything, or call is refused. */
typedef int (*SightReply)(Manager *manager, Client *client, sd_bus_message *call);
/* Return: 1, the answer comes later or is sent; a negative errno with *reterr. */
int sight_widen(Manager *manager, Client *client, sd_bus_message *call, SightReply reply,
		sd_bus_error *reterr);

/* The client has left, or the service ends (client NULL): nobody is asked any more. */
void sight_forget(Manager *manager, const Client *client);
