/* SPDX-License-Identifier: MIT */
#include "dbus/client.h"

#include <assert.h>

#include "dbus/causes.h"
#include "dbus/client-read.h"
#include "dbus/errors.h"
#include "dbus/installed.h"

#define CLIENT_NO_LIMIT UINT64_MAX /* sd_bus_call(3): 0 would be a default of 25 s */
#define ERROR_NAME_PREFIX "org.freedesktop.DBus.Error."

static inline void message_unref(sd_bus_message **m)
{
	sd_bus_message_unref(*m);
}

#define _cleanup_message_ _cleanup_(message_unref)

int client_open_address(const char *address, sd_bus **ret)
{
	sd_bus *bus = NULL;
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0) {
		sd_bus_close_unref(bus);
		return r;
	}

	*ret = bus;
	return 0;
}

int client_open(sd_bus **ret, sd_bus_error *reterr)
{
	int r = client_open_address("unix:path=" CLIENT_BUS_PATH, ret);

	if (r < 0) {
		if (r == -ENOENT || r == -ECONNREFUSED)
			sd_bus_error_set(reterr, SD_BUS_ERROR_NO_SERVER, NULL);
		else
			sd_bus_error_setf(reterr, SD_BUS_ERROR_FAILED,
					  "The system bus at " CLIENT_BUS_PATH " cannot be reached: %s",
					  strerror(-r));
	}
	return r;
}

static int call_manager(sd_bus *bus, const char *member, const char *id, bool interactive,
			sd_bus_message **ret_reply, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &call, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   member);
	if (r >= 0 && id)
		r = sd_bus_message_append(call, "sa{sv}", id, 0);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(call, interactive);
	if (r >= 0)
		return sd_bus_call(bus, call, CLIENT_NO_LIMIT, reterr, ret_reply);
	return sd_bus_error_set_errno(reterr, r);
}

