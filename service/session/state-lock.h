/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lock that Claude itself takes beside a state file while it reads, changes and replaces it: an empty
 * directory, "NAME.lock", which counts for nothing when it is ten seconds old (its holder refreshes it). An
 * agent can hold one for ever, so that nobody waits for it.
 *
 * Ours are told from Claude's by their mode: whoever holds the user's lock and meets one knows that its maker
 * was killed.
 */

#include "dbus/base.h"

#define STATE_LOCK_SUFFIX ".lock"

typedef struct StateLock {
	int directory_fd; /* borrowed */
	char *name;       /* NULL: not held */
} StateLock;

/*
 * Take it. Return: 0, also where nobody can make one, and the lock is not held then; -EAGAIN while another
 * has it; -ENOMEM.
 */
int state_lock_take(StateLock *lock, int directory_fd, const char *name);
void state_lock_drop(StateLock *lock);
/* Remove one that a killed holder of ours left. */
void state_lock_sweep(int directory_fd, const char *name);
