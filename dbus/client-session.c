/* SPDX-License-Identifier: MIT */
#include "dbus/client-session.h"

#include "dbus/client-read.h"
#include "dbus/wire.h"

#define NO_LIMIT UINT64_MAX /* sd_bus_call(3): 0 would be a default of 25 s */

void client_details_done(ClientDetails *details)
{
	client_session_done(&details->session);
	client_table_done(&details->warnings);
	client_table_done(&details->posture);
	*details = (ClientDetails){ 0 };
}

typedef enum Field {
	FIELD_STRING,
	FIELD_BYTES,
	FIELD_U32,
	FIELD_U64,
	FIELD_I32,
	FIELD_BOOL,
	FIELD_STRINGS,
	FIELD_POSTURE,
} Field;

static const struct {
	const char *name, *type;
	Field field;
	size_t offset;
} fields[] = {
	{ SESSION_PROPERTY_ID, "s", FIELD_STRING, offsetof(ClientDetails, session.id) },
	{ SESSION_PROPERTY_AGENT, "s", FIELD_STRING, offsetof(ClientDetails, session.agent) },
	{ SESSION_PROPERTY_USER, "s", FIELD_STRING, offsetof(ClientDetails, session.user) },
	{ SESSION_PROPERTY_UID, "u", FIELD_U32, offsetof(ClientDetails, session.uid) },
	{ SESSION_PROPERTY_WORKSPACE, "ay", FIELD_BYTES, offsetof(ClientDetails, session.workspace) },
	{ SESSION_PROPERTY_STARTED, "t", FIELD_U64, offsetof(ClientDetails, session.started_usec) },
	{ SESSION_PROPERTY_STATE, "s", FIELD_STRING, offsetof(ClientDetails, session.state) },
	{ SESSION_PROPERTY_LEADER, "u", FIELD_U32, offsetof(ClientDetails, leader) },
	{ SESSION_PROPERTY_JAILED, "b", FIELD_BOOL, offsetof(ClientDetails, jailed) },
	{ SESSION_PROPERTY_WARNINGS, "as", FIELD_STRINGS, offsetof(ClientDetails, warnings) },
	{ SESSION_PROPERTY_POSTURE, "a(sss)", FIELD_POSTURE, offsetof(ClientDetails, posture) },
	{ SESSION_PROPERTY_EXIT_STATUS, "i", FIELD_I32, offsetof(ClientDetails, exit_status) },
	{ SESSION_PROPERTY_DENIED, "t", FIELD_U64, offsetof(ClientDetails, denied) },
};

static int read_strings(sd_bus_message *m, ClientTable *ret)
{
	char **strings = NULL;
	size_t n = 0;
	int r;

	r = sd_bus_message_read_strv(m, &strings);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	while (strings && strings[n])
		n++;
	*ret = (ClientTable){ .n_columns = 1, .n_rows = n, .cells = strings };
	return 0;
}

static int read_number(sd_bus_message *m, char type, void *to)
{
	return sd_bus_message_read_basic(m, type, to) > 0 ? 0 : -EBADMSG;
}

static int read_field(sd_bus_message *m, Field field, void *to)
{
	int flag = 0, r;

	switch (field) {
	case FIELD_STRING:
		return client_read_string(m, 's', to);
	case FIELD_BYTES:
		return client_read_bytes(m, to);
	case FIELD_U32:
		return read_number(m, 'u', to);
	case FIELD_U64:
		return read_number(m, 't', to);
	case FIELD_I32:
		return read_number(m, 'i', to);
	case FIELD_BOOL:
		r = read_number(m, 'b', &flag);
		*(bool *)to = flag;
		return r;
	case FIELD_STRINGS:
		return read_strings(m, to);
	case FIELD_POSTURE:
		return client_read_rows(m, "sss", to);
	}
	return -EBADMSG;
}

