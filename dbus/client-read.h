/* SPDX-License-Identifier: MIT */
#pragma once

/* Taking replies apart, for the files that call. */

#include "dbus/client.h"

/* One value, copied. Return: 0; -EBADMSG for another type, or a NUL in bytes; -ENOMEM. */
int client_read_string(sd_bus_message *m, char type, char **ret);
int client_read_bytes(sd_bus_message *m, char **ret);
