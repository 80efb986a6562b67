/* SPDX-License-Identifier: MIT */
#pragma once

/* The audit log on the bus: ListEvents, and the signal Event to those who subscribed and may see it. */

#include <systemd/sd-bus.h>

#include "service/daemon/manager.h"

/* Answers a call of ListEvents, later. Return: 1, or a negative errno with *reterr. */
int audit_bus_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		   sd_bus_error *reterr);
/* client has gone, or NULL: the service ends. */
void audit_bus_forget(Manager *manager, const Client *client);
/* userdata: the manager. */
void audit_bus_tell(void *userdata, const AuditEvent *event);