/* One property; those of later versions are passed over. Sets its bit in *seen. */
static int read_property(sd_bus_message *m, ClientDetails *details, uint32_t *seen)
{
	const char *name;
	int r;

	if (sd_bus_message_read_basic(m, 's', &name) <= 0)
		return -EBADMSG;
	for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
		if (!streq(fields[i].name, name))
			continue;
		if (*seen & 1u << i || sd_bus_message_enter_container(m, 'v', fields[i].type) <= 0)
			return -EBADMSG;
		*seen |= 1u << i;
		r = read_field(m, fields[i].field, (char *)details + fields[i].offset);
		if (r < 0)
			return r;
		return sd_bus_message_exit_container(m) < 0 ? -EBADMSG : 0;
	}
	return sd_bus_message_skip(m, "v") < 0 ? -EBADMSG : 0;
}

int client_read_details(sd_bus_message *reply, ClientDetails *ret)
{
	_cleanup_(client_details_done) ClientDetails details = { 0 };
	uint32_t seen = 0;
	int r;

	if (sd_bus_message_enter_container(reply, 'a', "{sv}") <= 0)
		return -EBADMSG;
	while ((r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
		r = read_property(reply, &details, &seen);
		if (r < 0)
			return r;
		if (sd_bus_message_exit_container(reply) < 0)
			return -EBADMSG;
	}
	if (r < 0 || seen != (1u << ELEMENTSOF(fields)) - 1)
		return -EBADMSG;

	*ret = details;
	details = (ClientDetails){ 0 };
	return 0;
}

/* argument: of the call, or NULL for none. */
static int call_session(sd_bus *bus, const char *id, const char *interface, const char *member,
			const char *argument, sd_bus_message **ret_reply, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, CS_SESSION_ROOT "/%s", id) < 0) {
		path = NULL;
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	}
	r = sd_bus_message_new_method_call(bus, &call, CS_BUS_NAME, path, interface, member);
	if (r >= 0 && argument)
		r = sd_bus_message_append_basic(call, 's', argument);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	r = sd_bus_call(bus, call, NO_LIMIT, reterr, ret_reply);
	/* The object of a session that has ended, or that is another's. */
	if (r < 0 && sd_bus_error_has_name(reterr, SD_BUS_ERROR_UNKNOWN_OBJECT)) {
		sd_bus_error_free(reterr);
		sd_bus_error_setf(
			reterr, CS_ERROR_NO_SUCH_SESSION,
			"There is no session '%s' that you may see; 'claude-sandbox sessions' lists them.",
			id);
	}
	return r < 0 ? r : 0;
}

int client_get_details(sd_bus *bus, const char *id, ClientDetails *ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_session(bus, id, "org.freedesktop.DBus.Properties", "GetAll", CS_SESSION_INTERFACE, &reply,
			 reterr);
	if (r < 0)
		return r;
	r = client_read_details(reply, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

static int call_for_rows(sd_bus *bus, const char *id, const char *member, const char *row, ClientTable *ret,
			 sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r;

	r = call_session(bus, id, CS_SESSION_INTERFACE, member, NULL, &reply, reterr);
	if (r < 0)
		return r;
	r = client_read_rows(reply, row, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

int client_list_exposure(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_rows(bus, id, CS_MEMBER_LIST_EXPOSURE, "ayssss", ret, reterr);
}

int client_list_environment(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_rows(bus, id, CS_MEMBER_LIST_ENVIRONMENT, "ss", ret, reterr);
}

int client_list_routes(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_rows(bus, id, CS_MEMBER_LIST_ROUTES, "sssss", ret, reterr);
}

int client_list_ports(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_rows(bus, id, CS_MEMBER_LIST_PORTS, "qsss", ret, reterr);
}

int client_list_denied(sd_bus *bus, const char *id, ClientTable *ret, sd_bus_error *reterr)
{
	return call_for_rows(bus, id, CS_MEMBER_LIST_DENIED, CLIENT_DENIED_ROW, ret, reterr);
}
