/* SPDX-License-Identifier: MIT */
#pragma once

/* Three versions of a state file made one. Pure. */

#include "dbus/base.h"

typedef struct StateVersion {
	const char *text; /* an object that passed state_json_check(); NULL: there is none */
	size_t size;
} StateVersion;

/*
 * What becomes of the person's file (host) and the agent's (agent), which both come from base. A key that one
 * side alone changed, added or removed is as that side has it; objects that both changed are merged likewise,
 * to a bounded depth; of anything else that both changed the person's version holds, and *ret_conflict says
 * so: the other's is the loser. Values that are taken over keep their bytes.
 *
 * Return: 0 with *ret_text, to be freed; -E2BIG for objects with too many members; -ENOMEM.
 */
int state_merge(const StateVersion *base, const StateVersion *agent, const StateVersion *host,
		char **ret_text, size_t *ret_size, bool *ret_conflict);
