/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "service/link/slots.h"

/*
 * The descriptors with which the service executes `session`. Nothing else is open, the environment is empty,
 * the directory is "/".
 */
enum {
	SPAWN_FD_LINK = 3, /* bound, not yet listening: session calls listen(2) */
	SPAWN_FD_LISTENING =
		4, /* pipe to the service; session closes it when it listens, or writes a SpawnFailure */
	SPAWN_FD_REQUEST = 5, /* sealed memfd, service/plan/request.h */
	SPAWN_FD_LIFELINE = 6,
	SPAWN_FD_STDIN = 7, /* slot 0 (slots.h); open only if the request says so */
	SPAWN_FD_STDOUT = 8,
	SPAWN_FD_STDERR = 9,
	SPAWN_FD_GUARD = 10, /* root's lock file, read-only: one open file description for each session */
	SPAWN_FD_STATE = 11, /* the same for those who write state: locked for moments */
	SPAWN_FD_MEMORY =
		12, /* memory.events of the session's group (cgroup-v2.rst); open only if it has one */
	SPAWN_FD_FURTHER = 13, /* slot 3 and on */
	SPAWN_FD_MAX = SPAWN_FD_FURTHER + SLOTS_FURTHER_MAX,
};

#define SPAWN_FD_OF(slot)                                            \
	((slot) < SLOTS_FIRST_FURTHER ? SPAWN_FD_STDIN + (int)(slot) \
				      : SPAWN_FD_FURTHER + (int)((slot)-SLOTS_FIRST_FURTHER))

/* Open files that a session needs: what the jail is given lies above all numbers that it has there. */
#define SPAWN_FILES_NEEDED 512u

/* The stage of `session` itself, which could not begin to listen; the others are the service's own. */
#define SPAWN_STAGE_PROGRAM 100u

typedef struct SpawnFailure {
	uint32_t stage;
	int32_t error; /* positive errno, or the key */
} SpawnFailure;
