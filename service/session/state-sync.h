/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Making the person's state file and the agent's the same again: who changed alone is followed, and when both
 * did, they are merged (state-merge.h).
 *
 * The base is what both last had in common. A step changes one file and then the base:
 *
 *   publish   the person's file := the merge, base := the agent's file
 *   import    the agent's file := the merge, base := the merge
 *
 * Before it, the base to be lies in the record's .next with a digest of what the step writes. A step that was
 * killed is finished when the digest is that of what is there, and forgotten when it is not; so that no
 * version is taken for the ancestor of one that does not descend from it. Each file is replaced whole, only
 * in the place of the one that was read, and under Claude's own lock (state-lock.h).
 */

#include "service/session/state-files.h"

typedef struct StateSyncOptions {
	bool launch;    /* before an agent starts: what is no state at all is set aside, and made anew */
	bool deletions; /* what is missing was deleted; else it may be about to be made again */
} StateSyncOptions;

/*
 * Under the user's lock, which is waited for; run it in a process of its own. What stays undone for a reason
 * that the person can change is appended to *warnings, one line each. Return: 0; 1 when nothing is left to
 * do but a deletion; -EAGAIN when another program is at one of the files: come again; another negative errno.
 */
int state_sync(const StateFiles *files, const StateSyncOptions *options, char ***warnings);
