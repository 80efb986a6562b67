/* SPDX-License-Identifier: MIT */
#include "service/daemon/allow-expiry.h"

#include <time.h>

#include "service/daemon/audit-store.h"
#include "service/daemon/log.h"

/* Later than the session, which closes them within 20 ms. */
#define LATER_USEC (100 * USEC_PER_MSEC)
#define MISSED 1u

struct AllowExpiry {
	Audit *audit;
	Session *session;
	char *address;
	sd_event_source *timer; /* CLOCK_BOOTTIME, as the session's own */
	bool missed;            /* its time was over before it was known */
	AllowExpiry *next;
};

static void expiry_free(AllowExpiry *expiry)
{
	sd_event_source_disable_unref(expiry->timer);
	free(expiry->address);
	free(expiry);
}

AllowExpiry *allow_expiry_free(AllowExpiry *expiry)
{
	while (expiry) {
		AllowExpiry *next = expiry->next;

		expiry_free(expiry);
		expiry = next;
	}
	return NULL;
}

static void forget(Session *session, const char *address)
{
	for (AllowExpiry **e = &session->expiries; *e; e = &(*e)->next)
		if (streq((*e)->address, address)) {
			AllowExpiry *found = *e;

			*e = found->next;
			expiry_free(found);
			return;
		}
}

/* Takes expiry. */
static void end(AllowExpiry *expiry)
{
	_cleanup_free_ char *address = TAKE_PTR(expiry->address);
	Session *session = expiry->session;
	Audit *audit = expiry->audit;

	for (AllowExpiry **e = &session->expiries; *e; e = &(*e)->next)
		if (*e == expiry) {
			*e = expiry->next;
			break;
		}
	expiry_free(expiry);
	audit_allow_ip_expired(audit, session, address);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	end(userdata);
	return 0;
}

static size_t count(const Session *session)
{
	size_t n = 0;

	for (const AllowExpiry *e = session->expiries; e; e = e->next)
		n++;
	return n;
}

static int expect(sd_event *event, Audit *audit, Session *session, const char *address, uint64_t usec)
{
	AllowExpiry *expiry;
	int r;

	if (count(session) >= ALLOW_EXPIRIES_MAX)
		return -E2BIG;
	expiry = calloc(1, sizeof(*expiry));
	if (!expiry)
		return -ENOMEM;
	*expiry = (AllowExpiry){ .audit = audit, .session = session, .missed = usec == MISSED };
	expiry->address = strdup(address);
	r = expiry->address ? sd_event_add_time_relative(event, &expiry->timer, CLOCK_BOOTTIME,
							 usec + LATER_USEC, LATER_USEC, on_time, expiry)
			    : -ENOMEM;
	if (r < 0) {
		expiry_free(expiry);
		return r;
	}
	expiry->next = session->expiries;
	session->expiries = expiry;
	return 0;
}

void allow_expiry_set(sd_event *event, Audit *audit, Session *session, const char *address, uint64_t usec)
{
	int r;

	forget(session, address);
	if (usec == 0)
		return;
	r = expect(event, audit, session, address, usec);
	if (r < 0)
		log_line("the end of %s in session %s will not be in the log: %s", address, session->id,
			 strerror(-r));
}

static uint64_t realtime_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / NSEC_PER_USEC;
}

/* Was it opened for a time, of which this is left, or MISSED? 0: no, or it is closed. */
static uint64_t time_left(const AuditEvent *event, uint64_t now)
{
	const char *change = audit_event_get(event, "change"), *seconds = audit_event_get(event, "seconds");
	uint64_t usec = seconds ? strtoull(seconds, NULL, 10) * USEC_PER_SEC : 0;

	if (!change || !streq(change, "allow") || usec == 0)
		return 0;
	return event->usec + usec > now ? event->usec + usec - now : MISSED;
}

void allow_expiry_restore(sd_event *event, Audit *audit, Session *session)
{
	const AuditQuery query = { .uid = session->uid,
				   .session = session->id,
				   .kinds = 1u << AUDIT_ALLOW_IP,
				   .max = AUDIT_EVENTS_MAX };
	_cleanup_(audit_events_done) AuditEvents events = { 0 };
	uint64_t now = realtime_usec();
	int r;

	r = audit_store_read(&query, &events);
	if (r < 0)
		log_line("what was opened for session %s for a time is not known: %s", session->id,
			 strerror(-r));
	for (size_t i = 0; i < events.n; i++) {
		const char *address = audit_event_get(&events.events[i], "address"),
			   *change = audit_event_get(&events.events[i], "change");

		if (!address || !change)
			continue;
		/* Nobody knows whether it is closed; its end is sure. */
		if (streq(change, "revoke") && audit_event_get(&events.events[i], "confirmed"))
			continue;
		allow_expiry_set(event, audit, session, address, time_left(&events.events[i], now));
	}
	for (AllowExpiry *e = session->expiries, *next; e; e = next) {
		next = e->next;
		if (e->missed)
			end(e);
	}
}
