/* SPDX-License-Identifier: MIT */
#include "service/daemon/allow-ip.h"

#include <time.h>

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/allow-expiry.h"
#include "service/daemon/allow-ip-file.h"
#include "service/daemon/audit.h"
#include "service/daemon/call.h"
#include "service/daemon/config-file.h"
#include "service/daemon/log.h"
#include "service/daemon/request.h"
#include "service/daemon/session-reach.h"
#include "service/daemon/session-tables.h"
#include "service/daemon/sight.h"
#include "service/plan/config-edit.h"

#define LOCK_PATH CS_RUN_DIR "/allow-ip.lock"
/* What a caller may not know the id of. */
#define OTHERS_FORMAT "%zu of other users"
#define CELL_MAX 512u
/* Of a session's own words. */
#define PROBLEM_MAX 1024u
/* Ten years: what is meant to be for ever is said with 0. */
#define SECONDS_MAX ((uint64_t)10 * 366 * 24 * 60 * 60)

typedef enum AllowKind {
	ALLOW_ADD,
	ALLOW_REMOVE,
	ALLOW_LIST,
	ALLOW_SESSION_OPEN,
	ALLOW_SESSION_CLOSE,
	ALLOW_FOLLOW, /* nobody called: the file was edited by hand, or a session is behind it */
} AllowKind;

typedef struct AllowWait AllowWait;

/* One session that was asked. It outlives its call until the session has answered. */
struct AllowWait {
	AllowCall *call; /* NULL: nobody waits any more */
	char id[CS_ID_LENGTH + 1];
	bool answered;
	int result;
	char *problem;
	AllowWait *next;
};

struct AllowCall {
	Manager *manager;
	AllowKind kind;
	Client *client;       /* NULL for ALLOW_FOLLOW */
	sd_bus_message *call; /* NULL when nobody waits */
	AuthQuery *query;     /* until somebody has decided */
	char *address, *comment;
	uint64_t usec;
	char id[CS_ID_LENGTH + 1]; /* of the session, for those that are about one */
	AllowList *list;
	AllowWait *waits;
	size_t n_waiting;
	char **cells; /* of ALLOW_LIST, three a row */
	sd_event_source *timer;
	/* Everybody has answered. Frees the call. */
	void (*done)(AllowCall *call);
	AllowCall *next;
};

/* ---- one call ---- */

static size_t calls_count(const Manager *manager, uid_t uid, size_t *ret_all)
{
	size_t n = 0, all = 0;

	for (const AllowCall *c = manager->allow_calls; c; c = c->next) {
		if (!c->client)
			continue;
		all++;
		n += c->client->uid == uid;
	}
	*ret_all = all;
	return n;
}

static void wait_free(AllowWait *wait)
{
	free(wait->problem);
	free(wait);
}

static AllowCall *allow_call_free(AllowCall *call)
{
	for (AllowCall **c = &call->manager->allow_calls; *c; c = &(*c)->next)
		if (*c == call) {
			*c = call->next;
			break;
		}
	for (AllowWait *wait = call->waits, *next; wait; wait = next) {
		next = wait->next;
		wait->call = NULL;
		if (wait->answered)
			wait_free(wait);
	}
	auth_query_cancel(call->query);
	client_unref(call->client);
	sd_bus_message_unref(call->call);
	sd_event_source_disable_unref(call->timer);
	allow_list_unref(call->list);
	strings_free(call->cells);
	free(call->address);
	free(call->comment);
	free(call);
	return NULL;
}

/* Checks the limits. client and m may be NULL. Return: 0, or a negative errno with *reterr. */
static int allow_call_new(Manager *manager, AllowKind kind, Client *client, sd_bus_message *m,
			  AllowCall **ret, sd_bus_error *reterr)
{
	AllowCall *call;
	size_t all;
	int r;

	if (client && client->uid != 0 &&
	    (calls_count(manager, client->uid, &all) >= ALLOW_CALLS_OF_USER_MAX || all >= ALLOW_CALLS_MAX))
		return sd_bus_error_setf(
			reterr, CS_ERROR_LIMITS_EXCEEDED,
			"Too many calls about addresses wait for an answer; try again later.");
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	*call = (AllowCall){ .manager = manager, .kind = kind, .next = manager->allow_calls };
	manager->allow_calls = call;
	if (client)
		call->client = client_ref(client);
	r = m ? call_keep(m, &call->call) : 0;
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	*ret = call;
	return 0;
}

