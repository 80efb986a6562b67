/* SPDX-License-Identifier: MIT */
#include "dbus/client.h"

#include <assert.h>

#include "dbus/errors.h"

#define CLIENT_NO_LIMIT UINT64_MAX /* sd_bus_call(3): 0 would be a default of 25 s */
#define ERROR_NAME_PREFIX "org.freedesktop.DBus.Error."

static inline void message_unref(sd_bus_message **m)
{
	sd_bus_message_unref(*m);
}

#define _cleanup_message_ _cleanup_(message_unref)

static void session_done(ClientSession *session)
{
	free(session->id);
	free(session->path);
	free(session->agent);
	free(session->user);
	free(session->workspace);
	free(session->state);
}

void client_sessions_done(ClientSessions *sessions)
{
	for (size_t i = 0; i < sessions->n; i++)
		session_done(&sessions->items[i]);
	free(sessions->items);
	*sessions = (ClientSessions){ 0 };
}

void client_table_done(ClientTable *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (ClientTable){ 0 };
}

int client_open(sd_bus **ret, sd_bus_error *reterr)
{
	sd_bus *bus = NULL;
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, "unix:path=" CLIENT_BUS_PATH);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0) {
		sd_bus_close_unref(bus);
		if (r == -ENOENT || r == -ECONNREFUSED)
			sd_bus_error_set(reterr, SD_BUS_ERROR_NO_SERVER, NULL);
		else
			sd_bus_error_setf(reterr, SD_BUS_ERROR_FAILED,
					  "The system bus at " CLIENT_BUS_PATH " cannot be reached: %s",
					  strerror(-r));
		return r;
	}

	*ret = bus;
	return 0;
}

