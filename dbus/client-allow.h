/* SPDX-License-Identifier: MIT */
#pragma once

/* The calls that change which internal addresses are reached: of all sessions, or of one. */

#include "dbus/client.h"

/*
 * interactive: a person is there to answer polkit's dialog. *ret_unconfirmed: the sessions that did not
 * confirm, NULL-terminated or NULL, to be freed with strings_free(). Return: 0, or a negative errno with
 * *reterr.
 */
int client_add_allow_ip(sd_bus *bus, const char *address, const char *comment, bool interactive,
			char ***ret_unconfirmed, sd_bus_error *reterr);
/* Could it be added? Asks nobody for a password. */
int client_check_allow_ip(sd_bus *bus, const char *address, const char *comment, sd_bus_error *reterr);
int client_remove_allow_ip(sd_bus *bus, const char *address, bool interactive, char ***ret_unconfirmed,
			   sd_bus_error *reterr);
/* id: a whole one. seconds 0: until the session ends. */
int client_allow_ip(sd_bus *bus, const char *id, const char *address, uint64_t seconds, bool interactive,
		    sd_bus_error *reterr);
int client_revoke_ip(sd_bus *bus, const char *id, const char *address, bool interactive,
		     sd_bus_error *reterr);
