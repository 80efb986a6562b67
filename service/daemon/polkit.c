/* SPDX-License-Identifier: MIT */
#include "service/daemon/polkit.h"

#include "dbus/wire.h"

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define POLKIT_INTERACTIVE 1u /* CheckAuthorizationFlags.AllowUserInteraction */

bool polkit_error_is_absence(const char *name)
{
	static const char *const names[] = {
		"org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.DBus.Error.Spawn.ServiceNotFound",
		/* its file is there, its program is not */
		"org.freedesktop.DBus.Error.Spawn.ExecFailed",
		"org.freedesktop.systemd1.NoSuchUnit",
		"org.freedesktop.systemd1.Masked",
	};

	for (size_t i = 0; name && i < ELEMENTSOF(names); i++)
		if (streq(names[i], name))
			return true;
	return false;
}

static int append_details(sd_bus_message *m, const PolkitQuestion *question)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "{ss}");
	/* Taken from root alone, and from whom the action names as its owner. */
	if (r >= 0 && question->message)
		r = sd_bus_message_append(m, "{ss}", "polkit.message", question->message);
	for (const char *const *detail = question->details; r >= 0 && detail && detail[0]; detail += 2)
		r = sd_bus_message_append(m, "{ss}", detail[0], detail[1]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int polkit_ask(sd_bus *bus, const PolkitQuestion *question, sd_bus_message_handler_t handler, void *userdata,
	       sd_bus_slot **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
					   "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s",
					  question->subject, question->action);
	if (r >= 0)
		r = append_details(m, question);
	if (r >= 0)
		r = sd_bus_message_append(m, "us", question->interactive ? POLKIT_INTERACTIVE : 0,
					  question->cancellation);
	if (r >= 0)
		r = sd_bus_call_async(bus, ret, m, handler, userdata,
				      question->interactive ? POLKIT_DIALOG_USEC : POLKIT_SILENT_USEC);
	return r < 0 ? r : 0;
}

static int find_dismissal(sd_bus_message *reply, bool *ret)
{
	const char *key, *value;
	int r;

	r = sd_bus_message_enter_container(reply, 'a', "{ss}");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_read(reply, "{ss}", &key, &value)) > 0)
		if (streq(key, "polkit.dismissed"))
			*ret = true;
	return r < 0 ? r : sd_bus_message_exit_container(reply);
}

PolkitAnswer polkit_answer(sd_bus_message *reply, const char **ret_error)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	int authorized = 0, challenge = 0, r;
	bool dismissed = false;

	*ret_error = NULL;
	if (error) {
		if (polkit_error_is_absence(error->name))
			return POLKIT_ABSENT;
		if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
		    sd_bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT))
			return POLKIT_SILENT;
		*ret_error = error->message && error->message[0] ? error->message : error->name;
		return POLKIT_BROKEN;
	}
	r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
	if (r >= 0)
		r = sd_bus_message_read(reply, "bb", &authorized, &challenge);
	if (r >= 0)
		r = find_dismissal(reply, &dismissed);
	if (r < 0)
		return POLKIT_BROKEN;
	if (authorized)
		return POLKIT_YES;
	return dismissed ? POLKIT_DISMISSED : challenge ? POLKIT_PASSWORD : POLKIT_NO;
}

int polkit_list(sd_bus *bus, uint64_t usec, sd_bus_message_handler_t handler, void *userdata,
		sd_bus_slot **ret)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
					   "EnumerateActions");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", "");
	if (r >= 0)
		r = sd_bus_call_async(bus, ret, m, handler, userdata, usec);
	return r < 0 ? r : 0;
}

int polkit_knows(sd_bus_message *reply, const char *action)
{
	bool found = false;
	int r;

	r = sd_bus_message_rewind(reply, true);
	if (r >= 0)
		r = sd_bus_message_enter_container(reply, 'a', "(ssssssuuua{ss})");
	while (r >= 0 && !found && (r = sd_bus_message_enter_container(reply, 'r', "ssssssuuua{ss}")) > 0) {
		const char *id;

		r = sd_bus_message_read_basic(reply, 's', &id);
		if (r >= 0)
			found = streq(id, action);
		if (r >= 0)
			r = sd_bus_message_skip(reply, "sssssuuua{ss}");
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r < 0 ? r : found;
}

void polkit_cancel(sd_bus *bus, const char *cancellation)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
					   "CancelCheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", cancellation);
	if (r >= 0)
		r = sd_bus_message_set_expect_reply(m, false);
	/* One that is not there has no dialog either. */
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r >= 0)
		(void)sd_bus_send(bus, m, NULL);
}
