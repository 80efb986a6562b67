/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sessions whose policy is laxer than the configuration now: each is marked, in its warnings and its posture.
 * What a session was started with lies in its run directory, so that the next service can tell as well.
 */

#include "service/daemon/manager.h"

/* Look whether the file is another one than when the session's marks were made, and make them anew then.
 * Return: do they differ from before? */
bool drift_refresh(Session *session);
/* The same for all, and tell who subscribed. */
void drift_refresh_all(Manager *manager);
