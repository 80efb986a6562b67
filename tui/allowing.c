/* SPDX-License-Identifier: MIT */
#include "tui/allowing.h"

#include "dbus/names.h"
#include "dbus/why.h"
#include "tui/words.h"

#define HOUR 3600u /* seconds */

static int network_of(const char *address, WhyNetwork *ret)
{
	*ret = (WhyNetwork){ 0, 32 };
	if (why_address(address, &ret->address) == WHY_IPV4)
		return 0;
	return why_network(address, ret);
}

const char *allowing_warning(const char *address)
{
	static const WhyNetwork metadata = { 0xa9fea9feu, 32 }; /* 169.254.169.254 */
	WhyNetwork network;

	if (network_of(address, &network) < 0)
		return "";
	if (why_overlap(network, metadata))
		return " At 169.254.169.254 clouds give credentials of this machine to whoever asks.";
	if (!why_is_internal(network))
		return " It is of the internet, which sessions reach anyway; it needs this only where this "
		       "machine is connected to its network.";
	return "";
}

/* "every port of 10.0.0.5", "every machine in 10.1.0.0/16" */
static int subject(const char *shown, const char *address, char **ret)
{
	return words_set(ret, "%s %s", strchr(address, '/') ? "every machine in" : "every port of", shown);
}

static int for_session(const ViewContext *context, const ModelSession *session, const char *address,
		       const char *shown, uint64_t seconds, Effect *ret)
{
	const char *until = seconds > 0 ? "for one hour" : "until it ends";
	_cleanup_free_ char *who = NULL, *what = NULL;

	if (words_session(context, session, &who) < 0 || subject(shown, address, &what) < 0)
		return -ENOMEM;
	ret->kind = EFFECT_CALL;
	ret->call = CALL_ALLOW;
	ret->seconds = seconds;
	ret->session = strdup(session->session.id);
	ret->address = strdup(address);
	if (!ret->session || !ret->address || words_set(&ret->text, "%c", seconds > 0 ? 'h' : 's') < 0 ||
	    words_set(&ret->title, "for this session, %s", until) < 0 ||
	    words_set(&ret->question,
		      "Let %s reach %s, %s? All that runs in it may. Other sessions stay as they are.%s", who,
		      what, until, allowing_warning(address)) < 0)
		return -ENOMEM;
	return words_set(&ret->done, "%s is open in this session %s", shown, until);
}

static int for_everybody(const char *address, const char *shown, Effect *ret)
{
	_cleanup_free_ char *what = NULL;

	if (subject(shown, address, &what) < 0)
		return -ENOMEM;
	ret->kind = EFFECT_CALL;
	ret->call = CALL_ADD;
	ret->address = strdup(address);
	ret->comment = strdup("");
	if (!ret->address || !ret->comment || words_set(&ret->text, "a") < 0 ||
	    words_set(&ret->title, "always, for the agents of all users (written to " CS_CONFIG_PATH ")") <
		    0 ||
	    words_set(&ret->question,
		      "Let the agents of all users reach %s, in the sessions that run and in all that start "
		      "from now on? It is written to " CS_CONFIG_PATH ".%s",
		      what, allowing_warning(address)) < 0)
		return -ENOMEM;
	return words_set(&ret->done, "%s is open for the agents of all users", shown);
}

int allowing_choose(const ViewContext *context, const ModelSession *session, const char *address,
		    const char *reason, Effect *ret)
{
	_cleanup_free_ char *shown = words_bytes(context, address), *why = words_bytes(context, reason);
	Effect *part;
	int r = 0;

	if (!shown || !why)
		return -ENOMEM;
	ret->kind = EFFECT_CHOOSE;
	ret->parts = calloc(3, sizeof(*ret->parts));
	if (!ret->parts || words_set(&ret->title, "Allow %s%s%s%s", shown, *why ? " (refused now: " : "", why,
				     *why ? ")" : "") < 0)
		return -ENOMEM;
	part = ret->parts;
	if (session && !session->ended) {
		ret->n_parts = 2;
		r = for_session(context, session, address, shown, 0, part++);
		if (r == 0)
			r = for_session(context, session, address, shown, HOUR, part++);
	}
	if (r < 0)
		return r;
	ret->n_parts++;
	return for_everybody(address, shown, part);
}

