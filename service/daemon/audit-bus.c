/* SPDX-License-Identifier: MIT */
#include "service/daemon/audit-bus.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/audit-store.h"
#include "service/daemon/log.h"
#include "service/daemon/record.h"
#include "service/daemon/request.h"

static int append_event(sd_bus_message *m, const AuditEvent *event)
{
	int r;

	r = sd_bus_message_open_container(m, 'r', "tsusa{ss}");
	if (r >= 0)
		r = sd_bus_message_append(m, "tsus", event->usec, audit_kind_name(event->kind), event->uid,
					  event->session);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{ss}");
	for (size_t i = 0; r >= 0 && i < event->n_details; i++)
		r = sd_bus_message_append(m, "{ss}", event->details[i].name, event->details[i].value);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int audit_bus_list(Manager *manager, Client *client, sd_bus_message *m, const AuthEntry *entry,
		   sd_bus_error *reterr)
{
	_cleanup_(audit_events_done) AuditEvents events = { 0 };
	_cleanup_message_ sd_bus_message *reply = NULL;
	uint64_t after = 0, max = AUDIT_EVENTS_MAX;
	const OptionSpec options[] = { { "after", 't', &after }, { "max", 't', &max } };
	AuditQuery query = { .everybody = client->uid == 0, .uid = client->uid };
	const char *session;
	int r;

	r = sd_bus_message_read(m, "s", &session);
	if (r < 0)
		return r;
	r = options_read(m, options, ELEMENTSOF(options), reterr);
	if (r < 0)
		return r;
	if (*session && !session_id_valid(session))
		return sd_bus_error_setf(reterr, CS_ERROR_BAD_REQUEST,
					 "A session's id has %d characters of [a-z2-7]; give it whole.",
					 CS_ID_LENGTH);
	/* What the answer would not have without it. */
	if (client->uid == 0)
		allow_seen_look(manager->allow_seen);
	query.session = *session ? session : NULL;
	query.after = after;
	query.max = (size_t)MIN_OF(max, (uint64_t)AUDIT_EVENTS_MAX);
	r = audit_store_read(&query, &events);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return sd_bus_error_setf(reterr, SD_BUS_ERROR_FAILED,
					 "The audit log in %s cannot be read: %s; look at what is there.",
					 CS_LOG_DIR, strerror(-r));
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', CS_EVENT_SIGNATURE);
	for (size_t i = 0; r >= 0 && i < events.n; i++)
		r = append_event(reply, &events.events[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}

void audit_bus_tell(void *userdata, const AuditEvent *event)
{
	Manager *manager = userdata;

	for (Client *client = clients_first(manager->clients); client; client = client->next) {
		_cleanup_message_ sd_bus_message *m = NULL;
		int r;

		if (!client->known || !client->subscribed || (client->uid != 0 && client->uid != event->uid))
			continue;
		r = sd_bus_message_new_signal(manager->bus, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					      CS_SIGNAL_EVENT);
		if (r >= 0)
			r = append_event(m, event);
		if (r >= 0)
			r = sd_bus_send_to(manager->bus, m, client->name, NULL);
		if (r < 0)
			log_line("a signal to %s is lost: %s", client->name, strerror(-r));
	}
}