static int list_sessions(sd_bus *bus, const char *member, bool interactive, ClientSessions *ret,
			 sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_manager(bus, member, NULL, interactive, &reply, reterr);
	if (r < 0)
		return r;
	r = client_read_sessions(reply, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

int client_list_sessions(sd_bus *bus, ClientSessions *ret, sd_bus_error *reterr)
{
	return list_sessions(bus, CS_MEMBER_LIST_SESSIONS, false, ret, reterr);
}

int client_list_all_sessions(sd_bus *bus, bool interactive, ClientSessions *ret, sd_bus_error *reterr)
{
	return list_sessions(bus, CS_MEMBER_LIST_ALL_SESSIONS, interactive, ret, reterr);
}

bool client_needs_password(const sd_bus_error *e)
{
	return sd_bus_error_has_name(e, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
}

static int call_for_table(sd_bus *bus, const char *member, ClientTable *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_manager(bus, member, NULL, false, &reply, reterr);
	if (r < 0)
		return r;
	r = client_read_table(reply, 3, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

int client_list_allow_ip(sd_bus *bus, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_table(bus, CS_MEMBER_LIST_ALLOW_IP, ret, reterr);
}

int client_get_policy(sd_bus *bus, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_table(bus, CS_MEMBER_GET_POLICY, ret, reterr);
}

int client_stop_session(sd_bus *bus, const char *id, bool interactive, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_manager(bus, CS_MEMBER_STOP_SESSION, id, interactive, &reply, reterr);
	return r < 0 ? r : 0;
}

/* Not sd_bus_get_property_string(3): its call has the library's time limit. */
static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message **ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &call, CS_BUS_NAME, path, "org.freedesktop.DBus.Properties",
					   "Get");
	if (r >= 0)
		r = sd_bus_message_append(call, "ss", interface, property);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	return sd_bus_call(bus, call, CLIENT_NO_LIMIT, reterr, ret);
}

int client_get_property(sd_bus *bus, const char *property, char **ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r = get_property(bus, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, property, &reply, reterr);

	if (r < 0)
		return r;
	if (sd_bus_message_enter_container(reply, 'v', "s") <= 0)
		return sd_bus_error_set_errno(reterr, -EBADMSG);
	r = client_read_string(reply, 's', ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

int client_get_jailed(sd_bus *bus, const char *path, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int jailed = 0;
	int r = get_property(bus, path, CS_SESSION_INTERFACE, SESSION_PROPERTY_JAILED, &reply, reterr);

	if (r < 0)
		return r;
	if (sd_bus_message_read(reply, "v", "b", &jailed) < 0)
		return sd_bus_error_set_errno(reterr, -EBADMSG);
	return jailed != 0;
}

bool client_id_is_prefix(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz234567");

	return n > 0 && n <= CS_ID_LENGTH && text[n] == '\0';
}

int client_find_session(const ClientSessions *sessions, const char *prefix, const char **ret_id)
{
	const char *found = NULL;

	for (size_t i = 0; i < sessions->n; i++) {
		if (!starts_with(sessions->items[i].id, prefix))
			continue;
		if (found)
			return -ENOTUNIQ;
		found = sessions->items[i].id;
	}
	if (!found)
		return -ENOENT;

	*ret_id = found;
	return 0;
}

char *client_sentence_there(int error, const sd_bus_error *e)
{
	static const char service_fix[] = "run 'sudo ./quickstart', or see the journal of claude-sandboxd";
	const char *name = e && e->name ? e->name : "", *message = e && e->message ? e->message : "";
	const char *standard = starts_with(name, ERROR_NAME_PREFIX);
	char *sentence = NULL;

	if (streq(name, SD_BUS_ERROR_NO_SERVER) || error == -ECONNREFUSED) {
		if (access(CS_MARKER_PATH, F_OK) == 0)
			(void)refuse(&sentence, 0,
				     "this is the inside of a jail, where no bus is; run it outside");
		else
			(void)refuse(&sentence, 0, BECAUSE(BUS_NONE), CLIENT_BUS_PATH);
	} else if (streq(name, SD_BUS_ERROR_SERVICE_UNKNOWN) || streq(name, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
		   (standard && starts_with(standard, "Spawn.")) ||
		   streq(name, ERROR_NAME_PREFIX "TimedOut")) {
		(void)refuse(&sentence, 0, BECAUSE(SERVICE_UNSTARTED), CS_BUS_NAME,
			     *message ? message : name);
	} else if (streq(name, SD_BUS_ERROR_NO_REPLY) || error == -ECONNRESET || error == -ENOTCONN) {
		(void)refuse(&sentence, 0, BECAUSE(SERVICE_GONE));
	} else if (streq(name, SD_BUS_ERROR_UNKNOWN_METHOD) || streq(name, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
		   streq(name, SD_BUS_ERROR_UNKNOWN_OBJECT) || streq(name, SD_BUS_ERROR_UNKNOWN_PROPERTY) ||
		   error == -EBADMSG) {
		(void)refuse(&sentence, 0, BECAUSE(SERVICE_OTHER),
			     *message ? message : "its reply has other types");
	} else if (streq(name, SD_BUS_ERROR_ACCESS_DENIED)) {
		(void)refuse(&sentence, 0, BECAUSE(BUS_POLICY), CS_BUS_NAME, *message ? message : name);
	} else if (error_is_known(name)) {
		(void)refuse(&sentence, 0, "%s", error_sentence(name, message));
	} else if (*message) {
		(void)refuse(&sentence, 0, "%s", message);
	} else {
		(void)refuse(&sentence, 0, "the call failed (%s); %s", *name ? name : strerror(-error),
			     service_fix);
	}
	return sentence;
}

/* What the bus does not let through, or cannot start, may lack its file. */
static int check_files(const char *name, char **ret_problem)
{
	int r;

	if (streq(name, SD_BUS_ERROR_ACCESS_DENIED))
		return installed_check_policy(ret_problem);
	if (!streq(name, SD_BUS_ERROR_SERVICE_UNKNOWN) && !starts_with(name, ERROR_NAME_PREFIX "Spawn."))
		return 0;
	r = installed_check_activation(ret_problem);
	return r < 0 ? r : installed_check_policy(ret_problem);
}

char *client_sentence(int error, const sd_bus_error *e)
{
	char *problem = NULL;

	if (e && e->name && check_files(e->name, &problem) < 0 && problem)
		return problem;
	return client_sentence_there(error, e);
}