static void allow_call_refuse(AllowCall *call, const char *name, const char *sentence)
{
	if (call->call)
		(void)sd_bus_reply_method_errorf(call->call, name, "%s", sentence);
	allow_call_free(call);
}

/* Remember that session is to be asked. Return: NULL without memory. */
static AllowWait *allow_call_expect(AllowCall *call, const Session *session)
{
	AllowWait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return NULL;
	wait->call = call;
	memcpy(wait->id, session->id, sizeof(wait->id));
	wait->next = call->waits;
	call->waits = wait;
	call->n_waiting++;
	return wait;
}

static int on_all(sd_event_source *source, uint64_t usec, void *userdata)
{
	AllowCall *call = userdata;

	call->done(call);
	return 0;
}

/* The session has answered, or does not. Return: the call that waits for it, or NULL: then wait is gone. */
static AllowCall *wait_end(AllowWait *wait, int result, const char *problem)
{
	if (!wait->call) {
		wait_free(wait);
		return NULL;
	}
	wait->answered = true;
	wait->result = result == -ECANCELED ? -ESRCH : result; /* it has ended */
	wait->problem = problem ? strdup(problem) : NULL;
	/* Not from within the session's answer, whose sender may be ended by what is done. */
	if (--wait->call->n_waiting == 0 && wait->call->timer)
		(void)sd_event_source_set_time(wait->call->timer, 0);
	return wait->call;
}

static void on_answer(void *userdata, int result, const char *problem)
{
	(void)wait_end(userdata, result, problem);
}

/* Everybody has been asked, and answers within LINK_ANSWER_USEC. Takes call. */
static void allow_call_wait(AllowCall *call, void (*done)(AllowCall *call))
{
	call->done = done;
	if (sd_event_add_time(call->manager->event, &call->timer, CLOCK_MONOTONIC,
			      call->n_waiting == 0 ? 0 : UINT64_MAX, 1, on_all, call) < 0)
		done(call);
}

/* ---- the configuration, for all sessions ---- */

static AllowIpEdit edit_of(const AllowCall *call, bool check)
{
	return (AllowIpEdit){ .address = call->address,
			      .comment = call->comment,
			      .remove = call->kind == ALLOW_REMOVE,
			      .check = check };
}

static const char *error_name(int error)
{
	switch (error) {
	case -ENOENT:
		return CS_ERROR_BAD_REQUEST;
	case -EAGAIN:
		return CS_ERROR_LIMITS_EXCEEDED;
	default:
		return CS_ERROR_BAD_CONFIGURATION;
	}
}

/* What the file says now. Return: 0; a negative errno for one that no launch would read: it changes nothing.
 */
static int read_list(AllowList **ret)
{
	const Config *config;
	int r = config_file_last(CS_CONFIG_PATH, &config, NULL);

	if (r < 0)
		return r;
	*ret = allow_list_new(config);
	return *ret ? 0 : -ENOMEM;
}

static bool is_confirmed(const AllowWait *wait)
{
	return (wait->result == 0 && !wait->problem) || wait->result == -ESRCH;
}

/* Does it hold on to what nobody may reach any more? One that only could not open something does not; of one
 * that did not answer to the end nobody knows. */
static bool must_end(const AllowCall *call, const Session *session, const AllowWait *wait)
{
	if (wait->result == 0)
		return false;
	if (call->kind == ALLOW_REMOVE && !session_reach_is_refusal(wait->result))
		return true;
	return call->kind != ALLOW_ADD && session_reach_has_more(session, call->list);
}

static void say_unconfirmed(const AllowCall *call, const Session *session, const AllowWait *wait, bool ended)
{
	_cleanup_free_ char *shown = wire_text(wait->problem, PROBLEM_MAX);

	log_line("session %s of uid %u has not taken the addresses of " CS_CONFIG_PATH " (%s)%s", session->id,
		 session->uid, shown && shown[0] ? shown : strerror(-wait->result),
		 ended ? "; it is killed, since one was taken away" : "");
}

