/* SPDX-License-Identifier: MIT */
#include "service/daemon/call.h"

#include "dbus/base.h"
#include "dbus/wire.h"

int call_keep(sd_bus_message *call, sd_bus_message **ret)
{
	_cleanup_message_ sd_bus_message *kept = NULL;
	uint64_t serial;
	int r;

	r = sd_bus_message_get_cookie(call, &serial);
	if (r >= 0)
		r = sd_bus_message_new_method_call(
			sd_bus_message_get_bus(call), &kept, NULL, sd_bus_message_get_path(call),
			sd_bus_message_get_interface(call), sd_bus_message_get_member(call));
	if (r >= 0)
		r = sd_bus_message_set_sender(kept, sd_bus_message_get_sender(call));
	if (r >= 0)
		r = sd_bus_message_set_expect_reply(kept, sd_bus_message_get_expect_reply(call) > 0);
	/* D-Bus specification, "Header Fields": an answer names its call by sender and serial. */
	if (r >= 0)
		r = sd_bus_message_seal(kept, serial, UINT64_MAX);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(kept);
	return 0;
}

int call_stand_in(sd_bus *bus, const char *sender, uint64_t serial, sd_bus_message **ret)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	int r;

	/* An answer says neither path nor member. */
	r = sd_bus_message_new_method_call(bus, &call, NULL, "/", NULL, "Call");
	if (r >= 0)
		r = sd_bus_message_set_sender(call, sender);
	if (r >= 0)
		r = sd_bus_message_seal(call, serial, UINT64_MAX);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(call);
	return 0;
}
