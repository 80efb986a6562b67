/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/daemon/manager.h"

/* Put the sessions' objects on the bus: each exists for those who may see it. Return: 0 or a negative errno.
 */
int session_bus_register(Manager *manager);
