/* SPDX-License-Identifier: MIT */

/* why: which entry or route of a session decides. */

#include <arpa/inet.h>

#include "shim/verb.h"
#include "shim/verbs.h"
#include "dbus/why.h"

static const PrintColumn path_columns[] = {
	{ "PATH", "path", PRINT_TEXT, false },       { "LEADS TO", "leads_to", PRINT_TEXT, false },
	{ "SESSION", "session", PRINT_TEXT, false }, { "MODE", "mode", PRINT_REACH, false },
	{ "MEANS", "meaning", PRINT_TEXT, false },   { "ENTRY", "entry", PRINT_TEXT, false },
	{ "KIND", "kind", PRINT_TEXT, false },       { "ORIGIN", "origin", PRINT_TEXT, false },
	{ "REASON", "reason", PRINT_TEXT, false },
};

static const PrintColumn descriptor_columns[] = {
	{ "ALSO", "path", PRINT_TEXT, false },
	{ "MODE", "mode", PRINT_REACH, false },
	{ "REASON", "reason", PRINT_TEXT, false },
};

static const PrintColumn address_columns[] = {
	{ "ADDRESS", "address", PRINT_TEXT, false },
	{ "SESSION", "session", PRINT_TEXT, false },
	{ "VERDICT", "verdict", PRINT_REACH, false },
	{ "MEANS", "meaning", PRINT_TEXT, false },
	{ "ROUTE", "route", PRINT_TEXT, false },
	{ "DEVICE", "device", PRINT_TEXT, false },
	{ "STATE", "state", PRINT_TEXT, false },
	{ "REASON", "reason", PRINT_TEXT, false },
	{ "TO ALLOW", "to_allow", PRINT_TEXT, false },
	{ "ONLY HERE", "to_allow_here", PRINT_TEXT, false },
	{ "FOR AN HOUR", "to_allow_for_an_hour", PRINT_TEXT, false },
};

/* The argument as an absolute path. Return: 0; -ENOENT when there is no directory to begin at; -ENOMEM. */
static int make_absolute(const SandboxContext *context, const char *argument, char **ret)
{
	if (argument[0] == '/') {
		*ret = strdup(argument);
	} else {
		if (!context->directory)
			return -ENOENT;
		if (asprintf(ret, "%s/%s", context->directory, argument) < 0)
			*ret = NULL;
	}
	return *ret ? 0 : -ENOMEM;
}