/* "session ID[ until TIME]". Return: what follows ID, NULL where it is another session's. */
static const char *own_origin(const ModelSession *session, const char *origin)
{
	const char *id = starts_with(origin, "session "),
		   *rest = id ? starts_with(id, session->session.id) : NULL;

	return rest && (*rest == '\0' || *rest == ' ') ? rest : NULL;
}

/*
 * The row of allow-ip that opens a network to session, the one that holds for longest; of a wider one parts
 * may be refused, as the host's own address is. Return: SIZE_MAX for none.
 */
static size_t opening_of(const ClientTable *table, const ModelSession *session, WhyNetwork network,
			 bool wider)
{
	size_t found = SIZE_MAX;
	int best = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		const char *origin = words_cell(table, i, ALLOWED_ORIGIN), *own = own_origin(session, origin);
		int holds = !starts_with(origin, "session ") ? 3 : !own ? 0 : *own == '\0' ? 2 : 1;
		WhyNetwork opened;

		if (holds <= best || network_of(words_cell(table, i, ALLOWED_ADDRESS), &opened) < 0 ||
		    opened.length > network.length || (!wider && opened.length < network.length) ||
		    !why_overlap(opened, network))
			continue;
		found = i;
		best = holds;
	}
	return found;
}

int allowing_now(const ViewContext *context, const ModelSession *session, const char *address, char **ret)
{
	const ClientTable *allowed = &context->model->allow_ip.table, *routes = &session->routes.table;
	bool has_routes = session->routes.state == MODEL_HERE && !session->routes.stale;
	const char *origin, *own;
	WhyNetwork network;
	ssize_t route;
	size_t row;
	int r;

	if (session->ended || network_of(address, &network) < 0)
		return 0;
	route = has_routes ? why_route(routes, network) : WHY_NONE;
	if (has_routes && (route == WHY_NONE || streq(words_cell(routes, (size_t)route, ROUTE_SAYS), "deny")))
		return 0;
	row = opening_of(allowed, session, network, has_routes);
	if (row == SIZE_MAX) {
		if (!has_routes)
			return 0;
		r = words_set(ret, "in this session, by its route %s",
			      words_cell(routes, (size_t)route, ROUTE_TO));
		return r < 0 ? r : 1;
	}
	origin = words_cell(allowed, row, ALLOWED_ORIGIN);
	own = own_origin(session, origin);
	if (!own)
		r = words_set(ret, "for the agents of all users, by allow-ip %s (%s)",
			      words_cell(allowed, row, ALLOWED_ADDRESS), origin);
	else
		r = words_set(ret, "in this session, %s", *own ? own + 1 : "until it ends");
	return r < 0 ? r : 1;
}

static const char white[] = " \t";

int allowing_parse(const char *typed, char **ret_address, char **ret_comment)
{
	_cleanup_free_ char *address = NULL, *comment = NULL;
	size_t n;

	typed += strspn(typed, white);
	n = strcspn(typed, " \t#");
	if (n == 0)
		return -ENOENT;
	address = strndup(typed, n);
	typed += n;
	typed += strspn(typed, white);
	if (*typed == '#')
		typed++;
	typed += strspn(typed, white);
	for (n = strlen(typed); n > 0 && strchr(white, typed[n - 1]); n--)
		;
	comment = strndup(typed, n);
	if (!address || !comment)
		return -ENOMEM;
	*ret_address = TAKE_PTR(address);
	*ret_comment = TAKE_PTR(comment);
	return 0;
}

bool allowing_check(const ViewContext *context, const char *typed, Effect *ret_call, char **ret_problem)
{
	if (allowing_parse(typed, &ret_call->address, &ret_call->comment) < 0)
		return false;
	ret_call->kind = EFFECT_CALL;
	ret_call->call = CALL_ADD;
	return true;
}
