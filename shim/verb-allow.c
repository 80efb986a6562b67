/* SPDX-License-Identifier: MIT */

/* `allow-ip`: what is reached, of all sessions or of one, listed and changed. */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>

#include "dbus/client-allow.h"
#include "service/link/pack.h"
#include "shim/verb.h"
#include "shim/verbs.h"
#include "dbus/why.h"

typedef struct Action {
	const char *name;
	bool needs_address, takes_comment, takes_session, takes_time;
	int (*run)(const SandboxCall *call, const SandboxContext *context);
} Action;

static int show_list(const SandboxCall *call, const SandboxContext *context)
{
	static const PrintColumn columns[] = {
		{ "ADDRESS", "address", PRINT_TEXT, false },
		{ "COMMENT", "comment", PRINT_TEXT, true },
		{ "ORIGIN", "origin", PRINT_TEXT, false },
	};
	_cleanup_(client_table_done) ClientTable addresses = { 0 };
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r;

	r = verb_open(context, &bus, &error);
	if (r >= 0)
		r = client_list_allow_ip(bus, &addresses, &error);
	if (r < 0)
		return verb_complain(context, r, &error);
	return verb_show_table(call, context,
			       &(PrintTable){ columns, ELEMENTSOF(columns), addresses.n_rows,
					      (const char *const *)addresses.cells },
			       "no internal address is allowed");
}

/* "90", "90s", "15m", "12h", "7d". Return: 0 or -EINVAL. */
static int read_duration(const char *text, uint64_t *ret_seconds)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { '\0', 1 } };
	size_t n = strspn(text, "0123456789");
	uint64_t number = 0;

	if (n == 0 || n > 9 || (text[n] != '\0' && text[n + 1] != '\0'))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; number > 0 && i < ELEMENTSOF(units); i++)
		if (text[n] == units[i].unit) {
			*ret_seconds = number * units[i].seconds;
			return 0;
		}
	return -EINVAL;
}

/* What was done, and which sessions did not confirm it. Return: an exit status. */
static int tell(const SandboxCall *call, const SandboxContext *context, const char *done, const char *session,
		char *const *unconfirmed)
{
	static const PrintColumn columns[] = {
		{ NULL, "address", PRINT_TEXT, false },
		{ NULL, "session", PRINT_TEXT, false },
	};
	static const PrintColumn texts[] = { { NULL, NULL, PRINT_TEXT, false } };
	const char *cells[ELEMENTSOF(columns)] = { call->second, session };
	size_t n = strings_count(unconfirmed);
	const PrintTable names = { texts, 1, n, (const char *const *)unconfirmed };
	int r;

	if (call->json) {
		r = print_json_document(context->out, &(PrintTable){ columns, ELEMENTSOF(columns), 1, cells },
					&(PrintPart){ "unconfirmed", &names }, 1, &context->style);
		if (r == -ENOMEM)
			return verb_complain_memory(context);
	} else {
		fprintf(context->out, "%s %s%s%s\n", done, call->second, session ? " in session " : "",
			session ?: "");
	}
	for (size_t i = 0; i < n; i++)
		(void)verb_refuse(context, CS_EXIT_FOUND,
				  "session %s has not confirmed it within 2 seconds; the log of the service "
				  "says more",
				  unconfirmed[i]);
	return n > 0 ? CS_EXIT_FOUND : 0;
}

/* The first address of this machine that is in the network. Return: was there one? */
static bool own_in(WhyNetwork network, char ret[static INET_ADDRSTRLEN])
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		const struct sockaddr_in *in = (const void *)a->ifa_addr;

		found = in && in->sin_family == AF_INET &&
			why_overlap(network, (WhyNetwork){ ntohl(in->sin_addr.s_addr), 32 }) &&
			inet_ntop(AF_INET, &in->sin_addr, ret, INET_ADDRSTRLEN);
	}
	freeifaddrs(all);
	return found;
}

/* What whoever opened it may not have meant. */
static void add_note(const SandboxCall *call, const SandboxContext *context)
{
	static const WhyNetwork metadata = { 0xa9fea9feu, 32 }; /* 169.254.169.254 */
	WhyNetwork network = { 0, 32 };
	char own[INET_ADDRSTRLEN];

	if (call->json || (why_address(call->second, &network.address) != WHY_IPV4 &&
			   why_network(call->second, &network) < 0))
		return;
	if (why_overlap(network, metadata))
		fprintf(context->out,
			"at 169.254.169.254 clouds give credentials of this machine to whoever asks: agents "
			"reach it now\n");
	else if (!context->host && own_in(network, own))
		fprintf(context->out,
			"%s is this machine's own address: agents reach every service that listens there "
			"now\n",
			own);
	/* A public one is refused only where this machine is connected to its network. */
	else if (!why_is_internal(network))
		fprintf(context->out,
			"%s is of the internet, which sessions reach anyway; it needs this only where this "
			"machine is connected to its network\n",
			call->second);
}

