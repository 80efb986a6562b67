/* SPDX-License-Identifier: MIT */
#include "service/daemon/auth.h"

#include <assert.h>

#include "dbus/causes.h"
#include "dbus/names.h"
#include "service/daemon/polkit.h"
#include "service/link/pack.h"

#define ACTIONS_MAX 2u

static const AuthEntry entries[] = {
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LAUNCH, AUTH_ACTION, CS_ACTION_LAUNCH, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_DOCTOR, AUTH_ACTION, CS_ACTION_LAUNCH, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_VERIFY, AUTH_ACTION, CS_ACTION_LAUNCH, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_ALLOW_IP, AUTH_OPEN, NULL, true },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_ADD_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_REMOVE_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS, AUTH_OPEN, NULL, true },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_EVENTS, AUTH_OPEN, NULL, true },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_ALL_SESSIONS, AUTH_ACTION, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_SUBSCRIBE, AUTH_OPEN, NULL, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_UNSUBSCRIBE, AUTH_OPEN, NULL, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, false },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_GET_POLICY, AUTH_OPEN, NULL, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_ROUTES, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_EXPOSURE, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_ENVIRONMENT, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_PORTS, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_DENIED, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, true },
	{ CS_SESSION_INTERFACE, CS_MEMBER_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP, false },
	{ CS_SESSION_INTERFACE, CS_MEMBER_REVOKE_IP, AUTH_OWNER, CS_ACTION_EDIT_ALLOW_IP, false },
	{ CS_SESSION_INTERFACE, CS_MEMBER_VERIFY, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, false },
	{ CS_SESSION_INTERFACE, CS_MEMBER_STOP, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS, false },
};

/*
 * What a call needs is asked about one action after the other, without a dialog: a no ends it, whoever would
 * have typed a password. Only then comes the one dialog, about the last action that takes a password.
 */
struct AuthQuery {
	Auth *auth;
	char *subject;
	const char *actions[ACTIONS_MAX];
	char *message;
	char **details;
	bool interactive;     /* the call allows a dialog */
	bool quiet;           /* none is shown all the same */
	size_t current;       /* what is being asked about */
	const char *password; /* the last action that takes one, or NULL */
	bool dialog;          /* the question that is under way may show one */

	char *cancellation;
	sd_bus_slot *slot;
	AuthFunction function;
	void *userdata;
	AuthQuery *next;
};

struct Auth {
	sd_bus *bus;
	uint64_t last; /* of the cancellation ids, unique on our connection */
	AuthQuery *queries;
};

const AuthEntry *auth_at(size_t index)
{
	return index < ELEMENTSOF(entries) ? &entries[index] : NULL;
}

const AuthEntry *auth_find(const char *interface, const char *member)
{
	static const AuthEntry denied = { "", "", AUTH_DENIED, NULL, true };

	for (size_t i = 0; interface && member && i < ELEMENTSOF(entries); i++)
		if (streq(entries[i].interface, interface) && streq(entries[i].member, member))
			return &entries[i];
	return &denied;
}

static void query_free(AuthQuery *query)
{
	for (AuthQuery **q = &query->auth->queries; *q; q = &(*q)->next)
		if (*q == query) {
			*q = query->next;
			break;
		}
	sd_bus_slot_unref(query->slot);
	free(query->cancellation);
	free(query->subject);
	free(query->message);
	strings_free(query->details);
	free(query);
}

int auth_new(sd_bus *bus, Auth **ret)
{
	Auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		return -ENOMEM;
	auth->bus = sd_bus_ref(bus);
	*ret = auth;
	return 0;
}

Auth *auth_free(Auth *auth)
{
	if (!auth)
		return NULL;
	while (auth->queries)
		auth_query_cancel(auth->queries);
	sd_bus_unref(auth->bus);
	free(auth);
	return NULL;
}

AuthQuery *auth_query_cancel(AuthQuery *query)
{
	if (!query)
		return NULL;
	polkit_cancel(query->auth->bus, query->cancellation);
	query_free(query);
	return NULL;
}

/* The one place where polkit's silence is a yes. */
static bool absent_default(const char *action)
{
	return streq(action, CS_ACTION_LAUNCH);
}

const char *auth_error_name(int result)
{
	return result == -ENOKEY ? SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED : CS_ERROR_NOT_AUTHORIZED;
}

static int refuse_password(const AuthQuery *query, const char *action, char **ret_reason)
{
	if (!query->interactive)
		return refuse(
			ret_reason, -ENOKEY,
			"This needs an administrator's password (%s), and the call did not allow to ask for "
			"it; call interactively, or as root.",
			action);
	return refuse(ret_reason, -EACCES,
		      "This needs an administrator's password (%s), and there was nobody to ask; run an "
		      "authentication agent (pkttyagent), or call as root.",
		      action);
}

