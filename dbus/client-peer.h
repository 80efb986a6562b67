/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From whom a signal is. The bus gives a client what it asked for by match rules, and whatever anybody sends
 * to its own name: another user may send it any signal (dbus-daemon(1), "send_type"). The library cannot tell
 * the two apart where a rule names a well-known name.
 */

#include "dbus/client.h"

/*
 * The owner of the service's name, which is started if need be. Return: 0 with *ret to be freed, NULL on a
 * connection without a bus, where there is nobody else; a negative errno with *reterr.
 */
int client_find_owner(sd_bus *bus, char **ret, sd_bus_error *reterr);
/* Is m from owner? NULL: from whom does not matter. */
bool client_is_from(sd_bus_message *m, const char *owner);
/* Is it from the bus itself, as NameOwnerChanged has to be? */
bool client_is_from_bus(sd_bus_message *m);
