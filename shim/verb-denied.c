/* SPDX-License-Identifier: MIT */

/* denied: what a session's agent tried to reach and may not, once or as it comes. */

#include <inttypes.h>

#include "dbus/client-events.h"
#include "dbus/client-peer.h"
#include "dbus/wire.h"
#include "service/link/pack.h"
#include "shim/verb.h"
#include "shim/verbs.h"

static const PrintColumn columns[] = {
	{ "LAST", NULL, PRINT_ESCAPED, false },           { NULL, "last_usec", PRINT_NUMBER, false },
	{ "PROTOCOL", "protocol", PRINT_ESCAPED, false }, { "ADDRESS", "address", PRINT_ESCAPED, false },
	{ "PORT", "port", PRINT_NUMBER, false },          { "PROGRAM", "program", PRINT_ESCAPED, true },
	{ "COUNT", "count", PRINT_NUMBER, false },        { "REASON", "reason", PRINT_ESCAPED, true },
};

/* Of a row of ListDenied. */
enum { TIME, PROTOCOL, ADDRESS, PORT, PROGRAM, REASON, COUNT, CELLS };

typedef struct Shown {
	const char **cells;
	char **clocks; /* one for each row, NULL at the end */
} Shown;

static void shown_done(Shown *shown)
{
	free(shown->cells);
	strings_freep(&shown->clocks);
}

/* Borrows the cells of table. */
static int arrange(const ClientTable *table, Shown *shown)
{
	shown->cells = calloc(table->n_rows + 1, sizeof(*shown->cells) * ELEMENTSOF(columns));
	shown->clocks = calloc(table->n_rows + 1, sizeof(*shown->clocks));
	if (!shown->cells || !shown->clocks)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_rows; i++) {
		char *const *from = table->cells + i * CELLS;
		const char **to = shown->cells + i * ELEMENTSOF(columns);
		/* Several destinations have none. */
		bool sum = !*from[ADDRESS];

		shown->clocks[i] = print_time(strtoull(from[TIME], NULL, 10));
		if (!shown->clocks[i])
			return -ENOMEM;
		*to++ = shown->clocks[i];
		*to++ = from[TIME];
		*to++ = from[PROTOCOL];
		*to++ = from[ADDRESS];
		*to++ = sum ? NULL : from[PORT];
		*to++ = from[PROGRAM];
		*to++ = from[COUNT];
		*to++ = from[REASON];
	}
	return 0;
}

/* The agent's they may be, but most are the checks' own. */
static void say_checked(const SandboxContext *context, const ClientTable *table)
{
	uint64_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		if (streq(table->cells[i * CELLS + PROGRAM], CS_DENIED_CHECKED))
			n += strtoull(table->cells[i * CELLS + COUNT], NULL, 10);
	if (n > 0)
		fprintf(context->out,
			"\n%" PRIu64
			" of these came while 'claude-sandbox verify' checked this session: what the "
			"checks try is refused, too\n",
			n);
}

static int show(const SandboxCall *call, const SandboxContext *context, const ClientTable *table)
{
	_cleanup_(shown_done) Shown shown = { 0 };
	int status;

	if (arrange(table, &shown) < 0)
		return verb_complain_memory(context);
	status = verb_show_table(call, context,
				 &(PrintTable){ columns, ELEMENTSOF(columns), table->n_rows, shown.cells },
				 "nothing was denied");
	if (status == 0 && !call->json && !call->option)
		say_checked(context, table);
	if (status == 0 && !call->json && !call->option && table->n_rows > 0)
		fprintf(context->out, "\nTo allow an internal address: claude-sandbox allow-ip add ADDRESS\n"
				      "In this session alone: claude-sandbox allow-ip add --session ID "
				      "[--for 1h] ADDRESS\n");
	return status;
}

/* ---- as it comes ---- */

typedef struct Follow {
	const SandboxCall *call;
	const SandboxContext *context;
	const char *id;
	char *owner; /* of the service's name: nobody else is believed */
	bool ended, renewed;
	int status;
} Follow;

static void follow_done(Follow *follow)
{
	free(follow->owner);
}

