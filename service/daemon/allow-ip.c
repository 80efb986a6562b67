/* SPDX-License-Identifier: MIT */
#include "service/daemon/allow-ip.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/allow-call.h"
#include "service/daemon/allow-ip-file.h"
#include "service/daemon/audit.h"
#include "service/daemon/config-file.h"
#include "service/daemon/log.h"
#include "service/daemon/request.h"
#include "service/daemon/sight.h"
#include "service/plan/config-edit.h"

#define LOCK_PATH CS_RUN_DIR "/allow-ip.lock"

/* What a caller may not know the id of. */
#define OTHERS_FORMAT "%zu of other users"

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

/* ---- the sessions ---- */

/* What the file says now. Return: 0; a negative errno for one that no launch would read: it changes nothing.
 */
static int read_list(AllowList **ret)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	_cleanup_free_ char *problem = NULL;
	int r;

	r = config_file_read(CS_CONFIG_PATH, &config, &problem);
	if (r < 0)
		return r;
	*ret = allow_list_new(&config);
	return *ret ? 0 : -ENOMEM;
}

static bool is_confirmed(const AllowWait *wait)
{
	return wait->result == 0 || wait->result == -ESRCH;
}

/* Does it hold on to what nobody may reach any more? One that has closed all that, and only could not open
 * something else, does not; of one that did not answer to the end nobody knows. */
static bool must_end(const AllowCall *call, const Session *session, const AllowWait *wait)
{
	if (call->kind == ALLOW_REMOVE && !session_reach_is_refusal(wait->result))
		return true;
	return call->kind != ALLOW_ADD && session_reach_has_more(session, call->list);
}

static void say_unconfirmed(const AllowCall *call, const Session *session, const AllowWait *wait, bool ended)
{
	log_line("session %s of uid %u has not taken the addresses of " CS_CONFIG_PATH " (%s)%s", session->id,
		 session->uid, strerror(-wait->result),
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
	r = session_reach_sync(session, call->list, allow_wait_done, wait, &wait->job);
	if (r < 0)
		allow_wait_done(wait, r, NULL, NULL);
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
	call->done = on_told;
	if (r < 0)
		log_line("no session is told of the addresses of " CS_CONFIG_PATH ": %s", strerror(-r));
	allow_call_wait(call);
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
	call->done = on_told;
	if (ask(call, session) < 0)
		log_line("session %s is not told of addresses: no memory", session->id);
	allow_call_wait(call);
}

/* ---- the calls ---- */

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
