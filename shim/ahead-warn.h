/* SPDX-License-Identifier: MIT */
#pragma once

/* That an agent's name starts something else than the entry, said to whoever looks. */

#include "shim/sandbox.h"

/* One line on context->err for each agent that starts without a jail; nothing inside a session or for a -H.
 */
void ahead_warn(const SandboxContext *context);
