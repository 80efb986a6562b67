/* SPDX-License-Identifier: MIT */
#include "dbus/client-events.h"

#include "dbus/client-read.h"

/* sd_bus_call(3): 0 would be a default of 25 s. */
#define CLIENT_NO_LIMIT UINT64_MAX
#define EVENT_TYPES "tsusa{ss}"

static inline void message_unref(sd_bus_message **m)
{
	sd_bus_message_unref(*m);
}

#define _cleanup_message_ _cleanup_(message_unref)

void client_event_done(ClientEvent *event)
{
	free(event->kind);
	free(event->session);
	client_table_done(&event->details);
	*event = (ClientEvent){ 0 };
}

void client_events_done(ClientEvents *events)
{
	for (size_t i = 0; i < events->n; i++)
		client_event_done(&events->items[i]);
	free(events->items);
	*events = (ClientEvents){ 0 };
}

const char *client_event_detail(const ClientEvent *event, const char *name)
{
	for (size_t i = 0; i < event->details.n_rows; i++)
		if (streq(event->details.cells[i * 2], name))
			return event->details.cells[i * 2 + 1];
	return NULL;
}

static int read_details(sd_bus_message *m, ClientTable *details)
{
	int r;

	details->n_columns = 2;
	if (sd_bus_message_enter_container(m, 'a', "{ss}") <= 0)
		return -EBADMSG;
	while ((r = sd_bus_message_enter_container(m, 'e', "ss")) > 0) {
		char **grown = reallocarray(details->cells, (details->n_rows + 1) * 2, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		details->cells = grown;
		grown += details->n_rows++ * 2;
		grown[0] = grown[1] = NULL;
		r = client_read_string(m, 's', &grown[0]);
		if (r >= 0)
			r = client_read_string(m, 's', &grown[1]);
		if (r < 0)
			return r;
		if (sd_bus_message_exit_container(m) < 0)
			return -EBADMSG;
	}
	return r < 0 || sd_bus_message_exit_container(m) < 0 ? -EBADMSG : 0;
}

int client_read_event(sd_bus_message *m, ClientEvent *ret)
{
	_cleanup_(client_event_done) ClientEvent event = { 0 };
	int r;

	if (sd_bus_message_enter_container(m, 'r', EVENT_TYPES) <= 0 ||
	    sd_bus_message_read_basic(m, 't', &event.usec) <= 0)
		return -EBADMSG;
	r = client_read_string(m, 's', &event.kind);
	if (r >= 0 && sd_bus_message_read_basic(m, 'u', &event.uid) <= 0)
		r = -EBADMSG;
	if (r >= 0)
		r = client_read_string(m, 's', &event.session);
	if (r >= 0)
		r = read_details(m, &event.details);
	if (r >= 0 && sd_bus_message_exit_container(m) < 0)
		r = -EBADMSG;
	if (r < 0)
		return r;
	*ret = event;
	event = (ClientEvent){ 0 };
	return 0;
}

int client_read_events(sd_bus_message *reply, ClientEvents *ret)
{
	_cleanup_(client_events_done) ClientEvents events = { 0 };

	if (sd_bus_message_enter_container(reply, 'a', CS_EVENT_SIGNATURE) <= 0)
		return -EBADMSG;
	while (sd_bus_message_at_end(reply, false) == 0) {
		ClientEvent *grown = reallocarray(events.items, events.n + 1, sizeof(*grown));
		int r;

		if (!grown)
			return -ENOMEM;
		events.items = grown;
		r = client_read_event(reply, &grown[events.n]);
		if (r < 0)
			return r;
		events.n++;
	}
	if (sd_bus_message_exit_container(reply) < 0)
		return -EBADMSG;
	*ret = events;
	events = (ClientEvents){ 0 };
	return 0;
}

static int call(sd_bus *bus, sd_bus_message *m, int r, sd_bus_message **ret_reply, sd_bus_error *reterr)
{
	return r < 0 ? sd_bus_error_set_errno(reterr, r)
		     : sd_bus_call(bus, m, CLIENT_NO_LIMIT, reterr, ret_reply);
}

int client_list_events(sd_bus *bus, const char *session, uint64_t after_usec, ClientEvents *ret,
		       sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   CS_MEMBER_LIST_EVENTS);
	if (r >= 0)
		r = sd_bus_message_append(m, "sa{sv}", session, 1, "after", "t", after_usec);
	r = call(bus, m, r, &reply, reterr);
	if (r < 0)
		return r;
	r = client_read_events(reply, ret);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : 0;
}

int client_subscribe(sd_bus *bus, sd_bus_error *reterr)
{
	_cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					   CS_MEMBER_SUBSCRIBE);
	r = call(bus, m, r, &reply, reterr);
	return r < 0 ? r : 0;
}
