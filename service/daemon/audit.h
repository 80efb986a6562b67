/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What happened, for those who ask later: each event goes into the log on the disk (audit-store.h), to the
 * journal where there is one, else to stderr, and to a listener. Names of variables may be in it, never their
 * values, nor arguments, nor the sentence of a refusal, which may hold either.
 */

#include <sys/stat.h>

#include "dbus/base.h"
#include "service/daemon/audit-line.h"
#include "service/daemon/record.h"
#include "service/daemon/registry.h"
#include "service/daemon/users.h"

typedef struct Audit Audit;
/* event is borrowed. */
typedef void (*AuditListener)(void *userdata, const AuditEvent *event);

/* users: who is shown by name; it outlives the log. */
int audit_new(AuditListener listener, void *userdata, Users *users, Audit **ret);
Audit *audit_free(Audit *audit);
DEFINE_CLEANUP(Audit, audit_free)

/* widened: what this session got beyond the configuration, and who let it; both NULL for nothing. */
void audit_launch(Audit *audit, const Session *session, const char *widened, const char *widened_by);
/* What the session has said first about its jail. Once for each session. */
void audit_posture(Audit *audit, Session *session);
/* uid called member and got error. agent, about (the id of a session, as it was asked for: whether there
 * is one is the asker's to learn elsewhere): as far as it was about one, else NULL. */
void audit_refused(Audit *audit, uid_t uid, const char *member, const char *error, const char *agent,
		   const char *about);
void audit_stop(Audit *audit, const Session *session, uid_t by);
/* marks: why its policy is laxer than the configuration now, or NULL. */
void audit_adopted(Audit *audit, const Session *session, char *const *marks);
/*
 * uid has opened an address, or closed it (verb: "add", "remove", "allow", "revoke"): for one session, or,
 * for NULL, in the configuration. comment may be NULL; seconds 0: without an end; confirmed: by the session,
 * which may do it yet.
 */
void audit_allow_ip(Audit *audit, uid_t uid, const Session *session, const char *verb, const char *address,
		    const char *comment, uint64_t seconds, bool confirmed);
/* What was opened for it for a time is closed: the time is over. */
void audit_allow_ip_expired(Audit *audit, const Session *session, const char *address);
/*
 * Somebody has opened an address, or closed it ("add", "remove"), by another way than the service: who,
 * nobody knows. file: the configuration; st: what stat(2) says of it now, or NULL where it has gone.
 */
void audit_allow_ip_edited(Audit *audit, const char *verb, const char *address, const char *comment,
			   const char *file, const struct stat *st);
/* A destination that was denied to it for the first time; or, with row NULL, n of them. */
void audit_destination(Audit *audit, const Session *session, const LinkRow *row, uint64_t n);
/* What was denied to it, if anything, and how it ended. */
void audit_exit(Audit *audit, const Session *session);
/* One that ended while no service ran, as its record or its launch in the log has it. */
void audit_exit_unseen(Audit *audit, const Record *record);
/* After a start of the machine: those whose launch is in the log, and whose end is not. */
void audit_exits_unseen(Audit *audit);
