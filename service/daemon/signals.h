/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Signals, each to exactly those who subscribed and may see what it is about. A broadcast would be seen by
 * every user of the machine.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "service/daemon/client.h"
#include "service/daemon/registry.h"

typedef struct Signals {
	sd_bus *bus;
	Clients *clients;
	Registry *registry;
} Signals;

/* SessionAdded or SessionRemoved, and the manager's changed property Sessions. */
void signals_session(const Signals *signals, const Session *session, bool added);
/* PropertiesChanged, with StateChanged when the state or the exit status is among them (KeeperChange). */
void signals_session_changed(const Signals *signals, const Session *session, unsigned changes);

/* Denied, one for each row: what the session says that was tried. A row that says no numbers is left out. */
void signals_denied(const Signals *signals, const Session *session, const LinkRow *rows, uint32_t n);

/* One of the manager's signals without arguments, to everybody who subscribed. */
void signals_manager(const Signals *signals, const char *name);

/* How many sessions this connection sees. */
uint32_t signals_count_visible(const Signals *signals, const Client *client);
