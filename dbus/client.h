/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bus as our own clients use it: open, call, decode. No output and no words for a person but one:
 * client_sentence(). Calls wait without a time limit, since an administrator may be typing a password; the
 * readers stand apart from the calls, so that a client with a loop of its own can use them in its callbacks.
 */

#include <systemd/sd-bus.h>

#include "dbus/base.h"
#include "dbus/names.h"

/*
 * The address of the system bus (D-Bus specification, "Well-known Message Bus Instances"; dbus-daemon's and
 * systemd's default on Linux). Fixed: DBUS_SYSTEM_BUS_ADDRESS would let a planted variable choose who
 * answers.
 */
#define CLIENT_BUS_PATH "/run/dbus/system_bus_socket"

/* One row of ListSessions, a(sossuayts). All strings are owned; workspace is bytes without NUL. */
typedef struct ClientSession {
	char *id, *path, *agent, *user;
	uint32_t uid;
	char *workspace;
	uint64_t started_usec; /* CLOCK_REALTIME */
	char *state;
} ClientSession;

typedef struct ClientSessions {
	ClientSession *items;
	size_t n;
} ClientSessions;

/* A table of strings, a(sss) and its like: row-major, n_rows * n_columns cells, none NULL. */
typedef struct ClientTable {
	size_t n_columns, n_rows;
	char **cells;
} ClientTable;

void client_session_done(ClientSession *session);
void client_sessions_done(ClientSessions *sessions);
void client_table_done(ClientTable *table);

/*
 * Connect to the system bus, whatever the environment says. Return: 0, or a negative errno with *reterr set.
 * *ret is to be released with sd_bus_flush_close_unref().
 */
int client_open(sd_bus **ret, sd_bus_error *reterr);

/*
 * The same for the bus at address (sd_bus_set_address(3)), without words: whoever has chosen it has better
 * ones.
 */
int client_open_address(const char *address, sd_bus **ret);

/* Replies. Return: 0; -EBADMSG for a reply of other types or with a NUL in its bytes; -ENOMEM. */
int client_read_sessions(sd_bus_message *reply, ClientSessions *ret);
int client_read_table(sd_bus_message *reply, size_t n_columns, ClientTable *ret);
/*
 * An array of structs of these types, wherever it stands in a message: "ayssss". Types are s, o, ay (bytes),
 * t, u, q; numbers become decimal digits.
 */
int client_read_rows(sd_bus_message *m, const char *row, ClientTable *ret);
/* The same for one struct that stands by itself: a table of one row. */
int client_read_row(sd_bus_message *m, const char *row, ClientTable *ret);

/*
 * Calls of the manager. bus is from client_open(). interactive: a person is there to answer polkit's dialog.
 * Return: 0, or a negative errno with *reterr set to the service's own error where it sent one.
 */
int client_list_sessions(sd_bus *bus, ClientSessions *ret, sd_bus_error *reterr);
/* Everybody's, with leave of polkit; this connection then sees them for five minutes. */
int client_list_all_sessions(sd_bus *bus, bool interactive, ClientSessions *ret, sd_bus_error *reterr);
int client_list_allow_ip(sd_bus *bus, ClientTable *ret /* address, comment, origin */, sd_bus_error *reterr);
int client_get_policy(sd_bus *bus, ClientTable *ret /* setting, value, origin */, sd_bus_error *reterr);
int client_stop_session(sd_bus *bus, const char *id, bool interactive, sd_bus_error *reterr);
/* property: one of the manager's strings: Version, ConfigPath, ConfigError. *ret is to be freed. */
int client_get_property(sd_bus *bus, const char *property, char **ret, sd_bus_error *reterr);
/* Property Jailed of the session at path. Return: 1, 0, or a negative errno with *reterr. */
int client_get_jailed(sd_bus *bus, const char *path, sd_bus_error *reterr);

/* Was the call refused because it did not allow to ask for a password, which would have helped? */
bool client_needs_password(const sd_bus_error *e);

/*
 * Is text the beginning of an id, 1 to CS_ID_LENGTH characters of [a-z2-7]? (The form of ids: dbus/names.h.)
 */
bool client_id_is_prefix(const char *text);
/*
 * The one session whose id begins with prefix. Return: 0 with *ret_id borrowed from sessions; -ENOENT for
 * none; -ENOTUNIQ for several.
 */
int client_find_session(const ClientSessions *sessions, const char *prefix, const char **ret_id);

/*
 * What to tell a person about a failed call: cause and fix. error is the call's result, e its error (may be
 * unset). Return: a sentence to be freed, or NULL without memory. It may hold bytes of a stranger: escape it
 * before it meets a terminal.
 */
char *client_sentence_there(int error, const sd_bus_error *e);
/* The same for the bus of this machine: if a file is missing by which the service is known there, that is the
 * cause. */
char *client_sentence(int error, const sd_bus_error *e);
