/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/daemon/manager.h"

/*
 * Take over the sessions that an earlier service has left, and clear away those that have ended. A directory
 * is believed only if root made it, its record names a process that still is the one of the record, and that
 * process is who listens on the socket; a living process that does not listen any more is killed. What the
 * sessions' users ask meanwhile waits until each has said how it is, for at most 2 s.
 */
void adopt_sessions(Manager *manager);
/* Must what this client asks wait, for a session that it may see? */
bool adopt_awaits(Manager *manager, const Client *client);
