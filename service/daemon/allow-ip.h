/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The addresses that agents may reach beside the internet, changed: in the configuration for all sessions, or
 * in one session alone.
 *
 * A change of the configuration: limits → polkit → the file → every running session, at once. The file is the
 * decision. A session that does not confirm within two seconds is named in the answer, and ended where an
 * address was taken away: it can neither veto nor delay. The same is done when the file was edited by hand,
 * and for a session that was started from, or taken over with, what the file said earlier.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/manager.h"

/* Calls under way, of one user (root is not counted) and in all. */
#define ALLOW_CALLS_OF_USER_MAX 16u
#define ALLOW_CALLS_MAX 128u
/* Of a session's own addresses that are shown. */
#define ALLOW_ROWS_OF_SESSION_MAX 128u

/* Methods. Return: 1, the answer is given or comes later; a negative errno with *reterr. */
int allow_ip_add(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		 sd_bus_error *reterr);
int allow_ip_remove(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		    sd_bus_error *reterr);
int allow_ip_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		  sd_bus_error *reterr);
/* AllowIp and RevokeIp of a session that the client may see. */
int allow_ip_session(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		     Session *session, sd_bus_error *reterr);

/* The file says something else than before; session: has begun to listen. */
void allow_ip_file_changed(Manager *manager);
void allow_ip_connected(Manager *manager, Session *session);

/* Nobody waits for the answers any more; what was decided goes on. */
void allow_ip_client_gone(Manager *manager, const Client *client);
/* Answer whatever still waits: the service stops. */
void allow_ip_end_all(Manager *manager);
