/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lock that Claude itself takes beside a state file while it reads, changes and replaces it: an empty
 * directory, "NAME.lock", which counts for nothing when it is ten seconds old (its holder refreshes it). An
 * agent can hold one for ever, so that nobody waits for it.
 *
 * Ours are told from Claude's by their mode: whoever holds the user's lock and meets one knows that its maker
 * was killed. So are those that stand for one on the other side (state-mirror.h): they keep agents off each
 * other, and not us, who write nothing that an agent inside works on.
 */

#include <sys/stat.h>

#include "dbus/base.h"

#define STATE_LOCK_SUFFIX ".lock"

/* The session's umask(2) leaves nothing for others, so that the two differ in the owner's bits. */
#define STATE_LOCK_MODE 0500
#define STATE_MIRROR_MODE 0100
#define STATE_LOCK_SECONDS 10

/* Is it one that nobody has refreshed for so long? */
bool state_lock_is_old(const struct stat *st);
/* Is it a directory of ours with this mode? */
bool state_lock_has_mode(const struct stat *st, mode_t mode);

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
