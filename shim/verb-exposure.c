/* SPDX-License-Identifier: MIT */

/* exposure, routes and ports: the tables of one session. */

#include "shim/verb.h"
#include "shim/verbs.h"

static const PrintColumn path_columns[] = {
	{ "PATH", "path", PRINT_TEXT, true },     { "MODE", "mode", PRINT_REACH, false },
	{ "KIND", "kind", PRINT_TEXT, false },    { "ORIGIN", "origin", PRINT_TEXT, false },
	{ "REASON", "reason", PRINT_TEXT, true },
};

static const PrintColumn variable_columns[] = {
	{ "VARIABLE", "name", PRINT_TEXT, true },
	{ "ORIGIN", "origin", PRINT_TEXT, false },
};

static const PrintColumn route_columns[] = {
	{ "DESTINATION", "destination", PRINT_TEXT, false },
	{ "VERDICT", "verdict", PRINT_REACH, false },
	{ "DEVICE", "device", PRINT_TEXT, false },
	{ "STATE", "state", PRINT_TEXT, false },
	{ "REASON", "reason", PRINT_TEXT, true },
};

static const PrintColumn port_columns[] = {
	{ "PORT", "port", PRINT_NUMBER, false },
	{ "DIRECTION", "direction", PRINT_TEXT, false },
	{ "STATE", "state", PRINT_TEXT, false },
	{ "ORIGIN", "origin", PRINT_TEXT, false },
};

static const PrintColumn id_columns[] = { { "ID", "id", PRINT_TEXT, false } };

/* Columns in the order in which a person reads them: from[i] is the one of the reply. Borrows its cells. */
static const char **arrange(const ClientTable *table, const size_t *from)
{
	const char **cells = calloc(table->n_rows + 1, table->n_columns * sizeof(*cells));

	for (size_t i = 0; cells && i < table->n_rows; i++)
		for (size_t c = 0; c < table->n_columns; c++)
			cells[i * table->n_columns + c] = table->cells[i * table->n_columns + from[c]];
	return cells;
}

static int show_exposure(const SandboxCall *call, const SandboxContext *context, const char *id,
			 const PrintTable *paths, const PrintTable *variables)
{
	const PrintPart parts[] = { { "paths", paths }, { "variables", variables } };
	int r;

	if (call->json) {
		r = print_json_document(context->out, &(PrintTable){ id_columns, 1, 1, &id }, parts,
					ELEMENTSOF(parts), &context->style);
		return r == -ENOMEM ? verb_complain_memory(context) : 0;
	}
	r = print_table(context->out, paths, &context->style, "no path");
	if (r >= 0) {
		putc('\n', context->out);
		r = print_table(context->out, variables, &context->style, "no variable");
	}
	return r == -ENOMEM ? verb_complain_memory(context) : 0;
}

int verb_exposure(const SandboxCall *call, const SandboxContext *context)
{
	static const size_t order[] = { 0, 2, 1, 3, 4 };
	_cleanup_(client_table_done) ClientTable exposure = { 0 }, variables = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ const char **cells = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	int r;

	r = verb_find_session(context, call->argument, &bus, &id);
	if (r != 0)
		return r;
	r = client_list_exposure(bus, id, &exposure, &error);
	if (r >= 0)
		r = client_list_environment(bus, id, &variables, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	cells = arrange(&exposure, order);
	if (!cells)
		return verb_complain_memory(context);
	return show_exposure(call, context, id,
			     &(PrintTable){ path_columns, ELEMENTSOF(path_columns), exposure.n_rows, cells },
			     &(PrintTable){ variable_columns, ELEMENTSOF(variable_columns), variables.n_rows,
					    (const char *const *)variables.cells });
}

int verb_routes(const SandboxCall *call, const SandboxContext *context)
{
	static const size_t order[] = { 0, 1, 2, 4, 3 };
	_cleanup_(client_table_done) ClientTable routes = { 0 };
	_cleanup_free_ const char **cells = NULL;
	int r;

	r = verb_list(context, call->argument, client_list_routes, NULL, &routes);
	if (r != 0)
		return r;
	cells = arrange(&routes, order);
	if (!cells)
		return verb_complain_memory(context);
	return verb_show_table(
		call, context,
		&(PrintTable){ route_columns, ELEMENTSOF(route_columns), routes.n_rows, cells },
		"no routes of its own: this session shares the host's network");
}

int verb_ports(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_table_done) ClientTable ports = { 0 };
	int r;

	r = verb_list(context, call->argument, client_list_ports, NULL, &ports);
	if (r != 0)
		return r;
	return verb_show_table(call, context,
			       &(PrintTable){ port_columns, ELEMENTSOF(port_columns), ports.n_rows,
					      (const char *const *)ports.cells },
			       "no ports cross");
}
