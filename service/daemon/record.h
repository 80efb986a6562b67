/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the service writes down about a session, so that its successor can take the session over: root's file
 * CS_SESSIONS_DIR/ID/record. Pure: bytes in, values out.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "dbus/names.h"

#define RECORD_BYTES_MAX (16u * 1024)

typedef struct Record {
	char *id, *agent, *user, *workspace;
	uid_t uid;
	uint64_t started_usec; /* CLOCK_REALTIME */
	pid_t pid;             /* of `session` */
	uint64_t start_ticks;  /* of that process, proc_pid_stat(5) */
	/* Every later version begins with these, so that a session of it can still be taken over. */
} Record;

void record_done(Record *record);
int record_encode(const Record *record, uint8_t **ret_data, size_t *ret_size);
/* Return: 0, -EBADMSG, -ENOMEM. */
int record_decode(const void *data, size_t size, Record *ret);

/* Is this a session's id: CS_ID_LENGTH characters of [a-z2-7]? */
bool session_id_valid(const char *id);
