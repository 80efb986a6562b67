/* SPDX-License-Identifier: MIT */
#include "service/daemon/signals.h"

#include "dbus/names.h"
#include "dbus/wire.h"
#include "service/daemon/keeper.h"
#include "service/daemon/log.h"
#include "service/daemon/session-properties.h"
#include "service/daemon/session-tables.h"
#include "service/daemon/sight.h"

#define PROPERTIES_INTERFACE "org.freedesktop.DBus.Properties"
#define PROPERTIES_CHANGED "PropertiesChanged"
#define MANAGER_PROPERTY_SESSIONS "Sessions"

uint32_t signals_count_visible(const Signals *signals, const Client *client)
{
	uint32_t n = 0;

	for (Session *s = registry_first(signals->registry); s; s = s->next)
		n += sight_allows(client, s);
	return n;
}

/* Return: the next client after client (NULL: the first) that subscribed and may see session. */
static Client *next_witness(const Signals *signals, Client *client, const Session *session)
{
	for (client = client ? client->next : clients_first(signals->clients); client; client = client->next)
		if (client->known && client->subscribed && sight_allows(client, session))
			return client;
	return NULL;
}

static void send(const Signals *signals, const Client *client, sd_bus_message *m, int r)
{
	if (r >= 0)
		r = sd_bus_send_to(signals->bus, m, client->name, NULL);
	if (r < 0)
		log_line("a signal to %s is lost: %s", client->name, strerror(-r));
}

static void send_count(const Signals *signals, const Client *client)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_signal(signals->bus, &m, CS_MANAGER_PATH, PROPERTIES_INTERFACE,
				      PROPERTIES_CHANGED);
	if (r >= 0)
		r = sd_bus_message_append(m, "sa{sv}as", CS_MANAGER_INTERFACE, 1, MANAGER_PROPERTY_SESSIONS,
					  "u", signals_count_visible(signals, client), 0);
	send(signals, client, m, r);
}

void signals_session(const Signals *signals, const Session *session, bool added)
{
	for (Client *client = NULL; (client = next_witness(signals, client, session));) {
		_cleanup_message_ sd_bus_message *m = NULL;
		int r;

		r = sd_bus_message_new_signal(signals->bus, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					      added ? CS_SIGNAL_SESSION_ADDED : CS_SIGNAL_SESSION_REMOVED);
		if (r >= 0)
			r = sd_bus_message_append(m, "so", session->id, session->path);
		send(signals, client, m, r);
		send_count(signals, client);
	}
}

static int append_changes(const Session *session, unsigned changes, sd_bus_message *m)
{
	static const struct {
		unsigned change;
		const char *name;
	} names[] = {
		{ KEEPER_STATE, SESSION_PROPERTY_STATE },
		{ KEEPER_LEADER, SESSION_PROPERTY_LEADER },
		{ KEEPER_JAILED, SESSION_PROPERTY_JAILED },
		{ KEEPER_EXIT_STATUS, SESSION_PROPERTY_EXIT_STATUS },
		{ KEEPER_WARNINGS, SESSION_PROPERTY_WARNINGS },
		{ KEEPER_POSTURE, SESSION_PROPERTY_POSTURE },
		{ KEEPER_ATTEMPTS, SESSION_PROPERTY_DENIED },
	};
	int r;

	r = sd_bus_message_append(m, "s", CS_SESSION_INTERFACE);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{sv}");
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(names); i++) {
		if (!(changes & names[i].change))
			continue;
		r = sd_bus_message_open_container(m, 'e', "sv");
		if (r >= 0)
			r = sd_bus_message_append(m, "s", names[i].name);
		if (r >= 0)
			r = sd_bus_message_open_container(m, 'v', session_property_type(names[i].name));
		if (r >= 0)
			r = session_append_property(session, names[i].name, m);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
	}
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_append(m, "as", 0);
}

void signals_session_changed(const Signals *signals, const Session *session, unsigned changes)
{
	for (Client *client = NULL; (client = next_witness(signals, client, session));) {
		_cleanup_message_ sd_bus_message *properties = NULL, *state = NULL;
		int r;

		r = sd_bus_message_new_signal(signals->bus, &properties, session->path, PROPERTIES_INTERFACE,
					      PROPERTIES_CHANGED);
		if (r >= 0)
			r = append_changes(session, changes, properties);
		send(signals, client, properties, r);
		if (!(changes & (KEEPER_STATE | KEEPER_EXIT_STATUS)))
			continue;
		r = sd_bus_message_new_signal(signals->bus, &state, session->path, CS_SESSION_INTERFACE,
					      CS_SIGNAL_STATE_CHANGED);
		if (r >= 0)
			r = sd_bus_message_append(state, "si", session_state_to_string(session->state),
						  session->exit_status);
		send(signals, client, state, r);
	}
}

static void send_denied(const Signals *signals, const Session *session, const LinkRow *row)
{
	for (Client *client = NULL; (client = next_witness(signals, client, session));) {
		_cleanup_message_ sd_bus_message *m = NULL;
		int r;

		r = sd_bus_message_new_signal(signals->bus, &m, session->path, CS_SESSION_INTERFACE,
					      CS_SIGNAL_DENIED);
		if (r >= 0)
			r = session_row_append(m, SESSION_DENIED_ROW, row->columns,
					       sizeof(SESSION_DENIED_ROW) - 1);
		if (r == -EBADMSG)
			return;
		send(signals, client, m, r);
	}
}

void signals_denied(const Signals *signals, const Session *session, const LinkRow *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		send_denied(signals, session, &rows[i]);
}

void signals_manager(const Signals *signals, const char *name)
{
	for (Client *client = clients_first(signals->clients); client; client = client->next) {
		_cleanup_message_ sd_bus_message *m = NULL;
		int r;

		if (!client->known || !client->subscribed)
			continue;
		r = sd_bus_message_new_signal(signals->bus, &m, CS_MANAGER_PATH, CS_MANAGER_INTERFACE, name);
		send(signals, client, m, r);
	}
}