static int reply_unconfirmed(sd_bus_message *call, char *const *unconfirmed)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append_strv(reply, (char **)unconfirmed);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void on_told(AllowCall *call)
{
	_cleanup_(strings_freep) char **unconfirmed = NULL;
	Manager *manager = call->manager;
	size_t n_others = 0;
	int r = 0;

	for (const AllowWait *wait = call->waits; wait; wait = wait->next) {
		Session *session = registry_find(manager->registry, wait->id);
		bool ended;

		if (!session || is_confirmed(wait))
			continue;
		ended = must_end(call, session, wait);
		say_unconfirmed(call, session, wait, ended);
		if (ended && session->keeper)
			keeper_kill(session->keeper);
		if (call->client && !sight_allows(call->client, session))
			n_others++;
		else
			r = strings_append(&unconfirmed, session->id) ?: r;
	}
	if (n_others > 0)
		r = strings_appendf(&unconfirmed, OTHERS_FORMAT, n_others) ?: r;
	if (call->call) {
		r = r < 0 ? r : reply_unconfirmed(call->call, unconfirmed);
		if (r < 0)
			(void)sd_bus_reply_method_errno(call->call, r, NULL);
	}
	allow_call_free(call);
}

static int ask(AllowCall *call, Session *session)
{
	AllowWait *wait = allow_call_expect(call, session);
	int r;

	if (!wait)
		return -ENOMEM;
	r = session_reach_tell(session, call->list, on_answer, wait);
	if (r < 0)
		(void)wait_end(wait, r, NULL);
	return 0;
}

/* One that has not begun to listen is told when it does. */
static bool can_be_told(const Session *session)
{
	return session->keeper && keeper_is_connected(session->keeper);
}

/* Takes call. */
static void tell_sessions(AllowCall *call)
{
	int r = read_list(&call->list);

	for (Session *s = registry_first(call->manager->registry); r >= 0 && s; s = s->next)
		if (can_be_told(s) && !session_reach_is(s, call->list))
			r = ask(call, s);
	if (r < 0)
		log_line("no session is told of the addresses of " CS_CONFIG_PATH ": %s", strerror(-r));
	allow_call_wait(call, on_told);
}

void allow_ip_file_changed(Manager *manager)
{
	AllowCall *call;

	if (manager->stopping || !registry_first(manager->registry))
		return;
	if (allow_call_new(manager, ALLOW_FOLLOW, NULL, NULL, &call, NULL) >= 0)
		tell_sessions(call);
}

void allow_ip_connected(Manager *manager, Session *session)
{
	_cleanup_(allow_list_unrefp) AllowList *list = NULL;
	AllowCall *call;

	if (manager->stopping || read_list(&list) < 0 || session_reach_is(session, list))
		return;
	if (allow_call_new(manager, ALLOW_FOLLOW, NULL, NULL, &call, NULL) < 0)
		return;
	call->list = TAKE_PTR(list);
	if (ask(call, session) < 0)
		log_line("session %s is not told of addresses: no memory", session->id);
	allow_call_wait(call, on_told);
}

/* Takes call. */
static void edit_go(AllowCall *call)
{
	const AllowIpEdit edit = edit_of(call, false);
	_cleanup_free_ char *problem = NULL;
	int r;

	r = allow_ip_file_edit(CS_CONFIG_PATH, LOCK_PATH, &edit, &problem);
	if (r < 0) {
		allow_call_refuse(call, error_name(r), problem ?: strerror(-r));
		return;
	}
	if (r > 0) {
		audit_allow_ip(call->manager->audit, call->client->uid, NULL, edit.remove ? "remove" : "add",
			       call->address, call->comment, 0, true);
		allow_seen_edited(call->manager->allow_seen, call->address, edit.remove);
	}
	tell_sessions(call);
}

