/* SPDX-License-Identifier: MIT */

/* show: everything of one session, on a page. */

#include <inttypes.h>
#include <stdarg.h>

#include "shim/verb.h"
#include "shim/verbs.h"
#include "dbus/why.h"

static const PrintColumn columns[] = {
	{ "ID", "id", PRINT_TEXT, false },
	{ "AGENT", "agent", PRINT_TEXT, false },
	{ "USER", "user", PRINT_TEXT, false },
	{ NULL, "uid", PRINT_NUMBER, false },
	{ "STATE", "state", PRINT_STATE, false },
	{ "AGE", NULL, PRINT_TEXT, false },
	{ NULL, "started_usec", PRINT_NUMBER, false },
	{ "WORKSPACE", "workspace", PRINT_TEXT, false },
	{ "LEADER", "leader", PRINT_NUMBER, false },
	{ "NETWORK", NULL, PRINT_TEXT, false },
	{ NULL, "jailed", PRINT_FLAG, false },
	{ NULL, "exit_status", PRINT_NUMBER, false },
	{ "DENIED", "denied", PRINT_NUMBER, false },
	{ "PATHS", NULL, PRINT_TEXT, false },
	{ NULL, "paths", PRINT_NUMBER, false },
	{ NULL, "paths_ro", PRINT_NUMBER, false },
	{ NULL, "paths_rw", PRINT_NUMBER, false },
	{ NULL, "paths_masked", PRINT_NUMBER, false },
	{ NULL, "paths_private", PRINT_NUMBER, false },
	{ "VARIABLES", "variables", PRINT_NUMBER, false },
	{ "ROUTES", NULL, PRINT_TEXT, false },
	{ NULL, "routes", PRINT_NUMBER, false },
	{ NULL, "routes_deny", PRINT_NUMBER, false },
	{ "PORTS", NULL, PRINT_TEXT, false },
	{ NULL, "ports", PRINT_NUMBER, false },
	{ NULL, "ports_listening", PRINT_NUMBER, false },
};

static const PrintColumn posture_columns[] = {
	{ "LAYER", "layer", PRINT_TEXT, false },
	{ "STRENGTH", "strength", PRINT_TEXT, false },
	{ "DETAIL", "detail", PRINT_TEXT, true },
};

static const PrintColumn warning_columns[] = { { "WARNING", NULL, PRINT_TEXT, true } };

/* What is made for the page; the other cells are borrowed. NULL: not known. */
typedef struct Texts {
	char *made[ELEMENTSOF(columns)];
	size_t n;
	bool no_memory;
} Texts;

static void texts_done(Texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->made[i]);
}

_printf_(2, 3) static const char *make(Texts *texts, const char *format, ...)
{
	va_list arguments;
	char *text;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		texts->no_memory = true;
		return NULL;
	}
	texts->made[texts->n++] = text;
	return text;
}

/* The tables of a session; one that it does not answer with stays unknown. */
typedef struct Page {
	ClientDetails details;
	ClientTable exposure, variables, routes, ports;
} Page;

static void page_done(Page *page)
{
	client_details_done(&page->details);
	client_table_done(&page->exposure);
	client_table_done(&page->variables);
	client_table_done(&page->routes);
	client_table_done(&page->ports);
}

#define PORT_STATE 2 /* of the columns of client_list_ports() */

static size_t count(const ClientTable *table, size_t column, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		n += streq(table->cells[i * table->n_columns + column], text);
	return n;
}

static void add_session(Texts *texts, const Page *page, uint64_t now_usec, const char **cells)
{
	const ClientDetails *details = &page->details;
	const ClientSession *session = &details->session;
	/* A clock that was set back makes no negative age. */
	uint64_t age = now_usec > session->started_usec ? now_usec - session->started_usec : 0;
	_cleanup_free_ char *duration = print_duration(age);

	*cells++ = session->id;
	*cells++ = session->agent;
	*cells++ = session->user;
	*cells++ = make(texts, "%" PRIu32, session->uid);
	*cells++ = session->state;
	*cells++ = make(texts, "%s", duration ?: "?");
	*cells++ = make(texts, "%" PRIu64, session->started_usec);
	*cells++ = session->workspace;
	*cells++ = details->leader != 0 ? make(texts, "%" PRIu32, details->leader) : NULL;
	*cells++ = details->jailed ? "jailed" : "shared with the host";
	*cells++ = details->jailed ? "true" : "false";
	*cells++ = details->exit_status >= 0 ? make(texts, "%" PRIi32, details->exit_status) : NULL;
	*cells++ = make(texts, "%" PRIu64, details->denied);
}

