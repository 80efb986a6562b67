/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/daemon/manager.h"

/*
 * Take over the sessions that an earlier service has left, and clear away those that have ended. A directory
 * is believed only if root made it, its record names a process that still is the one of the record, and that
 * process is who listens on the socket.
 */
void adopt_sessions(Manager *manager);
