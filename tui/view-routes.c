/* SPDX-License-Identifier: MIT */

/* Where packets of one session go: its routes as the kernel holds them, and the ports that cross. */
#include "dbus/why.h"
#include "tui/allowing.h"
#include "tui/words.h"

enum { DESTINATION, VERDICT, DEVICE, IS, REASON, COLUMNS };

static const Column columns[COLUMNS] = {
	[DESTINATION] = { .title = "DESTINATION", .key = "destination" },
	[VERDICT] = { .title = "VERDICT", .key = "verdict" },
	[DEVICE] = { .title = "DEVICE", .key = "device", .weight = 2 },
	[IS] = { .title = "STATE", .key = "state", .weight = 1 },
	[REASON] = { .title = "REASON", .key = "reason", .least = 12, .weight = 3 },
};

static const Meaning states[] = {
	{ "in force", "as it was meant, read back from the kernel" },
	{ "left out", "it could not be made; a warning said why" },
	{ "missing", "it was meant and is not there" },
	{ "different", "something is there that was not meant" },
	{ "unknown", "it could not be read back" },
	{ "listening", "it is there" },
	{ "taken", "another program has the port" },
	{ "failed", "see the session's warnings" },
	{ "shared", "the session has this machine's network" },
	{ "ended", "it went with the agent" },
};

static const Meaning directions[] = {
	{ "local", "what listens on this machine is found at the same port inside" },
	{ "callback", "what listens inside is found on this machine, by this user's processes and root's" },
};

static Style verdict_style(const char *verdict)
{
	if (streq(verdict, "deny"))
		return STYLE_FAINT;
	return streq(verdict, "internet") || streq(verdict, "dns") ? STYLE_PLAIN : STYLE_CAUTION;
}

static Style state_style(const char *state)
{
	return streq(state, "in force") || streq(state, "listening") ? STYLE_PLAIN : STYLE_BAD;
}

static int port_destination(const ClientTable *ports, size_t row, char **ret)
{
	return words_set(ret, "127.0.0.1:%s", words_cell(ports, row, PORT_NUMBER));
}

/* Two routes may have the same destination: the jail's own loopback, and the host's. */
static int route_key(const ClientTable *routes, size_t row, char **ret)
{
	return words_set(ret, "%s %s", words_cell(routes, row, ROUTE_TO),
			 words_cell(routes, row, ROUTE_SAYS));
}

static int add_row(Rows *to, const char *key, Style style, const char *const cells[static COLUMNS])
{
	(void)rows_add(to, key);
	(void)rows_cell(to, cells[DESTINATION], style);
	(void)rows_cell(to, cells[VERDICT], style);
	(void)rows_cell(to, cells[DEVICE], STYLE_PLAIN);
	(void)rows_cell(to, cells[IS], state_style(cells[IS]));
	return rows_cell(to, cells[REASON], STYLE_PLAIN);
}

static int rows(const ViewContext *context, Rows *to)
{
	const ModelSession *session = model_open_session(context->model);
	int r = 0;

	if (!session)
		return 0;
	for (size_t i = 0; i < session->routes.table.n_rows; i++) {
		const ClientTable *table = &session->routes.table;
		const char *verdict = words_cell(table, i, ROUTE_SAYS);
		_cleanup_free_ char *key = NULL;

		if (route_key(table, i, &key) < 0)
			return -ENOMEM;
		r = add_row(to, key, verdict_style(verdict),
			    (const char *[]){ words_cell(table, i, ROUTE_TO), verdict,
					      words_cell(table, i, ROUTE_BY), words_cell(table, i, ROUTE_IS),
					      words_cell(table, i, ROUTE_WHY) });
	}
	for (size_t i = 0; i < session->ports.table.n_rows; i++) {
		const ClientTable *table = &session->ports.table;
		_cleanup_free_ char *destination = NULL;

		if (port_destination(table, i, &destination) < 0)
			return -ENOMEM;
		r = add_row(to, destination, STYLE_CAUTION,
			    (const char *[]){ destination, words_cell(table, i, PORT_DIRECTION), "lo",
					      words_cell(table, i, PORT_IS),
					      words_cell(table, i, PORT_ORIGIN) });
	}
	return r;
}