/* The comment that the address has in the configuration: without another one it stays. Return: 0 or a negative errno. */
static int find_comment(sd_bus *bus, const char *address, char **ret, sd_bus_error *reterr)
{
	_cleanup_(client_table_done) ClientTable table = { 0 };
	const char *comment = "";
	int r = client_list_allow_ip(bus, &table, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < table.n_rows; i++) {
		char *const *row = table.cells + i * table.n_columns;

		if (streq(row[0], address) && starts_with(row[2], CS_CONFIG_PATH))
			comment = row[1];
	}
	*ret = strdup(comment);
	return *ret ? 0 : -ENOMEM;
}

static int add_to_one(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	uint64_t seconds = 0;
	int r;

	if (call->second_value && read_duration(call->second_value, &seconds) < 0)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'%s' is no time; write a number with s, m, h or d behind it, such as 1h",
				   call->second_value);
	r = verb_find_session(context, call->value, &bus, &id);
	if (r != 0)
		return r;
	do
		r = client_allow_ip(bus, id, call->second, seconds, asked, &error);
	while (r < 0 && verb_asks(context, &agent, &asked, &error));
	if (r < 0)
		return verb_complain(context, r, &error);
	r = tell(call, context, "opened", id, NULL);
	add_note(call, context);
	return r;
}

/* What is not there is found so, and asked for in vain. */
static int complain_of_removal(const SandboxContext *context, int error, const sd_bus_error *e)
{
	int status = verb_complain(context, error, e);

	return sd_bus_error_has_name(e, CS_ERROR_BAD_REQUEST) ? CS_EXIT_FOUND : status;
}

static int remove_from_one(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *id = NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	int r;

	r = verb_find_session(context, call->value, &bus, &id);
	if (r != 0)
		return r;
	do
		r = client_revoke_ip(bus, id, call->second, asked, &error);
	while (r < 0 && verb_asks(context, &agent, &asked, &error));
	return r < 0 ? complain_of_removal(context, r, &error) : tell(call, context, "closed", id, NULL);
}

static int add(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(strings_freep) char **unconfirmed = NULL;
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	_cleanup_free_ char *comment = NULL;
	bool asked = false;
	int r;

	if (call->value && call->third)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "an address of one session has no comment; leave '%s' out", call->third);
	if (call->value)
		return add_to_one(call, context);
	if (call->second_value)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "--for is about one session; name it with --session, or leave --for out");
	r = verb_open(context, &bus, &error);
	if (r >= 0 && !call->third)
		r = find_comment(bus, call->second, &comment, &error);
	if (r >= 0)
		do
			r = client_add_allow_ip(bus, call->second, call->third ?: comment, asked,
						&unconfirmed, &error);
		while (r < 0 && verb_asks(context, &agent, &asked, &error));
	if (r < 0)
		return verb_complain(context, r, &error);
	r = tell(call, context, "added", NULL, unconfirmed);
	add_note(call, context);
	return r;
}

static int remove_one(const SandboxCall *call, const SandboxContext *context)
{
	_cleanup_(strings_freep) char **unconfirmed = NULL;
	_cleanup_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_(text_agent_stop) TextAgent agent = TEXT_AGENT_INIT;
	bool asked = false;
	int r;

	if (call->value)
		return remove_from_one(call, context);
	r = verb_open(context, &bus, &error);
	if (r >= 0)
		do
			r = client_remove_allow_ip(bus, call->second, asked, &unconfirmed, &error);
		while (r < 0 && verb_asks(context, &agent, &asked, &error));
	return r < 0 ? complain_of_removal(context, r, &error)
		     : tell(call, context, "removed", NULL, unconfirmed);
}

static const Action actions[] = {
	{ .name = "list", .run = show_list },
	{ .name = "add",
	  .needs_address = true,
	  .takes_comment = true,
	  .takes_session = true,
	  .takes_time = true,
	  .run = add },
	{ .name = "remove", .needs_address = true, .takes_session = true, .run = remove_one },
	{ .name = "edit", .run = verb_allow_edit },
};

static const Action *action_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(actions); i++)
		if (streq(actions[i].name, name))
			return &actions[i];
	return NULL;
}

int verb_allow_ip(const SandboxCall *call, const SandboxContext *context)
{
	const Action *action = action_find(call->argument ?: "list");
	const char *spare;

	if (!action)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'allow-ip' has no '%s'; it has: list, add, remove, "
				   "edit",
				   call->argument);
	if (action->needs_address && !call->second)
		return verb_refuse(context, CS_EXIT_USAGE,
				   "'allow-ip %s' needs ADDRESS; usage: claude-sandbox allow-ip %s",
				   action->name, call->verb->synopsis);
	spare = !action->needs_address ? call->second : !action->takes_comment ? call->third : NULL;
	if (!spare)
		spare = !action->takes_session ? call->value : NULL;
	if (!spare)
		spare = !action->takes_time ? call->second_value : NULL;
	if (spare)
		return verb_refuse(context, CS_EXIT_USAGE, "'allow-ip %s' takes no '%s'", action->name,
				   spare);
	return action->run(call, context);
}