/* Is something there, link or not? Return: 1, 0, or a negative errno when that cannot be seen. */
static int exists(const SandboxContext *context, const char *path)
{
	_cleanup_free_ char *target = NULL;
	int r = context->read_link(path, &target);

	if (r == 0 || r == -EINVAL)
		return 1;
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

static int print_path(const SandboxCall *call, const SandboxContext *context, const PrintTable *answer,
		      const PrintTable *descriptors)
{
	const PrintPart part = { "descriptors", descriptors };
	int r;

	if (call->json)
		return print_json_document(context->out, answer, &part, 1, &context->style);
	r = print_fields(context->out, answer, &context->style);
	if (r >= 0 && descriptors->n_rows > 0) {
		putc('\n', context->out);
		r = print_table(context->out, descriptors, &context->style, "");
	}
	return r;
}

static int explain_path(const SandboxCall *call, const SandboxContext *context, const char *id,
			const char *path, const ClientTable *exposure)
{
	_cleanup_free_ char *leads = NULL;
	const char *answer[ELEMENTSOF(path_columns)] = { NULL }, *also[3 * 3];
	PrintTable descriptors = { descriptor_columns, ELEMENTSOF(descriptor_columns), 0, also };
	ssize_t row, descriptor;
	size_t index = 0;
	char *const *cells;
	int r;

	r = why_resolve(exposure, path, context->read_link, &leads);
	if (r == -ELOOP)
		return verb_refuse(context, CS_EXIT_FOUND,
				   "'%s' is not at the end of any path: its links go in circles; mend them",
				   path);
	if (r < 0)
		return verb_complain_memory(context);
	row = why_entry(exposure, leads);
	if (row == WHY_NONE)
		return verb_refuse(
			context, CS_EXIT_REFUSED,
			"the session tells of no entry at or above '%s'; it says nonsense, stop it", leads);
	cells = exposure->cells + (size_t)row * exposure->n_columns;
	answer[0] = call->argument;
	answer[1] = streq(leads, call->argument) ? NULL : leads;
	answer[2] = id;
	answer[3] = cells[EXPOSURE_MODE];
	if (exists(context, leads) == 0)
		answer[4] = why_nothing(exposure, row, leads);
	answer[4] = answer[4] ?: why_meaning(exposure, row, leads);
	answer[5] = cells[EXPOSURE_PATH];
	answer[6] = cells[EXPOSURE_KIND];
	answer[7] = cells[EXPOSURE_ORIGIN];
	answer[8] = cells[EXPOSURE_REASON];
	while (descriptors.n_rows < 3 && (descriptor = why_descriptor(exposure, leads, &index)) != WHY_NONE) {
		const char **to = also + descriptors.n_rows++ * ELEMENTSOF(descriptor_columns);

		cells = exposure->cells + (size_t)descriptor * exposure->n_columns;
		to[0] = cells[EXPOSURE_PATH];
		to[1] = cells[EXPOSURE_MODE];
		to[2] = cells[EXPOSURE_REASON];
	}
	r = print_path(call, context, &(PrintTable){ path_columns, ELEMENTSOF(path_columns), 1, answer },
		       &descriptors);
	return r == -ENOMEM ? verb_complain_memory(context) : 0;
}

static int why_path(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(client_table_done) ClientTable exposure = { 0 };
	_cleanup_free_ char *path = NULL, *id = NULL;
	int r;

	if (context->host)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "the links of a path on %s cannot be followed from here; run "
				   "'claude-sandbox why' there",
				   context->host);
	r = make_absolute(context, call->argument, &path);
	if (r == -ENOMEM)
		return verb_complain_memory(context);
	if (r < 0)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is below a current directory that has gone; give an absolute path",
				   call->argument);
	if (!strchr(call->argument, '/') && !streq(call->argument, ".") && !streq(call->argument, "..") &&
	    exists(context, path) <= 0)
		return verb_refuse(
			context, CS_EXIT_USAGE,
			"'%s' is no address and nothing here; names of hosts are not resolved: give the "
			"address, or ./%s for a path",
			call->argument, call->argument);
	r = verb_list(context, call->value, client_list_exposure, &id, &exposure);
	if (r != 0)
		return r;
	return explain_path(call, context, id, path, &exposure);
}

/* What the session says of IPv6, which has no routes of ours. */
static const char *ipv6_reason(const ClientTable *posture)
{
	for (size_t i = 0; i < posture->n_rows; i++)
		if (streq(posture->cells[i * posture->n_columns], "ipv6"))
			return posture->cells[i * posture->n_columns + 2];
	return NULL;
}

static int print_address(const SandboxCall *call, const SandboxContext *context, const char *const *answer)
{
	const PrintTable table = { address_columns, ELEMENTSOF(address_columns), 1, answer };
	int r = call->json ? print_json_object(context->out, &table, &context->style)
			   : print_fields(context->out, &table, &context->style);

	return r == -ENOMEM ? verb_complain_memory(context) : 0;
}

