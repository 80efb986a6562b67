/* SPDX-License-Identifier: MIT */
#include "service/daemon/audit.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "service/daemon/audit-store.h"
#include "service/daemon/journal.h"
#include "service/daemon/log.h"

/* Two events of one moment keep their order by this much of a difference; a clock that was set back does not
 * matter then. */
#define ORDER_USEC USEC_PER_SEC

struct Audit {
	AuditListener listener;
	void *userdata;
	Users *users;
	uint64_t last_usec;
	bool unwritable; /* said already */
};

int audit_new(AuditListener listener, void *userdata, Users *users, Audit **ret)
{
	Audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return -ENOMEM;
	audit->listener = listener;
	audit->userdata = userdata;
	audit->users = users;
	*ret = audit;
	return 0;
}

Audit *audit_free(Audit *audit)
{
	free(audit);
	return NULL;
}

static uint64_t next_usec(Audit *audit)
{
	uint64_t now = clock_usec(CLOCK_REALTIME);

	if (now <= audit->last_usec && audit->last_usec - now < ORDER_USEC)
		now = audit->last_usec + 1;
	audit->last_usec = now;
	return now;
}

/* The user's name, or NULL. */
static const char *name_of(Audit *audit, uid_t uid)
{
	const User *user;

	return users_find(audit->users, uid, &user) < 0 ? NULL : user->name;
}

static void add_user(Audit *audit, AuditEvent *event, const char *name, uid_t uid)
{
	const char *user = name_of(audit, uid);

	if (user)
		(void)audit_event_add(event, name, user);
	else
		(void)audit_event_addf(event, name, "uid %u", uid);
}

static AuditEvent event_begin(Audit *audit, AuditKind kind, uid_t uid, const Session *session)
{
	AuditEvent event = { .kind = kind, .usec = next_usec(audit), .uid = session ? session->uid : uid };

	if (session) {
		memcpy(event.session, session->id, sizeof(event.session));
		(void)audit_event_add(&event, "user", session->user);
		(void)audit_event_add(&event, "agent", session->agent);
	} else
		(void)audit_event_add(&event, "user", name_of(audit, uid));
	return event;
}

/* The same for people. */
static char *make_message(const AuditEvent *event)
{
	_cleanup_free_ char *message = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&message, &size);
	bool failed;

	if (!f)
		return NULL;
	fprintf(f, "%s:", audit_kind_name(event->kind));
	if (event->session[0])
		fprintf(f, " session %s", event->session);
	fprintf(f, " uid %u", event->uid);
	for (size_t i = 0; i < event->n_details; i++)
		fprintf(f, ", %s %s", event->details[i].name, event->details[i].value);
	failed = ferror(f) != 0;
	if (fclose(f) != 0 || failed)
		return NULL;
	return TAKE_PTR(message);
}

/* A log that cannot be written stops nobody's work; the service's own log says so once. */
static void store(Audit *audit, const AuditEvent *event)
{
	_cleanup_free_ char *line = audit_line_encode(event), *problem = NULL;
	int r = line ? audit_store_append(event->uid, line, &problem) : -ENOMEM;

	if (r < 0 && !audit->unwritable)
		log_line("the audit log is not kept: %s", problem ? problem : strerror(-r));
	audit->unwritable = r < 0;
}

static void event_end(Audit *audit, AuditEvent *event)
{
	_cleanup_free_ char *message = make_message(event);

	store(audit, event);
	if (message && journal_send(event, message) < 0)
		log_line("%s", message);
	if (audit->listener)
		audit->listener(audit->userdata, event);
	audit_event_done(event);
}

void audit_launch(Audit *audit, const Session *session, const char *widened, const char *widened_by)
{
	AuditEvent event = event_begin(audit, AUDIT_LAUNCH, 0, session);

	(void)audit_event_add_bytes(&event, "workspace", session->workspace);
	(void)audit_event_add(&event, "widened", widened);
	(void)audit_event_add(&event, "by", widened_by);
	event_end(audit, &event);
}

