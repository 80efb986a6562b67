/* SPDX-License-Identifier: MIT */

/* AllowIp and RevokeIp: one session, one address, for a time. */

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/allow-call.h"
#include "service/daemon/allow-expiry.h"
#include "service/daemon/audit.h"
#include "service/daemon/request.h"
#include "service/daemon/session-tables.h"

/* Ten years: what is meant to be for ever is said with 0. */
#define SECONDS_MAX ((uint64_t)10 * 366 * 24 * 60 * 60)
/* Of the session's own words. */
#define PROBLEM_MAX 1024u

/* What has not come back may have been done, or be done yet: it is in the log as that. */
static void log_change(const AllowCall *call, int result)
{
	Session *session = registry_find(call->manager->registry, call->id);
	bool open = call->kind == ALLOW_SESSION_OPEN;

	if (!session || (result < 0 && result != -ETIMEDOUT))
		return;
	audit_allow_ip(call->manager->audit, call->client->uid, session, open ? "allow" : "revoke",
		       call->address, NULL, call->usec / USEC_PER_SEC, result == 0);
	if (open || result == 0)
		allow_expiry_set(call->manager->event, call->manager->audit, session, call->address,
				 call->usec);
}

static void answer(AllowCall *call, int result, const char *problem)
{
	_cleanup_free_ char *shown = wire_text(problem, PROBLEM_MAX);

	log_change(call, result);

	if (result == 0 && call->call)
		(void)sd_bus_reply_method_return(call->call, NULL);
	else if (result == -ESRCH && call->call)
		(void)sd_bus_reply_method_errorf(call->call, CS_ERROR_NO_SUCH_SESSION,
						 "The session %s has ended.", call->id);
	else if (result == -EPROTONOSUPPORT && call->call)
		(void)sd_bus_reply_method_errorf(call->call, CS_ERROR_SESSION_SILENT, SESSION_FOREIGN_FORMAT,
						 call->id);
	else if (problem && call->call)
		(void)sd_bus_reply_method_errorf(call->call, CS_ERROR_BAD_REQUEST,
						 "The session %s refuses %s: %s", call->id, call->address,
						 shown ?: strerror(ENOMEM));
	else if (call->call)
		(void)sd_bus_reply_method_errorf(call->call, CS_ERROR_SESSION_SILENT,
						 "The session %s does not answer as it should (%s); try "
						 "again, or stop it ('claude-sandbox stop').",
						 call->id, strerror(-result));
	allow_call_free(call);
}

static void on_session_done(void *userdata, int result, const char *problem, const LinkCells *cells)
{
	AllowWait *wait = userdata;
	AllowCall *call = wait->call;

	wait->job = NULL;
	answer(call, result, problem);
}

static void on_session_time(AllowCall *call)
{
	answer(call, -ETIMEDOUT, NULL);
}

/* Takes call. */
static void session_go(AllowCall *call)
{
	Session *session = registry_find(call->manager->registry, call->id);
	AllowWait *wait;
	int r;

	if (!session) {
		answer(call, -ESRCH, NULL);
		return;
	}
	wait = allow_call_expect(call, session);
	if (!wait) {
		answer(call, -ENOMEM, NULL);
		return;
	}
	r = call->kind == ALLOW_SESSION_OPEN
		    ? session_reach_allow(session, call->address, call->usec, on_session_done, wait,
					  &wait->job)
		    : session_reach_revoke(session, call->address, on_session_done, wait, &wait->job);
	if (r < 0) {
		answer(call, r, NULL);
		return;
	}
	call->done = on_session_time;
	allow_call_wait(call);
}

static void on_session_decided(void *userdata, int result, const char *reason)
{
	AllowCall *call = userdata;

	call->query = NULL;
	if (result == 0) {
		session_go(call);
		return;
	}
	audit_refused(call->manager->audit, call->client->uid, CS_MEMBER_ALLOW_IP, CS_ERROR_NOT_AUTHORIZED,
		      NULL, call->id);
	allow_call_refuse(call, auth_error_name(result), reason);
}

static int session_ask(AllowCall *call, sd_bus_message *m, const char *action)
{
	_cleanup_free_ char *details = NULL;

	if (asprintf(&details, "Authentication is required to let the coding agent of session %s reach %s",
		     call->id, call->address) < 0) {
		details = NULL;
		return -ENOMEM;
	}
	return auth_ask(call->manager->auth, call->client, m, action, details, on_session_decided, call,
			&call->query);
}

static int read_arguments(sd_bus_message *m, bool open, const char **ret_address, uint64_t *ret_usec,
			  sd_bus_error *reterr)
{
	uint64_t seconds = 0;
	int r;

	r = open ? sd_bus_message_read(m, "st", ret_address, &seconds)
		 : sd_bus_message_read(m, "s", ret_address);
	if (r >= 0 && open)
		r = options_read(m, NULL, 0, reterr);
	if (r < 0)
		return r;
	if (seconds > SECONDS_MAX)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
					 "An address is opened for at most %llu seconds; 0 means until the "
					 "session ends.",
					 (unsigned long long)SECONDS_MAX);
	*ret_usec = seconds * USEC_PER_SEC;
	return 0;
}

int allow_ip_session(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		     Session *session, sd_bus_error *reterr)
{
	bool open = streq(entry->member, CS_MEMBER_ALLOW_IP);
	_cleanup_free_ char *canonical = NULL, *problem = NULL;
	const char *address = NULL;
	AllowCall *call;
	uint64_t usec = 0;
	int r;

	r = read_arguments(m, open, &address, &usec, reterr);
	if (r < 0)
		return r;
	r = config_address_text(address, &canonical, &problem);
	if (r < 0)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "%s", problem ?: strerror(-r));
	r = allow_call_new(manager, open ? ALLOW_SESSION_OPEN : ALLOW_SESSION_CLOSE, client, m, &call,
			   reterr);
	if (r < 0)
		return r;
	call->address = TAKE_PTR(canonical);
	call->usec = usec;
	memcpy(call->id, session->id, sizeof(call->id));
	/* To close what was opened for one's own session asks nobody. */
	r = !open && session_visible(session, client->uid) ? 1 : session_ask(call, m, entry->action);
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	if (r > 0)
		session_go(call);
	return 1;
}