/* Where some of a network is decided otherwise, its own verdict alone would mislead. */
static int say_others(const ClientTable *routes, WhyNetwork network, const char *verdict, char **ret)
{
	size_t n = why_others(routes, network, verdict);

	if (n > 0 && asprintf(ret, "%s, but for %zu smaller %s in it ('claude-sandbox routes' lists %s)",
			      why_verdict(verdict), n, n == 1 ? "destination" : "destinations",
			      n == 1 ? "it" : "them") < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The commands that open a network: for everybody, in one session, there for an hour. */
typedef struct ToAllow {
	char *always, *here, *hour;
} ToAllow;

static void to_allow_done(ToAllow *commands)
{
	free(commands->always);
	free(commands->here);
	free(commands->hour);
}

static int make_command(const SandboxContext *context, const char *options, const char *id,
			WhyNetwork network, char **ret)
{
	const struct in_addr address = { .s_addr = htonl(network.address) };
	char text[INET_ADDRSTRLEN], length[sizeof("/32")] = "";

	(void)inet_ntop(AF_INET, &address, text, sizeof(text));
	if (network.length < 32)
		(void)snprintf(length, sizeof(length), "/%u", network.length % 32);
	if (asprintf(ret, "claude-sandbox %s%s%sallow-ip add %s%s%s%s%s", context->host ? "-H " : "",
		     context->host ?: "", context->host ? " " : "", id ? "--session " : "", id ?: "", options,
		     text, length) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int make_to_allow(const SandboxContext *context, const char *id, WhyNetwork network, ToAllow *ret)
{
	int r = make_command(context, "", NULL, network, &ret->always);

	if (r == 0)
		r = make_command(context, " ", id, network, &ret->here);
	return r == 0 ? make_command(context, " --for 1h ", id, network, &ret->hour) : r;
}

static int explain_network(const SandboxCall *call, const SandboxContext *context, sd_bus *bus,
			   const char *id, WhyNetwork network, const char **answer)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(client_table_done) ClientTable routes = { 0 };
	_cleanup_(to_allow_done) ToAllow to_allow = { 0 };
	_cleanup_free_ char *others = NULL;
	char *const *cells;
	ssize_t row;
	int r;

	r = client_list_routes(bus, id, &routes, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	row = why_route(&routes, network);
	if (row == WHY_NONE) {
		answer[2] = "deny";
		answer[3] = "refused: no route leads there";
		return print_address(call, context, answer);
	}
	cells = routes.cells + (size_t)row * routes.n_columns;
	r = say_others(&routes, network, cells[ROUTE_VERDICT], &others);
	if (r == 0 && streq(cells[ROUTE_VERDICT], "deny") && why_may_be_allowed(network))
		r = make_to_allow(context, id, network, &to_allow);
	if (r < 0)
		return verb_complain_memory(context);
	answer[2] = cells[ROUTE_VERDICT];
	answer[3] = others ?: why_verdict(cells[ROUTE_VERDICT]);
	answer[4] = cells[ROUTE_DESTINATION];
	answer[5] = *cells[ROUTE_DEVICE] ? cells[ROUTE_DEVICE] : NULL;
	answer[6] = cells[ROUTE_STATE];
	answer[7] = cells[ROUTE_REASON];
	answer[8] = to_allow.always;
	answer[9] = to_allow.here;
	answer[10] = to_allow.hour;
	return print_address(call, context, answer);
}

static int why_of_network(const SandboxCall *call, const SandboxContext *context, bool ipv6,
			  WhyNetwork network)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(client_details_done) ClientDetails details = { 0 };
	const char *answer[ELEMENTSOF(address_columns)] = { NULL };
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	int r;

	r = verb_find_session(context, call->value, &bus, &id);
	if (r != 0)
		return r;
	r = client_get_details(bus, id, &details, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	answer[0] = call->argument;
	answer[1] = id;
	if (!details.jailed) {
		answer[2] = "shared";
		answer[3] = "reached as the host reaches it: this session shares the host's network";
		return print_address(call, context, answer);
	}
	if (ipv6) {
		answer[2] = "deny";
		answer[3] = "refused: a jail has no IPv6";
		answer[7] = ipv6_reason(&details.posture);
		return print_address(call, context, answer);
	}
	return explain_network(call, context, bus, id, network, answer);
}

/* "http://10.0.0.1/", "10.0.0.1:80" as logs have it: no path that a person means. Return: an exit status or
 * 0. */
static int refuse_near_address(const SandboxCall *call, const SandboxContext *context)
{
	const char *colon = strrchr(call->argument, ':');
	_cleanup_free_ char *address = NULL;
	uint32_t ipv4;

	if (strstr(call->argument, "://"))
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is a URL; give the address of its host alone", call->argument);
	if (!colon || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return 0;
	address = strndup(call->argument, (size_t)(colon - call->argument));
	if (!address)
		return verb_complain_memory(context);
	if (why_address(address, &ipv4) == WHY_NO_ADDRESS)
		return 0;
	return verb_refuse(context, CS_EXIT_USAGE,
			   "'%s' has a port, and routes know none; leave it out: claude-sandbox why %s",
			   call->argument, address);
}

int verb_why(const SandboxCall *call, const SandboxContext *context)
{
	WhyNetwork network = { 0, 32 };
	WhyFamily family = why_address(call->argument, &network.address);
	int r;

	if (family != WHY_NO_ADDRESS)
		return why_of_network(call, context, family == WHY_IPV6, network);
	if (why_network(call->argument, &network) == 0)
		return why_of_network(call, context, false, network);
	r = refuse_near_address(call, context);
	return r != 0 ? r : why_path(call, context);
}