void audit_posture(Audit *audit, Session *session)
{
	_cleanup_free_ char *text = NULL;
	AuditEvent event;

	if (session->posture_known || session->posture.n_rows == 0)
		return;
	session->posture_known = true;
	for (size_t i = 0; i < session->posture.n_rows; i++) {
		const char *const *row = (const char *const *)session->posture.cells + i * 3;
		_cleanup_free_ char *before = text;

		if (asprintf(&text, "%s%s%s=%s", before ?: "", before ? " " : "", row[0], row[1]) < 0) {
			text = NULL;
			return;
		}
	}
	event = event_begin(audit, AUDIT_POSTURE, 0, session);
	(void)audit_event_add(&event, "posture", text);
	(void)audit_event_add(&event, "cgroup", session->group ? "group" : "none");
	event_end(audit, &event);
}

void audit_refused(Audit *audit, uid_t uid, const char *member, const char *error, const char *agent,
		   const char *about)
{
	AuditEvent event = event_begin(audit, AUDIT_REFUSED, uid, NULL);
	const char *name = error ? strrchr(error, '.') : NULL;

	/* It is the caller's event: another user's session is named, not shown to its owner's reader alone.
	 */
	if (about)
		(void)audit_event_add(&event, "about", about);
	(void)audit_event_add(&event, "agent", agent);
	(void)audit_event_add(&event, "member", member);
	(void)audit_event_add(&event, "error", name ? name + 1 : "Failed");
	event_end(audit, &event);
}

void audit_stop(Audit *audit, const Session *session, uid_t by)
{
	AuditEvent event = event_begin(audit, AUDIT_STOP, 0, session);

	add_user(audit, &event, "by", by);
	event_end(audit, &event);
}

void audit_adopted(Audit *audit, const Session *session, char *const *marks)
{
	AuditEvent event = event_begin(audit, AUDIT_ADOPTED, 0, session);
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; marks && marks[i]; i++) {
		_cleanup_free_ char *before = text;

		if (asprintf(&text, "%s%s%s", before ?: "", before ? "; " : "", marks[i]) < 0) {
			text = NULL;
			break;
		}
	}
	(void)audit_event_add(&event, "laxer", text);
	event_end(audit, &event);
}

void audit_allow_ip(Audit *audit, uid_t uid, const Session *session, const char *verb, const char *address,
		    const char *comment, uint64_t seconds, bool confirmed)
{
	AuditEvent event = event_begin(audit, AUDIT_ALLOW_IP, uid, session);

	(void)audit_event_add(&event, "change", verb);
	(void)audit_event_add(&event, "address", address);
	(void)audit_event_add_bytes(&event, "comment", comment);
	if (seconds > 0)
		(void)audit_event_addf(&event, "seconds", "%" PRIu64, seconds);
	if (!confirmed)
		(void)audit_event_add(&event, "confirmed", "no");
	add_user(audit, &event, "by", uid);
	event_end(audit, &event);
}

void audit_allow_ip_expired(Audit *audit, const Session *session, const char *address)
{
	AuditEvent event = event_begin(audit, AUDIT_ALLOW_IP, 0, session);

	(void)audit_event_add(&event, "change", "expire");
	(void)audit_event_add(&event, "address", address);
	event_end(audit, &event);
}