static void on_decided(void *userdata, int result, const char *reason)
{
	AllowCall *call = userdata;

	call->query = NULL;
	if (result == 0) {
		edit_go(call);
		return;
	}
	audit_refused(call->manager->audit, call->client->uid,
		      call->kind == ALLOW_REMOVE ? CS_MEMBER_REMOVE_ALLOW_IP : CS_MEMBER_ADD_ALLOW_IP,
		      CS_ERROR_NOT_AUTHORIZED, NULL, NULL);
	allow_call_refuse(call, auth_error_name(result), reason);
}

static int edit_ask(AllowCall *call, sd_bus_message *m, const char *action)
{
	_cleanup_free_ char *details = NULL;
	int r;

	if (call->kind == ALLOW_REMOVE)
		r = asprintf(
			&details,
			"Authentication is required to take %s from what coding agents of all users reach",
			call->address);
	else
		r = asprintf(&details,
			     "Authentication is required to let coding agents of all users reach %s",
			     call->address);
	if (r < 0) {
		details = NULL;
		return -ENOMEM;
	}
	return auth_ask(call->manager->auth, call->client, m, action, details, on_decided, call,
			&call->query);
}

static int edit_check(const AllowCall *call, sd_bus_error *reterr)
{
	const AllowIpEdit edit = edit_of(call, true);
	_cleanup_free_ char *problem = NULL;
	int r;

	r = allow_ip_file_edit(CS_CONFIG_PATH, LOCK_PATH, &edit, &problem);
	return r < 0 ? sd_bus_error_setf(reterr, error_name(r), "%s", problem ?: strerror(-r)) : 0;
}

/* address and comment are the caller's. Takes nothing. */
static int edit_begin(Manager *manager, AllowKind kind, Client *client, sd_bus_message *m, const char *action,
		      const char *address, const char *comment, bool check, sd_bus_error *reterr)
{
	_cleanup_free_ char *canonical = NULL, *problem = NULL;
	AllowCall *call;
	int r;

	r = config_address_text(address, &canonical, &problem);
	if (r >= 0)
		r = config_check_comment(comment, &problem);
	if (r < 0)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST, "%s", problem ?: strerror(-r));
	r = allow_call_new(manager, kind, client, m, &call, reterr);
	if (r < 0)
		return r;
	call->address = TAKE_PTR(canonical);
	call->comment = strdup(comment);
	r = call->comment ? edit_check(call, reterr) : -ENOMEM;
	if (r >= 0 && check) {
		allow_call_free(call);
		r = reply_unconfirmed(m, NULL);
		return r < 0 ? r : 1;
	}
	if (r >= 0)
		r = edit_ask(call, m, action);
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	if (r > 0)
		edit_go(call);
	return 1;
}

