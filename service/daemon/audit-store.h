/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The audit log on the disk: CS_LOG_DIR (root's, 0700) with a file of lines for each uid and one that came
 * before it, AUDIT_FILE_MAX bytes each. A file of its own for each user, so that nobody can push the events
 * of others out of a log that has an end. A line that a loss of power has torn goes with the next one that is written.
 */

#include "dbus/base.h"
#include "service/daemon/audit-line.h"

#define AUDIT_FILE_MAX (1u << 20)
/* Events of one question. */
#define AUDIT_EVENTS_MAX 1000u

/* Write one line (with its end) into a user's file, whole or not at all. Return: 0 or a negative errno with
 * *ret_problem. */
int audit_store_append(uid_t uid, const char *line, char **ret_problem);

typedef struct AuditQuery {
	bool everybody; /* not only uid's */
	uid_t uid;
	const char *session;    /* only of this one; NULL: of all, and what belongs to none */
	uint64_t before, after; /* usec, exclusive; before 0: no limit */
	unsigned kinds;         /* 1 << AuditKind of those that are wanted; 0: all */
	size_t max;             /* so many of the newest */
} AuditQuery;

typedef struct AuditEvents {
	AuditEvent *events; /* the oldest first */
	size_t n;
} AuditEvents;

void audit_events_done(AuditEvents *events);
/*
 * Call each with the launch of every session that has no exit; it may append. Return: 0, also without a log;
 * -ENOMEM; other negative errnos.
 */
int audit_store_each_unended(void (*each)(void *userdata, const AuditEvent *launch), void *userdata);

/*
 * A reading in steps, each of at most AUDIT_STEP_BYTES of the files: the newest lines come first, until there are
 * enough. The log grows meanwhile; what comes after the beginning may or may not be in it.
 */
#define AUDIT_STEP_BYTES (32u << 10)
typedef struct AuditReading AuditReading;
/* query is copied. Return: 0, also without any file; -ENOMEM; other negative errnos. */
int audit_reading_new(const AuditQuery *query, AuditReading **ret);
AuditReading *audit_reading_free(AuditReading *reading);
DEFINE_CLEANUP(AuditReading, audit_reading_free)
/* Return: 1 when there is more to read, 0 when *ret has all; negative errnos. */
int audit_reading_step(AuditReading *reading, AuditEvents *ret);

/* All steps at once: of the service's own question at its start. Return: as audit_reading_new(). */
int audit_store_read(const AuditQuery *query, AuditEvents *ret);
