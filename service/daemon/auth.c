/* SPDX-License-Identifier: MIT */
#include "service/daemon/auth.h"

#include "dbus/names.h"
#include "dbus/wire.h"

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define POLKIT_INTERACTIVE 1u /* CheckAuthorizationFlags.AllowUserInteraction */

/* For a person who types a password, and for nobody at all. */
#define DIALOG_USEC (5 * 60 * USEC_PER_SEC)
#define SILENT_USEC (25 * USEC_PER_SEC)

static const AuthEntry entries[] = {
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LAUNCH, AUTH_ACTION, CS_ACTION_LAUNCH },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_DOCTOR, AUTH_UNSUPPORTED, CS_ACTION_LAUNCH },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_VERIFY, AUTH_UNSUPPORTED, CS_ACTION_LAUNCH },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_ALLOW_IP, AUTH_OPEN, NULL },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_ADD_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_REMOVE_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_SESSIONS, AUTH_OPEN, NULL },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_LIST_EVENTS, AUTH_OPEN, NULL },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_SUBSCRIBE, AUTH_OPEN, NULL },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_UNSUBSCRIBE, AUTH_OPEN, NULL },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_STOP_SESSION, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_MANAGER_INTERFACE, CS_MEMBER_GET_POLICY, AUTH_OPEN, NULL },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_ROUTES, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_EXPOSURE, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_ENVIRONMENT, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_PORTS, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_LIST_DENIED, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_ALLOW_IP, AUTH_ACTION, CS_ACTION_EDIT_ALLOW_IP },
	{ CS_SESSION_INTERFACE, CS_MEMBER_REVOKE_IP, AUTH_OWNER, CS_ACTION_EDIT_ALLOW_IP },
	{ CS_SESSION_INTERFACE, CS_MEMBER_VERIFY, AUTH_UNSUPPORTED, CS_ACTION_MANAGE_SESSIONS },
	{ CS_SESSION_INTERFACE, CS_MEMBER_STOP, AUTH_OWNER, CS_ACTION_MANAGE_SESSIONS },
};

struct AuthQuery {
	Auth *auth;
	const char *action;
	char *cancellation;
	bool interactive;
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
	static const AuthEntry denied = { "", "", AUTH_DENIED, NULL };

	for (size_t i = 0; interface && member && i < ELEMENTSOF(entries); i++)
		if (streq(entries[i].interface, interface) && streq(entries[i].member, member))
			return &entries[i];
	return &denied;
}

bool auth_error_is_absence(const char *name)
{
	static const char *const names[] = {
		"org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.DBus.Error.Spawn.ServiceNotFound",
		"org.freedesktop.systemd1.NoSuchUnit",
		"org.freedesktop.systemd1.Masked",
	};

	for (size_t i = 0; name && i < ELEMENTSOF(names); i++)
		if (streq(names[i], name))
			return true;
	return false;
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
	(void)sd_bus_call_method_async(query->auth->bus, NULL, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
				       "CancelCheckAuthorization", NULL, NULL, "s", query->cancellation);
	query_free(query);
	return NULL;
}

/* The one place where polkit's silence is a yes. */
static bool absent_default(const char *action)
{
	return streq(action, CS_ACTION_LAUNCH);
}

static int decide_error(const AuthQuery *query, const sd_bus_error *error, char **ret_reason)
{
	if (auth_error_is_absence(error->name)) {
		if (absent_default(query->action))
			return 0;
		return refuse(ret_reason, -EACCES,
			      "polkit is not on this machine, so only root may do this (%s).", query->action);
	}
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
	    sd_bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT))
		return refuse(ret_reason, -EACCES, "polkit does not answer, so this is refused (%s).",
			      query->action);
	return refuse(ret_reason, -EACCES, "polkit could not be asked, so this is refused (%s): %s",
		      query->action, error->message && error->message[0] ? error->message : error->name);
}

static int decide(const AuthQuery *query, sd_bus_message *reply, char **ret_reason)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	int authorized, challenge, r;

	if (error)
		return decide_error(query, error, ret_reason);
	r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
	if (r >= 0)
		r = sd_bus_message_read(reply, "bb", &authorized, &challenge);
	if (r < 0)
		return refuse(ret_reason, -EACCES, "polkit's answer cannot be read, so this is refused (%s).",
			      query->action);
	if (authorized)
		return 0;
	if (challenge && !query->interactive)
		return refuse(
			ret_reason, -EACCES,
			"This needs an administrator's password (%s), and the call did not allow to ask for "
			"it; call interactively, or as root.",
			query->action);
	if (challenge)
		return refuse(
			ret_reason, -EACCES,
			"This needs an administrator's password (%s), and there was nobody to ask; run an "
			"authentication agent (pkttyagent), or call as root.",
			query->action);
	return refuse(ret_reason, -EACCES, "polkit does not allow this (%s); an administrator can.",
		      query->action);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr)
{
	AuthQuery *query = userdata;
	AuthFunction function = query->function;
	void *function_userdata = query->userdata;
	_cleanup_free_ char *reason = NULL;
	int r;

	r = decide(query, reply, &reason);
	/* A dialog that waits longer than we do must not stay on somebody's screen. */
	if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) ||
	    sd_bus_message_is_method_error(reply, SD_BUS_ERROR_TIMEOUT))
		auth_query_cancel(query);
	else
		query_free(query);
	function(function_userdata, r < 0 ? -EACCES : 0, reason ? reason : "This is refused.");
	return 0;
}

static int build_call(Auth *auth, const AuthQuery *query, const Client *client, const char *details,
		      sd_bus_message **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(auth->bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
					   "CheckAuthorization");
	if (r < 0)
		return r;
	r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s", client->name,
				  query->action);
	if (r < 0)
		return r;
	if (details)
		r = sd_bus_message_append(m, "a{ss}", 1, "polkit.message", details);
	else
		r = sd_bus_message_append(m, "a{ss}", 0);
	if (r < 0)
		return r;
	r = sd_bus_message_append(m, "us", query->interactive ? POLKIT_INTERACTIVE : 0, query->cancellation);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int auth_ask(Auth *auth, const Client *client, sd_bus_message *call, const char *action, const char *details,
	     AuthFunction function, void *userdata, AuthQuery **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	AuthQuery *query;
	int r;

	if (client->uid == 0)
		return 1;
	query = calloc(1, sizeof(*query));
	if (!query)
		return -ENOMEM;
	*query = (AuthQuery){
		.auth = auth,
		.action = action,
		.interactive = sd_bus_message_get_allow_interactive_authorization(call) > 0,
		.function = function,
		.userdata = userdata,
		.next = auth->queries,
	};
	auth->queries = query;
	if (asprintf(&query->cancellation, "claude-sandboxd-%llu", (unsigned long long)++auth->last) < 0) {
		query->cancellation = NULL;
		query_free(query);
		return -ENOMEM;
	}
	r = build_call(auth, query, client, details, &m);
	if (r >= 0)
		r = sd_bus_call_async(auth->bus, &query->slot, m, on_answer, query,
				      query->interactive ? DIALOG_USEC : SILENT_USEC);
	if (r < 0) {
		query_free(query);
		return r;
	}
	*ret = query;
	return 0;
}