static void add_counts(Texts *texts, const Page *page, const char **cells)
{
	static const char *const modes[] = { "ro", "rw", "masked", "private" };
	size_t n[ELEMENTSOF(modes)], denied = count(&page->routes, ROUTE_VERDICT, "deny"),
				     listening = count(&page->ports, PORT_STATE, "listening");

	for (size_t i = 0; i < ELEMENTSOF(modes); i++)
		n[i] = count(&page->exposure, EXPOSURE_MODE, modes[i]);
	*cells++ = make(texts, "%zu (%zu ro, %zu rw, %zu masked, %zu private)", page->exposure.n_rows, n[0],
			n[1], n[2], n[3]);
	*cells++ = make(texts, "%zu", page->exposure.n_rows);
	for (size_t i = 0; i < ELEMENTSOF(modes); i++)
		*cells++ = make(texts, "%zu", n[i]);
	*cells++ = make(texts, "%zu", page->variables.n_rows);
	*cells++ = make(texts, "%zu (%zu deny)", page->routes.n_rows, denied);
	*cells++ = make(texts, "%zu", page->routes.n_rows);
	*cells++ = make(texts, "%zu", denied);
	*cells++ = make(texts, "%zu (%zu listening)", page->ports.n_rows, listening);
	*cells++ = make(texts, "%zu", page->ports.n_rows);
	*cells++ = make(texts, "%zu", listening);
}

#define SESSION_CELLS 13

static int print_page(const SandboxCall *call, const SandboxContext *context, const Page *page,
		      const char *const *cells)
{
	const ClientTable *posture = &page->details.posture, *warnings = &page->details.warnings;
	const PrintTable session = { columns, ELEMENTSOF(columns), 1, cells };
	const PrintTable layers = { posture_columns, ELEMENTSOF(posture_columns), posture->n_rows,
				    (const char *const *)posture->cells };
	const PrintTable said = { warning_columns, ELEMENTSOF(warning_columns), warnings->n_rows,
				  (const char *const *)warnings->cells };
	const PrintPart parts[] = { { "posture", &layers }, { "warnings", &said } };
	int r;

	if (call->json)
		return print_json_document(context->out, &session, parts, ELEMENTSOF(parts), &context->style);
	r = print_fields(context->out, &session, &context->style);
	if (r >= 0 && layers.n_rows > 0) {
		putc('\n', context->out);
		r = print_table(context->out, &layers, &context->style, "");
	}
	if (r >= 0 && said.n_rows > 0) {
		putc('\n', context->out);
		r = print_table(context->out, &said, &context->style, "");
	}
	return r;
}

int verb_show(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	const char *cells[ELEMENTSOF(columns)] = { NULL };
	_cleanup_(texts_done) Texts texts = { .n = 0 };
	_cleanup_(page_done) Page page = { 0 };
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	int r, silence;

	r = verb_find_session(context, call->argument, &bus, &id);
	if (r != 0)
		return r;
	r = client_get_details(bus, id, &page.details, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	/* What the service knows is shown of a session that does not answer too. */
	silence = client_list_exposure(bus, id, &page.exposure, &error);
	if (silence >= 0)
		silence = client_list_environment(bus, id, &page.variables, &error);
	if (silence >= 0)
		silence = client_list_routes(bus, id, &page.routes, &error);
	if (silence >= 0)
		silence = client_list_ports(bus, id, &page.ports, &error);

	add_session(&texts, &page, context->now_usec, cells);
	if (silence >= 0)
		add_counts(&texts, &page, cells + SESSION_CELLS);
	if (texts.no_memory || print_page(call, context, &page, cells) == -ENOMEM)
		return verb_complain_memory(context);
	if (silence < 0) {
		(void)verb_complain(context, silence, &error);
		return CS_EXIT_FOUND;
	}
	return 0;
}