int allow_ip_add(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		 sd_bus_error *reterr)
{
	const char *address, *comment;
	uint64_t check = 0;
	const OptionSpec options[] = { { "check", 'b', &check } };
	int r;

	r = sd_bus_message_read(m, "ss", &address, &comment);
	if (r >= 0)
		r = options_read(m, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	return edit_begin(manager, ALLOW_ADD, client, m, entry->action, address, comment, check, reterr);
}

int allow_ip_remove(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		    sd_bus_error *reterr)
{
	const char *address;
	int r;

	r = sd_bus_message_read(m, "s", &address);
	if (r < 0)
		return r;
	return edit_begin(manager, ALLOW_REMOVE, client, m, entry->action, address, "", false, reterr);
}

/* ---- one session ---- */

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

static void on_session_done(void *userdata, int result, const char *problem)
{
	AllowCall *call = wait_end(userdata, result, problem);

	if (call)
		answer(call, result == -ECANCELED ? -ESRCH : result, problem);
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
	r = session->keeper
		    ? keeper_tell(session->keeper,
				  &(LinkMessage){ .kind = call->kind == ALLOW_SESSION_OPEN ? LINK_ALLOW
											   : LINK_REVOKE,
						  .text = call->address,
						  .usec = call->usec },
				  on_session_done, wait)
		    : -ENOTCONN;
	if (r < 0) {
		(void)wait_end(wait, r, NULL);
		answer(call, r, NULL);
	}
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

/* ---- the list ---- */

static int add_row(AllowCall *call, const char *address, const char *comment, const char *origin)
{
	return strings_append(&call->cells, address) ?: strings_append(&call->cells, comment)
						    ?: strings_append(&call->cells, origin);
}

/* "session ID", or "session ID until 2000-01-01T00:00:00Z" for an end in usec since 1970. */
static char *session_origin(const char *id, const char *end)
{
	unsigned long long usec = strtoull(end, NULL, 10);
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	char *origin = NULL, text[64];
	struct tm tm;

	if (usec == 0 || !gmtime_r(&seconds, &tm) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return asprintf(&origin, "session %s", id) < 0 ? NULL : origin;
	return asprintf(&origin, "session %s until %s", id, text) < 0 ? NULL : origin;
}

/* address, comment, end, configured: of the session's own, and only what is an address. */
static int add_session_row(AllowCall *call, const char *id, char *const *row)
{
	_cleanup_free_ char *canonical = NULL, *origin = NULL;

	if (!streq(row[3], "0") || config_address_text(row[0], &canonical, NULL) < 0)
		return 0;
	origin = session_origin(id, row[2]);
	return origin ? add_row(call, canonical, row[1], origin) : -ENOMEM;
}

static void on_session_rows(void *userdata, int result, LinkCells *cells)
{
	AllowWait *wait = userdata;
	size_t n = result == 0 ? MIN_OF(cells->n_rows, (size_t)2 * ALLOW_ROWS_OF_SESSION_MAX) : 0;

	for (size_t i = 0; wait->call && i < n; i++)
		if (add_session_row(wait->call, wait->id, cells->cells + i * cells->n_columns) < 0)
			break;
	(void)wait_end(wait, result, NULL);
}

static void on_listed(AllowCall *call)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call->call, &reply);
	if (r >= 0)
		r = wire_append_table(reply, 3, (const char *const *)call->cells,
				      strings_count(call->cells) / 3, CELL_MAX);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	if (r < 0)
		(void)sd_bus_reply_method_errno(call->call, r, NULL);
	allow_call_free(call);
}

static int ask_sessions(AllowCall *call)
{
	for (Session *s = registry_first(call->manager->registry); s; s = s->next) {
		AllowWait *wait;
		int r;

		if (!sight_allows(call->client, s) || !s->keeper || !keeper_is_connected(s->keeper))
			continue;
		wait = allow_call_expect(call, s);
		if (!wait)
			return -ENOMEM;
		r = keeper_get_table(s->keeper, LINK_TABLE_ALLOWED, 2u * CONFIG_VALUES_MAX, on_session_rows,
				     wait);
		if (r < 0)
			(void)wait_end(wait, r, NULL);
	}
	return 0;
}

int allow_ip_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		  sd_bus_error *reterr)
{
	const Config *config;
	_cleanup_free_ char *problem = NULL;
	const ConfigValue *value;
	AllowCall *call;
	size_t index = 0;
	int r;

	r = config_file_last(CS_CONFIG_PATH, &config, &problem);
	if (r < 0 && r != -ENOMEM)
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_CONFIGURATION, "%s", problem ?: strerror(-r));
	if (r >= 0)
		r = allow_call_new(manager, ALLOW_LIST, client, m, &call, reterr);
	if (r < 0)
		return r;
	while (r >= 0 && (value = config_next(config, CONFIG_ALLOW_IP, &index)))
		r = add_row(call, value->text, value->comment, value->origin);
	if (r >= 0)
		r = ask_sessions(call);
	if (r < 0) {
		allow_call_free(call);
		return r;
	}
	allow_call_wait(call, on_listed);
	return 1;
}

/* ---- the end ---- */

void allow_ip_client_gone(Manager *manager, const Client *client)
{
	for (AllowCall *call = manager->allow_calls, *next; call; call = next) {
		next = call->next;
		if (call->client != client)
			continue;
		if (call->query || call->kind == ALLOW_LIST)
			allow_call_free(call);
		else
			call->call = sd_bus_message_unref(call->call);
	}
}

void allow_ip_end_all(Manager *manager)
{
	while (manager->allow_calls)
		allow_call_refuse(manager->allow_calls, CS_ERROR_SHUTTING_DOWN,
				  "The service is stopping; try again.");
}
