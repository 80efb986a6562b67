/* SPDX-License-Identifier: MIT */
#include "dbus/client-peer.h"

#include "dbus/wire.h"

#define CLIENT_NO_LIMIT UINT64_MAX /* sd_bus_call(3): 0 would be a default of 25 s */
#define BUS_DRIVER "org.freedesktop.DBus"

int client_find_owner(sd_bus *bus, char **ret, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
	const char *sender;
	char *owner;
	int r;

	if (sd_bus_is_bus_client(bus) <= 0) {
		*ret = NULL;
		return 0;
	}
	/* Any question that only the service answers: a Ping is answered on the way to another machine. */
	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH,
					   "org.freedesktop.DBus.Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", CS_MANAGER_INTERFACE, CS_PROPERTY_VERSION);
	if (r < 0)
		return sd_bus_error_set_errno(reterr, r);
	r = sd_bus_call(bus, m, CLIENT_NO_LIMIT, reterr, &reply);
	if (r < 0)
		return r;
	sender = sd_bus_message_get_sender(reply);
	if (!sender)
		return sd_bus_error_set_errno(reterr, -EBADMSG);
	owner = strdup(sender);
	if (!owner)
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	*ret = owner;
	return 0;
}

bool client_is_from(sd_bus_message *m, const char *owner)
{
	const char *sender = sd_bus_message_get_sender(m);

	return !owner || (sender && streq(sender, owner));
}

bool client_is_from_bus(sd_bus_message *m)
{
	const char *sender = sd_bus_message_get_sender(m);

	return sender && streq(sender, BUS_DRIVER);
}
