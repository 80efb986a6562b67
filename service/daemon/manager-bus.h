/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/daemon/manager.h"

/* Put the manager's object on the bus. Return: 0 or a negative errno. */
int manager_bus_register(Manager *manager);

/*
 * What every method of ours goes through first: the sender is known, and auth's table has an entry. Return: 0
 * with *ret_client and *ret_entry; a negative errno with *reterr.
 */
int manager_bus_admit(Manager *manager, sd_bus_message *m, Client **ret_client, const AuthEntry **ret_entry,
		      sd_bus_error *reterr);
