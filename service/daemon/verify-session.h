/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Verify of a session that runs: the session checks its own jail, one run at a time. Calls that came before a
 * run began and want the same share it; who comes later waits for the next one. One that is about to start is
 * checked when it runs.
 */

#include "service/daemon/manager.h"

/* Of one user, whatever they wait for; root is not counted. */
#define VERIFY_CALLS_OF_USER_MAX 16u

/* Answer call, of a client who may see session. Return: 1, the answer comes later; a negative errno with
 * *reterr. */
int verify_session_begin(Manager *manager, Client *client, sd_bus_message *call, Session *session,
			 sd_bus_error *reterr);
/* Its state is another, or it has ended: runs that waited for its start begin, or nobody waits any more. */
void verify_session_changed(Manager *manager, const Session *session);
void verify_session_ended(Manager *manager, const Session *session);
/* What the session says meanwhile. */
void verify_session_rows(Manager *manager, Session *session, const LinkRow *rows, uint32_t n);
/* The client has left the bus: nobody waits any more. What runs comes to its end. */
void verify_session_client_gone(Manager *manager, const Client *client);
/* Answer whatever still waits: the service stops. */
void verify_session_end_all(Manager *manager);