/* One object, or one line, for each row. Return: 0, -ENOMEM, or the error of the stream. */
static int show_more(const Follow *follow, const ClientTable *rows)
{
	const SandboxContext *context = follow->context;
	_cleanup_(shown_done) Shown shown = { 0 };
	int r = arrange(rows, &shown);

	for (size_t i = 0; r == 0 && i < rows->n_rows; i++) {
		const PrintTable table = { columns, ELEMENTSOF(columns), 1,
					   shown.cells + i * ELEMENTSOF(columns) };

		r = follow->call->json ? print_json_object(context->out, &table, &context->style)
				       : print_rows(context->out, &table, &context->style);
	}
	return r == 0 ? print_result(context->out) : r;
}

static int on_denied(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	_cleanup_(client_table_done) ClientTable row = { 0 };
	Follow *follow = userdata;

	if (client_is_from(m, follow->owner) && client_read_row(m, CLIENT_DENIED_ROW, &row) == 0 &&
	    show_more(follow, &row) < 0) {
		follow->ended = true;
		follow->status = CS_EXIT_REFUSED;
	}
	return 0;
}

static int on_removed(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Follow *follow = userdata;
	const char *id;

	if (client_is_from(m, follow->owner) && sd_bus_message_read_basic(m, 's', &id) > 0 &&
	    streq(id, follow->id))
		follow->ended = true;
	return 0;
}

/* A new service knows nothing of who subscribed to the old one. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *reterr)
{
	Follow *follow = userdata;
	const char *name, *old, *new;

	if (client_is_from_bus(m) && sd_bus_message_read(m, "sss", &name, &old, &new) > 0 &&
	    streq(name, CS_BUS_NAME) && *new)
		follow->renewed = true;
	return 0;
}

static int subscribe(sd_bus *bus, Follow *follow, sd_bus_error *reterr)
{
	int r = client_subscribe(bus, reterr);

	free(TAKE_PTR(follow->owner));
	return r < 0 ? r : client_find_owner(bus, &follow->owner, reterr);
}

static int listen_to(sd_bus *bus, Follow *follow, sd_bus_error *reterr)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, CS_SESSION_ROOT "/%s", follow->id) < 0) {
		path = NULL;
		return sd_bus_error_set_errno(reterr, -ENOMEM);
	}
	r = sd_bus_match_signal(bus, NULL, CS_BUS_NAME, path, CS_SESSION_INTERFACE, CS_SIGNAL_DENIED,
				on_denied, follow);
	if (r >= 0)
		r = sd_bus_match_signal(bus, NULL, CS_BUS_NAME, CS_MANAGER_PATH, CS_MANAGER_INTERFACE,
					CS_SIGNAL_SESSION_REMOVED, on_removed, follow);
	if (r >= 0)
		r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus", "/org/freedesktop/DBus",
					"org.freedesktop.DBus", "NameOwnerChanged", on_owner, follow);
	return r < 0 ? sd_bus_error_set_errno(reterr, r) : subscribe(bus, follow, reterr);
}

static int follow_signals(sd_bus *bus, Follow *follow)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = 0;

	while (!follow->ended && r >= 0) {
		if (follow->renewed) {
			follow->renewed = false;
			r = subscribe(bus, follow, &error);
			continue;
		}
		r = sd_bus_process(bus, NULL);
		if (r == 0 && (r = verb_wait(follow->context, bus)) > 0)
			return CS_EXIT_REFUSED;
	}
	return r < 0 ? verb_complain(follow->context, r, &error) : follow->status;
}

static int follow_denied(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(follow_done) Follow follow = { .call = call, .context = context };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(client_table_done) ClientTable table = { 0 };
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	int r;

	r = verb_find_session(context, call->argument, &bus, &id);
	if (r != 0)
		return r;
	follow.id = id;
	/* Before the list is asked for, so that nothing falls between the two. */
	r = listen_to(bus, &follow, &error);
	if (r >= 0)
		r = client_list_denied(bus, id, &table, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	if (call->json || table.n_rows == 0)
		r = show_more(&follow, &table);
	else
		r = show(call, context, &table);
	if (r != 0 || print_result(context->out) < 0)
		return CS_EXIT_REFUSED;
	return follow_signals(bus, &follow);
}

int verb_denied(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_table_done) ClientTable table = { 0 };
	int r;

	if (call->option)
		return follow_denied(call, context);
	r = verb_list(context, call->argument, client_list_denied, NULL, &table);
	return r != 0 ? r : show(call, context, &table);
}