void audit_allow_ip_edited(Audit *audit, const char *verb, const char *address, const char *comment,
			   const char *file, const struct stat *st)
{
	AuditEvent event = event_begin(audit, AUDIT_ALLOW_IP, st ? st->st_uid : 0, NULL);
	char written[64];
	struct tm tm;

	(void)audit_event_add(&event, "change", verb);
	(void)audit_event_add(&event, "address", address);
	(void)audit_event_add_bytes(&event, "comment", comment);
	(void)audit_event_add(&event, "file", file);
	if (st)
		add_user(audit, &event, "owner", st->st_uid);
	if (st && gmtime_r(&st->st_mtime, &tm) &&
	    strftime(written, sizeof(written), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
		(void)audit_event_add(&event, "written", written);
	event_end(audit, &event);
}

void audit_destination(Audit *audit, const Session *session, const LinkRow *row, uint64_t n)
{
	AuditEvent event = event_begin(audit, AUDIT_DENIED, 0, session);
	_cleanup_free_ char *to = row ? denied_text(row) : NULL;

	if (row)
		(void)audit_event_add(&event, "to", to ?: "no memory");
	else
		(void)audit_event_addf(&event, "destinations", "%" PRIu64 " more", n);
	event_end(audit, &event);
}

/* What was denied most often comes first, as it fits. */
static void audit_denied(Audit *audit, const Session *session)
{
	const DeniedSum *sum = &session->denied;
	_cleanup_free_ char *text = NULL;
	AuditEvent event;

	if (sum->n == 0 && session->attempts == 0)
		return;
	event = event_begin(audit, AUDIT_DENIED, 0, session);
	/* Its last word counts them all; one that was killed has said none. */
	if (session->attempts > 0)
		(void)audit_event_addf(&event, "attempts", "%" PRIu64, session->attempts);
	else
		(void)audit_event_addf(&event, "attempts", "%" PRIu64 "%s", denied_sum_count(sum),
				       sum->full ? " or more" : "");
	for (size_t i = 0; i < sum->n && i < 8; i++) {
		_cleanup_free_ char *before = text;

		if (asprintf(&text, "%s%s%s", before ?: "", before ? ", " : "", sum->items[i].what) < 0) {
			text = NULL;
			break;
		}
	}
	(void)audit_event_add(&event, "most", text);
	event_end(audit, &event);
}

void audit_exit(Audit *audit, const Session *session)
{
	AuditEvent event;
	uint64_t now;

	audit_denied(audit, session);
	event = event_begin(audit, AUDIT_EXIT, 0, session);
	if (session->exit_status == EXIT_STATUS_UNKNOWN)
		(void)audit_event_add(&event, "status", "unknown");
	else if (WIFSIGNALED(session->exit_status))
		(void)audit_event_addf(&event, "status", "signal %d", WTERMSIG(session->exit_status));
	else
		(void)audit_event_addf(&event, "status", "%d", WEXITSTATUS(session->exit_status));
	now = event.usec;
	(void)audit_event_addf(&event, "seconds", "%" PRIu64,
			       now > session->started_usec ? (now - session->started_usec) / USEC_PER_SEC
							   : 0);
	(void)audit_event_add(&event, "why", session->why);
	event_end(audit, &event);
}

static void exit_unseen(Audit *audit, uid_t uid, const char *id, const char *user, const char *agent,
			const char *why)
{
	AuditEvent event = { .kind = AUDIT_EXIT, .usec = next_usec(audit), .uid = uid };

	memcpy(event.session, id, sizeof(event.session));
	(void)audit_event_add(&event, "user", user);
	(void)audit_event_add(&event, "agent", agent);
	(void)audit_event_add(&event, "status", "unknown");
	(void)audit_event_add(&event, "why", why);
	event_end(audit, &event);
}

void audit_exit_unseen(Audit *audit, const Record *record)
{
	exit_unseen(audit, record->uid, record->id, record->user, record->agent,
		    "it ended while no service ran");
}

static void on_unended(void *userdata, const AuditEvent *launch)
{
	exit_unseen(userdata, launch->uid, launch->session, audit_event_get(launch, "user"),
		    audit_event_get(launch, "agent"), "the machine was shut down or restarted");
}

void audit_exits_unseen(Audit *audit)
{
	int r = audit_store_each_unended(on_unended, audit);

	if (r < 0)
		log_line("the audit log cannot be read for sessions that ended with the machine: %s",
			 strerror(-r));
}
