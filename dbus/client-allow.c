/* SPDX-License-Identifier: MIT */
#include "dbus/client-allow.h"

#include <stdarg.h>

#include "dbus/wire.h"

#define CLIENT_NO_LIMIT UINT64_MAX /* sd_bus_call(3): 0 would be a default of 25 s */

/* types and arguments as of sd_bus_message_append(3). Return: as sd_bus_call(3). */
static int call(sd_bus *bus, const char *id, const char *member, bool interactive, sd_bus_message **ret_reply,
		sd_bus_error *reterr, const char *types, ...)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	_cleanup_free_ char *path = NULL;
	va_list arguments;
	int r;

	if (asprintf(&path, "%s%s%s", id ? CS_SESSION_ROOT : CS_MANAGER_PATH, id ? "/" : "", id ?: "") < 0) {
		path = NULL;
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	}
	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, path,
					   id ? CS_SESSION_INTERFACE : CS_MANAGER_INTERFACE, member);
	va_start(arguments, types);
	if (r >= 0)
		r = sd_bus_message_appendv(m, types, arguments);
	va_end(arguments);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, interactive);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	return sd_bus_call(bus, m, CLIENT_NO_LIMIT, reterr, ret_reply);
}

static int read_unconfirmed(sd_bus_message *reply, char ***ret, sd_bus_error *reterr)
{
	char **strings = NULL;
	int r = sd_bus_message_read_strv(reply, &strings);

	if (r < 0)
		return sd_bus_error_set_errno(reterr, r == -ENOMEM ? r : -EBADMSG);
	*ret = strings;
	return 0;
}

int client_add_allow_ip(sd_bus *bus, const char *address, const char *comment, bool interactive,
			char ***ret_unconfirmed, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r = call(bus, NULL, CS_MEMBER_ADD_ALLOW_IP, interactive, &reply, reterr, "ssa{sv}", address,
		     comment, 0);

	return r < 0 ? r : read_unconfirmed(reply, ret_unconfirmed, reterr);
}

int client_check_allow_ip(sd_bus *bus, const char *address, const char *comment, sd_bus_error *reterr)
{
	int r = call(bus, NULL, CS_MEMBER_ADD_ALLOW_IP, false, NULL, reterr, "ssa{sv}", address, comment, 1,
		     "check", "b", 1);

	return r < 0 ? r : 0;
}

int client_remove_allow_ip(sd_bus *bus, const char *address, bool interactive, char ***ret_unconfirmed,
			   sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r = call(bus, NULL, CS_MEMBER_REMOVE_ALLOW_IP, interactive, &reply, reterr, "s", address);

	return r < 0 ? r : read_unconfirmed(reply, ret_unconfirmed, reterr);
}

int client_allow_ip(sd_bus *bus, const char *id, const char *address, uint64_t seconds, bool interactive,
		    sd_bus_error *reterr)
{
	int r = call(bus, id, CS_MEMBER_ALLOW_IP, interactive, NULL, reterr, "sta{sv}", address, seconds, 0);

	return r < 0 ? r : 0;
}

int client_revoke_ip(sd_bus *bus, const char *id, const char *address, bool interactive, sd_bus_error *reterr)
{
	int r = call(bus, id, CS_MEMBER_REVOKE_IP, interactive, NULL, reterr, "s", address);

	return r < 0 ? r : 0;
}