static size_t count(const ModelSession *session, const char *verdict)
{
	const ClientTable *table = &session->routes.table;
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		n += streq(words_cell(table, i, ROUTE_SAYS), verdict) &&
		     !streq(words_cell(table, i, ROUTE_BY), "lo");
	return n;
}

static int headline(const ViewContext *context, char **ret)
{
	const ModelSession *session = model_open_session(context->model);
	_cleanup_free_ char *who = NULL;

	if (!session || session->routes.state != MODEL_HERE)
		return 0;
	if (words_session_brief(context, session, &who) < 0)
		return -ENOMEM;
	if (session->details_state == MODEL_HERE && !session->details.jailed)
		return words_set(ret,
				 "%s shares the network: it reaches all that this machine reaches, "
				 "every service on its 127.0.0.1 too.",
				 who);
	return words_set(
		ret, "%s: %zu networks are refused; %s; %zu ports cross.%s", who, count(session, "deny"),
		count(session, "internet") > 0 ? "the internet and what says 'allow' are reached"
					       : "only what says 'allow' is reached",
		session->ports.table.n_rows,
		streq(session->session.state, "offline") ? " This machine has no uplink now." : " w: why?");
}

static const char *empty(const ViewContext *context)
{
	const ModelSession *session = model_open_session(context->model);

	return words_nothing(context, session ? &session->routes : NULL,
			     "No routes of its own: this session shares this machine's network.");
}

static void describe_port(Words *words, const ClientTable *ports, size_t i)
{
	const char *direction = words_cell(ports, i, PORT_DIRECTION), *state = words_cell(ports, i, PORT_IS);

	words_text(words, "Port", words_cell(ports, i, PORT_NUMBER));
	words_meaning(words, "Direction", direction,
		      meaning_of(directions, ELEMENTSOF(directions), direction));
	words_meaning(words, "State", state, meaning_of(states, ELEMENTSOF(states), state));
	words_text(words, "Origin", words_cell(ports, i, PORT_ORIGIN));
}

static void describe_route(Words *words, const ClientTable *routes, size_t i)
{
	const char *verdict = words_cell(routes, i, ROUTE_SAYS), *state = words_cell(routes, i, ROUTE_IS);

	words_text(words, "Destination", words_cell(routes, i, ROUTE_TO));
	words_meaning(words, "Verdict", verdict, why_verdict(verdict));
	words_text(words, "Reason", words_cell(routes, i, ROUTE_WHY));
	words_meaning(words, "State", state, meaning_of(states, ELEMENTSOF(states), state));
	words_text(words, "Device", words_cell(routes, i, ROUTE_BY));
}

static int details(const ViewContext *context, const char *key, char **ret)
{
	const ModelSession *session = model_open_session(context->model);
	bool found = false;
	Words words;
	int r = 0;

	(void)words_begin(&words, context);
	for (size_t i = 0; session && r == 0 && !found && i < session->routes.table.n_rows; i++) {
		_cleanup_free_ char *own = NULL;

		r = route_key(&session->routes.table, i, &own);
		found = r == 0 && streq(own, key);
		if (found)
			describe_route(&words, &session->routes.table, i);
	}
	for (size_t i = 0; session && r == 0 && !found && i < session->ports.table.n_rows; i++) {
		_cleanup_free_ char *own = NULL;

		r = port_destination(&session->ports.table, i, &own);
		found = r == 0 && streq(own, key);
		if (found)
			describe_port(&words, &session->ports.table, i);
	}
	if (r < 0) {
		(void)words_end(&words, false, ret);
		return r;
	}
	return words_end(&words, found, ret);
}

