/* SPDX-License-Identifier: MIT */
#pragma once

/* What the bus says of who is connected (D-Bus specification, GetConnectionCredentials). */

#include "service/daemon/client.h"

/*
 * Sets uid, pid and groups of client, or its problem where one of the last two is missing. *ret_uid: the uid was
 * there. Return: >= 0 or a negative errno.
 */
int client_read_credentials(sd_bus_message *m, Client *client, bool *ret_uid);
