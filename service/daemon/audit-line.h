/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One event of the audit log, and its line in a file: a JSON object (RFC 8259) with time, event, uid and
 * session first, then its details as strings. Never the value of a variable or an argument. Pure.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "dbus/names.h"

/* Of one detail, in bytes; longer ones are cut. */
#define AUDIT_TEXT_MAX 1024u
#define AUDIT_DETAILS_MAX 12u
/* Of a line with its end: every byte of every detail escaped, and room for the rest. */
#define AUDIT_LINE_MAX (2u * AUDIT_TEXT_MAX * AUDIT_DETAILS_MAX + 1024u)

/* In the order of audit_kind_name(). */
typedef enum AuditKind {
	AUDIT_LAUNCH,   /* a session was begun */
	AUDIT_POSTURE,  /* how strong each layer of its jail is, as it said first */
	AUDIT_REFUSED,  /* a call was refused */
	AUDIT_STOP,     /* somebody asked for its end */
	AUDIT_ADOPTED,  /* a new service has taken it over */
	AUDIT_ALLOW_IP, /* an internal address was opened or closed */
	AUDIT_DENIED,   /* what was denied to it, summed up at its end */
	AUDIT_EXIT,     /* it has ended */
	AUDIT_KIND_MAX,
} AuditKind;

typedef struct AuditDetail {
	char *name, *value; /* name: [a-z_]+ */
} AuditDetail;

typedef struct AuditEvent {
	AuditKind kind;
	uint64_t usec; /* CLOCK_REALTIME */
	uid_t uid;     /* whose it is: the session's owner, or who called */
	char session[CS_ID_LENGTH + 1];
	AuditDetail details[AUDIT_DETAILS_MAX];
	size_t n_details;
} AuditEvent;

void audit_event_done(AuditEvent *event);
const char *audit_kind_name(AuditKind kind);

/* Add a detail, cut and made fit to be shown (wire_text()); nothing for NULL or "". Return: 0, -ENOMEM,
 * -E2BIG. */
int audit_event_add(AuditEvent *event, const char *name, const char *value);
/* The same for what a stranger has named: wire_escape(). */
int audit_event_add_bytes(AuditEvent *event, const char *name, const char *value);
_printf_(3, 4) int audit_event_addf(AuditEvent *event, const char *name, const char *format, ...);
/* Return: NULL for a detail that is not there. */
const char *audit_event_get(const AuditEvent *event, const char *name);

/* Return: the line with its end, to be freed, or NULL without memory. */
char *audit_line_encode(const AuditEvent *event);
/* size bytes without the line's end. Return: 0; -EBADMSG for what audit_line_encode() never writes; -ENOMEM.
 */
int audit_line_decode(const char *line, size_t size, AuditEvent *ret);