/* ---- what can be done ---- */

static void explain_ipv4(Words *words, const ClientTable *routes, WhyNetwork network)
{
	ssize_t row = why_route(routes, network);
	const char *verdict;

	if (row == WHY_NONE) {
		words_text(words, "Verdict", "deny (refused: no route leads there)");
		return;
	}
	verdict = words_cell(routes, (size_t)row, ROUTE_SAYS);
	words_meaning(words, "Verdict", verdict, why_verdict(verdict));
	words_text(words, "Decided by", words_cell(routes, (size_t)row, ROUTE_TO));
	words_text(words, "Reason", words_cell(routes, (size_t)row, ROUTE_WHY));
	words_text(words, "State", words_cell(routes, (size_t)row, ROUTE_IS));
	if (why_others(routes, network, verdict) > 0)
		words_text(words, "But", "parts of it are decided otherwise, as the list shows");
	if (streq(verdict, "deny") && why_may_be_allowed(network))
		words_text(words, "To allow it", "press a in this view, and type it");
}

static int explain(const ViewContext *context, const char *typed, Effect *ret)
{
	const ModelSession *session = model_open_session(context->model);
	WhyNetwork network = { 0, 32 };
	WhyFamily family = why_address(typed, &network.address);
	Words words;

	if (!session)
		return words_tell(ret, "that session has gone");
	if (family == WHY_NO_ADDRESS && why_network(typed, &network) < 0)
		return words_tell(ret, "that is no address; names of hosts are not resolved here, and ports "
				       "do not matter");
	(void)words_begin(&words, context);
	words_text(&words, "Address", typed);
	if (session->details_state == MODEL_HERE && !session->details.jailed)
		words_text(&words, "Verdict", "as this machine reaches it: the session shares its network");
	else if (family == WHY_IPV6)
		words_text(&words, "Verdict", "deny (refused: a jail has no IPv6)");
	else
		explain_ipv4(&words, &session->routes.table, network);
	if (words_end(&words, true, &ret->text) < 0 || words_set(&ret->title, "Why it is as it is") < 0)
		return -ENOMEM;
	ret->kind = EFFECT_SHOW;
	return 0;
}

static int ask_why(const ViewContext *context, const char *key, Effect *ret)
{
	if (!model_open_session(context->model))
		return words_tell(ret, WORDS_NO_SESSION);
	return words_prompt(ret, "Which address", "", explain);
}

static int allow_typed(const ViewContext *context, const char *typed, Effect *ret)
{
	_cleanup_free_ char *address = NULL, *comment = NULL;
	int r = allowing_parse(typed, &address, &comment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return allowing_choose(context, model_open_session(context->model), address, "", ret);
}

static int allow(const ViewContext *context, const char *key, Effect *ret)
{
	const char *single = key ? strstr(key, "/32 deny") : NULL;

	if (words_set(&ret->title, "Allow which address (10.0.0.5) or network (10.0.0.0/24)") < 0 ||
	    words_set(&ret->text, "%.*s", single ? (int)(single - key) : 0, key ?: "") < 0)
		return -ENOMEM;
	ret->kind = EFFECT_PROMPT;
	ret->check = allowing_check;
	ret->accept = allow_typed;
	return 0;
}

static const ViewAction actions[] = {
	{ COMMAND_WHY, ask_why },
	{ COMMAND_ALLOW, allow },
	{ COMMAND_NONE, NULL },
};

const View view_routes = {
	.name = "routes",
	.title = "Routes",
	.about = "Where the agent's packets go, as the kernel holds it; the longest destination that fits "
		 "decides.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_SESSIONS | MODEL_DETAILS | MODEL_ROUTES | MODEL_PORTS,
	.of_session = true,
	.rows = rows,
	.headline = headline,
	.empty = empty,
	.details = details,
	.actions = actions,
};
