/* SPDX-License-Identifier: MIT */
#pragma once

/* Doctor: what the service itself can tell, without a session. Nothing here opens a path that a caller names.
 */

#include "service/daemon/launch-start.h"

/* A row for the reply of launch, sent at once to whoever wants that. A row that is there stays. */
void doctor_add(Launch *launch, const char *id, RowStatus status, const char *detail, const char *fix);
/* The same, of a sentence "cause; fix". */
void doctor_add_sentence(Launch *launch, const char *id, RowStatus status, const char *sentence);
bool doctor_has(const Launch *launch, const char *id);

/* Installed files, configuration, run directory, control groups, groups of the caller. */
void doctor_add_own(Launch *launch);