/* Return: 0 for yes; -EACCES with *ret_reason; -ENOKEY when it takes a password. */
static int decide(const char *action, PolkitAnswer answer, const char *error, char **ret_reason)
{
	switch (answer) {
	case POLKIT_YES:
		return 0;
	case POLKIT_PASSWORD:
		return -ENOKEY;
	case POLKIT_NO:
		return refuse(ret_reason, -EACCES, BECAUSE(POLKIT_NO), action);
	case POLKIT_DISMISSED:
		return refuse(ret_reason, -EACCES,
			      "Whoever was asked for a password (%s) dismissed the question; try again.",
			      action);
	case POLKIT_ABSENT:
		if (absent_default(action))
			return 0;
		return refuse(ret_reason, -EACCES, BECAUSE(POLKIT_ABSENT), action);
	case POLKIT_SILENT:
		return refuse(ret_reason, -EACCES, BECAUSE(POLKIT_SILENT), action);
	case POLKIT_BROKEN:
		break;
	}
	if (error && strstr(error, "is not registered"))
		return refuse(ret_reason, -EACCES, BECAUSE(POLKIT_UNKNOWN), action);
	return error ? refuse(ret_reason, -EACCES, BECAUSE(POLKIT_BROKEN), action, error)
		     : refuse(ret_reason, -EACCES, "polkit's answer cannot be read, so this is refused (%s).",
			      action);
}

static void query_end(AuthQuery *query, int result, const char *reason)
{
	AuthFunction function = query->function;
	void *userdata = query->userdata;

	query_free(query);
	function(userdata, result, reason ? reason : "This is refused.");
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr);

static int query_send(AuthQuery *query, const char *action)
{
	Auth *auth = query->auth;
	const PolkitQuestion question = {
		.subject = query->subject,
		.action = action,
		.message = query->message,
		.details = (const char *const *)query->details,
		.interactive = query->dialog,
	};
	PolkitQuestion asked = question;
	char *cancellation;

	if (asprintf(&cancellation, "claude-sandboxd-%llu", (unsigned long long)++auth->last) < 0)
		return -ENOMEM;
	free(query->cancellation);
	query->cancellation = cancellation;
	query->slot = sd_bus_slot_unref(query->slot);
	asked.cancellation = cancellation;
	return polkit_ask(auth->bus, &asked, on_answer, query, &query->slot);
}

/* Every action has been asked about. Return: 0 when a dialog is under way; 1 for yes; or as decide(). */
static int query_finish(AuthQuery *query, char **ret_reason)
{
	if (!query->password)
		return 1;
	if (!query->interactive || query->quiet)
		return refuse_password(query, query->password, ret_reason);
	query->dialog = true;
	return query_send(query, query->password);
}

static int query_step(AuthQuery *query, sd_bus_message *reply, char **ret_reason)
{
	const char *error, *action = query->dialog ? query->password : query->actions[query->current];
	PolkitAnswer answer = polkit_answer(reply, &error);
	int r;

	r = query->dialog && answer == POLKIT_NO
		    ? refuse(ret_reason, -EACCES, BECAUSE(POLKIT_UNCONVINCED), action)
		    : decide(action, answer, error, ret_reason);
	/* A dialog that waits longer than we do must not stay on somebody's screen. */
	if (answer == POLKIT_SILENT)
		polkit_cancel(query->auth->bus, query->cancellation);
	if (query->dialog)
		return r == -ENOKEY ? refuse_password(query, action, ret_reason) : r < 0 ? r : 1;
	if (r == -ENOKEY)
		query->password = action;
	else if (r < 0)
		return r;
	query->current++;
	if (query->current < ACTIONS_MAX && query->actions[query->current])
		return query_send(query, query->actions[query->current]);
	return query_finish(query, ret_reason);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	AuthQuery *query = userdata;
	_cleanup_free_ char *reason = NULL;
	int r;

	r = query_step(query, reply, &reason);
	if (r > 0)
		query_end(query, 0, NULL);
	else if (r < 0)
		query_end(query, r == -ENOKEY ? r : -EACCES, reason);
	return 0;
}

static int query_fill(AuthQuery *query, const Client *client, const AuthQuestion *question)
{
	size_t n = 0;

	for (size_t i = 0; i < ACTIONS_MAX && i < ELEMENTSOF(question->actions) && question->actions[i]; i++)
		query->actions[n++] = question->actions[i];
	assert(n > 0);
	query->quiet = question->quiet;
	query->subject = strdup(client->name);
	if (!query->subject)
		return -ENOMEM;
	if (question->message) {
		query->message = strdup(question->message);
		if (!query->message)
			return -ENOMEM;
	}
	for (size_t i = 0; question->details && question->details[i]; i++)
		if (strings_append(&query->details, question->details[i]) < 0)
			return -ENOMEM;
	return 0;
}

int auth_ask_question(Auth *auth, const Client *client, sd_bus_message *call, const AuthQuestion *question,
		      AuthFunction function, void *userdata, AuthQuery **ret)
{
	AuthQuery *query;
	int r;

	if (client->uid == 0)
		return 1;
	query = calloc(1, sizeof(*query));
	if (!query)
		return -ENOMEM;
	*query = (AuthQuery){
		.auth = auth,
		.interactive = sd_bus_message_get_allow_interactive_authorization(call) > 0,
		.function = function,
		.userdata = userdata,
		.next = auth->queries,
	};
	auth->queries = query;
	r = query_fill(query, client, question);
	if (r >= 0)
		r = query_send(query, query->actions[0]);
	if (r < 0) {
		query_free(query);
		return r;
	}
	*ret = query;
	return 0;
}

int auth_ask(Auth *auth, const Client *client, sd_bus_message *call, const char *action, const char *details,
	     AuthFunction function, void *userdata, AuthQuery **ret)
{
	const char *const pairs[] = { "what", details, NULL };
	const AuthQuestion question = { .actions = { action },
					.message = details ? "$(what)" : NULL,
					.details = details ? pairs : NULL };

	return auth_ask_question(auth, client, call, &question, function, userdata, ret);
}
