/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * THE ENTRY-POINT GUARD. The person's shell takes the first `claude` on its PATH. Where a directory that an
 * agent may write stands before CS_BIN_DIR there, the agent could put a `claude` of its own into it, which
 * would run outside of every jail at the next launch. So in each such directory /dev/null lies read-only over
 * every name of ours, and the directory and all above it that the agent could rename are mount points of
 * their own: they stay where they are. What no mount can hold refuses the launch (UnsafeEntryPoint): an entry
 * that means the current directory, one that the agent could make, one that is reached through a link that
 * the agent could change, a file of such a name that the agent may write. Where CS_BIN_DIR is not on PATH,
 * every directory counts.
 *
 * PATH is data here: it is the request's, as the caller's shell has it, and nothing is executed by it.
 *
 * A mount point holds in its own mount namespace only; that these names hold in every one that an agent makes
 * is the work of session/anchors.
 */

#include "dbus/base.h"

/* What may not be planted; NULL-terminated. */
const char *const *entry_guard_names(void);