static int read_string(sd_bus_message *m, char type, char **ret)
{
	const char *text;
	char *copy;
	int r;

	r = sd_bus_message_read_basic(m, type, &text);
	if (r <= 0)
		return r == -ENOMEM ? r : -EBADMSG;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static int read_bytes(sd_bus_message *m, char **ret)
{
	const void *data;
	size_t size;
	char *copy;
	int r;

	r = sd_bus_message_read_array(m, 'y', &data, &size);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	if (size > 0 && memchr(data, 0, size))
		return -EBADMSG;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	*ret = copy;
	return 0;
}

/* Doubles an array when n reaches a power of two; n counts what is in it. Return: 0 or -ENOMEM. */
static int grow(void **items, size_t n, size_t item_size)
{
	void *larger;

	if (n != 0 && (n & (n - 1)) != 0)
		return 0;
	larger = reallocarray(*items, n == 0 ? 1 : n * 2, item_size);
	if (!larger)
		return -ENOMEM;
	*items = larger;
	return 0;
}

static int read_session(sd_bus_message *m, ClientSession *session)
{
	int r;

	r = read_string(m, 's', &session->id);
	if (r >= 0)
		r = read_string(m, 'o', &session->path);
	if (r >= 0)
		r = read_string(m, 's', &session->agent);
	if (r >= 0)
		r = read_string(m, 's', &session->user);
	if (r >= 0 && sd_bus_message_read_basic(m, 'u', &session->uid) <= 0)
		r = -EBADMSG;
	if (r >= 0)
		r = read_bytes(m, &session->workspace);
	if (r >= 0 && sd_bus_message_read_basic(m, 't', &session->started_usec) <= 0)
		r = -EBADMSG;
	if (r >= 0)
		r = read_string(m, 's', &session->state);
	return r;
}

int client_read_sessions(sd_bus_message *reply, ClientSessions *ret)
{
	_cleanup_(client_sessions_done) ClientSessions sessions = { 0 };
	int r;

	if (!sd_bus_message_has_signature(reply, "a(sossuayts)"))
		return -EBADMSG;
	if (sd_bus_message_enter_container(reply, 'a', "(sossuayts)") <= 0)
		return -EBADMSG;
	while ((r = sd_bus_message_enter_container(reply, 'r', "sossuayts")) > 0) {
		r = grow((void **)&sessions.items, sessions.n, sizeof(*sessions.items));
		if (r < 0)
			return r;
		sessions.items[sessions.n] = (ClientSession){ 0 };
		r = read_session(reply, &sessions.items[sessions.n++]);
		if (r < 0)
			return r;
		if (sd_bus_message_exit_container(reply) < 0)
			return -EBADMSG;
	}
	if (r < 0)
		return -EBADMSG;

	*ret = sessions;
	sessions = (ClientSessions){ 0 };
	return 0;
}

int client_read_table(sd_bus_message *reply, size_t n_columns, ClientTable *ret)
{
	_cleanup_(client_table_done) ClientTable table = { .n_columns = n_columns };
	char signature[] = "a(ssssssss)", row[sizeof(signature)];
	int r;

	assert(n_columns > 0 && n_columns <= 8);
	memset(row, 's', n_columns);
	row[n_columns] = '\0';
	signature[2 + n_columns] = ')';
	signature[3 + n_columns] = '\0';

	if (!sd_bus_message_has_signature(reply, signature))
		return -EBADMSG;
	if (sd_bus_message_enter_container(reply, 'a', signature + 1) <= 0)
		return -EBADMSG;
	while ((r = sd_bus_message_enter_container(reply, 'r', row)) > 0) {
		r = grow((void **)&table.cells, table.n_rows, n_columns * sizeof(*table.cells));
		if (r < 0)
			return r;
		memset(table.cells + table.n_rows * n_columns, 0, n_columns * sizeof(*table.cells));
		table.n_rows++;
		for (size_t i = 0; i < n_columns; i++) {
			r = read_string(reply, 's', &table.cells[(table.n_rows - 1) * n_columns + i]);
			if (r < 0)
				return r;
		}
		if (sd_bus_message_exit_container(reply) < 0)
			return -EBADMSG;
	}
	if (r < 0)
		return -EBADMSG;

	*ret = table;
	table = (ClientTable){ 0 };
	return 0;
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

int client_list_sessions(sd_bus *bus, ClientSessions *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_manager(bus, CS_MEMBER_LIST_SESSIONS, NULL, false, &reply, reterr);
	if (r < 0)
		return r;
	r = client_read_sessions(reply, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
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
int client_get_property(sd_bus *bus, const char *property, char **ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &call, CS_BUS_NAME, CS_MANAGER_PATH,
					   "org.freedesktop.DBus.Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_append(call, "ss", CS_MANAGER_INTERFACE, property);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	r = sd_bus_call(bus, call, CLIENT_NO_LIMIT, reterr, &reply);
	if (r < 0)
		return r;
	if (sd_bus_message_enter_container(reply, 'v', "s") <= 0)
		return sd_bus_error_set_errno(reterr, -EBADMSG);
	r = read_string(reply, 's', ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
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

char *client_sentence(int error, const sd_bus_error *e)
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
			(void)refuse(&sentence, 0,
				     "no system bus answers at %s; start it ('sudo ./quickstart' does)",
				     CLIENT_BUS_PATH);
	} else if (streq(name, SD_BUS_ERROR_SERVICE_UNKNOWN) || streq(name, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
		   (standard && starts_with(standard, "Spawn.")) ||
		   streq(name, ERROR_NAME_PREFIX "TimedOut")) {
		(void)refuse(&sentence, 0, "the service %s cannot be started (%s); %s", CS_BUS_NAME,
			     *message ? message : name, service_fix);
	} else if (streq(name, SD_BUS_ERROR_NO_REPLY) || error == -ECONNRESET || error == -ENOTCONN) {
		(void)refuse(&sentence, 0, "the service went away before it answered; try again, %s",
			     service_fix);
	} else if (streq(name, SD_BUS_ERROR_UNKNOWN_METHOD) || streq(name, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
		   streq(name, SD_BUS_ERROR_UNKNOWN_PROPERTY) || error == -EBADMSG) {
		(void)refuse(&sentence, 0,
			     "the running service does not speak as this command does (%s); restart "
			     "claude-sandboxd",
			     *message ? message : "its reply has other types");
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
