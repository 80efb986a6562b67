/* SPDX-License-Identifier: MIT */
#include "service/plan/routes.h"

#include <assert.h>

#include "dbus/causes.h"

/*
 * THE ORDER: denials, then what is opened, then the default. Each row is programmed in this order, so nothing
 * is reachable before everything that denies is there.
 *
 * A denial is a prohibit at ROUTES_DENY_METRIC, an opening stands at metric 0. The kernel takes the longest
 * prefix first and the metric only between equal prefixes: an allow-ip equal to a denied prefix therefore
 * wins while it is there, and the prohibit answers when it is not. Among different prefixes the narrower one
 * wins, so a network or address of the host that lies inside an allow-ip must have a row of its own: the
 * wider denial around that allow-ip does not reach it any more. Where no allow-ip lies between, the wider
 * denial says it all.
 */

/* One in each of the documentation networks (RFC 5737), which no network should use, though some do. */
static const uint32_t forwarders[] = {
	0xc0000235u, /* 192.0.2.53 */
	0xc6336435u, /* 198.51.100.53 */
	0xcb007135u, /* 203.0.113.53 */
};

/*
 * No network is connected in whole above this size. A shorter prefix on a device is a VPN's way to write the
 * default route; to deny it would deny everything. /0, and the two halves that VPNs write to leave the real
 * default route alone, are that usual case; between them and this it is odd enough for a warning.
 */
#define SUBNET_LENGTH_MIN 8u
#define HALF_LENGTH 1u

static uint32_t mask_of(unsigned length)
{
	return length == 0 ? 0 : UINT32_MAX << (32 - length);
}

/* Does the wider (or equal) prefix hold the narrower one? */
static bool prefix_holds(HostPrefix wide, HostPrefix narrow)
{
	return wide.length <= narrow.length && ((wide.address ^ narrow.address) & mask_of(wide.length)) == 0;
}

static bool prefix_equal(HostPrefix a, HostPrefix b)
{
	return a.length == b.length && a.address == b.address;
}

static HostPrefix row_prefix(const RouteRow *row)
{
	return (HostPrefix){ row->address, row->length };
}

const RouteRow *routes_find(const RouteTable *table, uint32_t address)
{
	const RouteRow *best = NULL;

	for (size_t i = 0; i < table->n_rows; i++) {
		const RouteRow *row = &table->rows[i];

		if (prefix_holds(row_prefix(row), (HostPrefix){ address, 32 }) &&
		    (!best || row->length > best->length ||
		     (row->length == best->length && row->verdict != ROUTE_DENY)))
			best = row;
	}
	return best;
}

const RouteRow *routes_find_denial(const RouteTable *table, uint32_t address)
{
	const RouteRow *best = NULL;

	for (size_t i = 0; i < table->n_rows; i++) {
		const RouteRow *row = &table->rows[i];

		if (row->verdict == ROUTE_DENY &&
		    prefix_holds(row_prefix(row), (HostPrefix){ address, 32 }) &&
		    (!best || row->length > best->length))
			best = row;
	}
	return best;
}

const char *route_verdict_to_string(RouteVerdict verdict)
{
	static const char *const names[ROUTE_VERDICT_MAX] = {
		[ROUTE_DENY] = "deny",
		[ROUTE_DNS] = "dns",
		[ROUTE_ALLOW] = "allow",
		[ROUTE_INTERNET] = "internet",
	};

	assert(verdict < ROUTE_VERDICT_MAX);
	return names[verdict];
}

const char *route_to_string(uint32_t address, uint8_t length, char buffer[static ROUTE_TEXT_MAX])
{
	if (address == 0 && length == 0)
		(void)snprintf(buffer, ROUTE_TEXT_MAX, "default");
	else
		(void)snprintf(buffer, ROUTE_TEXT_MAX, "%u.%u.%u.%u/%u", address >> 24, address >> 16 & 255,
			       address >> 8 & 255, address & 255, length & 63u);
	return buffer;
}

void host_network_done(HostNetwork *host)
{
	free(host->subnets);
	free(host->addresses);
	free(host->gateways);
	*host = (HostNetwork){ 0 };
}

void route_table_done(RouteTable *table)
{
	for (size_t i = 0; i < table->n_rows; i++)
		free(table->rows[i].reason);
	free(table->rows);
	strings_free(table->warnings);
	*table = (RouteTable){ 0 };
}

static int row_add(RouteTable *table, HostPrefix prefix, RouteVerdict verdict, const char *reason,
		   char **ret_problem)
{
	RouteRow *grown;
	char *copy;

	if (table->n_rows >= ROUTES_MAX)
		return refuse(ret_problem, -E2BIG,
			      "more than %u routes for one session: the host's networks and the allow-ip "
			      "lines are too "
			      "many; join allow-ip lines into wider prefixes",
			      ROUTES_MAX);
	grown = reallocarray(table->rows, table->n_rows + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	table->rows = grown;
	copy = strdup(reason);
	if (!copy)
		return -ENOMEM;
	grown[table->n_rows++] = (RouteRow){ prefix.address, prefix.length, verdict, copy };
	return 0;
}

/* What the configuration allows, and what of the host might need a row: both before it is decided which do.
 */
/* Reasons by which rows are told apart. */
#define ADDRESS_OF_HOST "address of the host"
#define GATEWAY_OF_HOST "gateway of the host"

typedef struct Opening {
	HostPrefix prefix;
	const ConfigValue *value;
} Opening;

typedef struct Candidate {
	HostPrefix prefix;
	const char *reason;
} Candidate;

typedef struct Draft {
	Opening *openings;
	size_t n_openings;
	Candidate *candidates;
	size_t n_candidates;
} Draft;

static void draft_done(Draft *draft)
{
	free(draft->openings);
	free(draft->candidates);
	*draft = (Draft){ 0 };
}

static int openings_read(Draft *draft, const Config *config, char **ret_problem)
{
	const ConfigValue *value;
	size_t index = 0;

	draft->openings = calloc(config->n_values + 1, sizeof(*draft->openings));
	if (!draft->openings)
		return -ENOMEM;
	while ((value = config_next(config, CONFIG_ALLOW_IP, &index))) {
		_cleanup_free_ char *reason = NULL;
		uint32_t address = 0;
		unsigned length = 0;
		int r = config_parse_address(value->text, &address, &length, &reason);

		if (r == -EINVAL)
			return refuse(ret_problem, r, "%s: allow-ip: %s", value->origin, reason);
		if (r < 0)
			return r;
		draft->openings[draft->n_openings++] = (Opening){ { address, (uint8_t)length }, value };
	}
	return 0;
}

static void candidate_add(Draft *draft, uint32_t address, unsigned length, const char *reason)
{
	draft->candidates[draft->n_candidates++] =
		(Candidate){ { address & mask_of(length), (uint8_t)length }, reason };
}

/* Wider first, so that what holds a candidate was decided before it; then a stable, readable order. */
static int candidate_compare(const void *a, const void *b)
{
	const Candidate *x = a, *y = b;

	if (x->prefix.length != y->prefix.length)
		return x->prefix.length < y->prefix.length ? -1 : 1;
	if (x->prefix.address != y->prefix.address)
		return x->prefix.address < y->prefix.address ? -1 : 1;
	return strcmp(x->reason, y->reason);
}

static int candidates_read(Draft *draft, const HostNetwork *host, char ***warnings, char **ret_problem)
{
	size_t n = host->n_subnets + host->n_addresses + host->n_gateways;

	draft->candidates = calloc(n + 1, sizeof(*draft->candidates));
	if (!draft->candidates)
		return -ENOMEM;
	for (size_t i = 0; i < host->n_subnets; i++) {
		HostPrefix subnet = host->subnets[i];
		char text[ROUTE_TEXT_MAX];

		if (subnet.length > 32)
			return refuse(ret_problem, -EINVAL, "a network of the host has the prefix length %u",
				      subnet.length);
		if (subnet.length >= SUBNET_LENGTH_MIN) {
			candidate_add(draft, subnet.address, subnet.length,
				      subnet.length == 32 ? "peer of the host" : "network of the host");
			continue;
		}
		if (subnet.length <= HALF_LENGTH)
			continue;
		if (strings_appendf(
			    warnings,
			    "the host routes %s to a device: it is too wide for a connected network and "
			    "is not denied; name what is behind it with longer prefixes",
			    route_to_string(subnet.address, subnet.length, text)) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < host->n_addresses; i++)
		candidate_add(draft, host->addresses[i], 32, ADDRESS_OF_HOST);
	for (size_t i = 0; i < host->n_gateways; i++)
		candidate_add(draft, host->gateways[i], 32, GATEWAY_OF_HOST);
	qsort(draft->candidates, draft->n_candidates, sizeof(*draft->candidates), candidate_compare);
	return 0;
}

/* The narrowest denial so far that holds prefix, or NULL. */
static const RouteRow *denial_around(const RouteTable *table, HostPrefix prefix)
{
	const RouteRow *narrowest = NULL;

	for (size_t i = 0; i < table->n_rows; i++) {
		const RouteRow *row = &table->rows[i];

		if (prefix_holds(row_prefix(row), prefix) && (!narrowest || row->length > narrowest->length))
			narrowest = row;
	}
	return narrowest;
}

static bool opening_lies_between(const Draft *draft, HostPrefix wide, HostPrefix narrow)
{
	for (size_t i = 0; i < draft->n_openings; i++)
		if (prefix_holds(wide, draft->openings[i].prefix) &&
		    prefix_holds(draft->openings[i].prefix, narrow))
			return true;
	return false;
}

static int denials_add(RouteTable *table, const Draft *draft, char **ret_problem)
{
	int r;

	for (const DeniedRange *range = denied_ranges; range->reason; range++) {
		r = row_add(table, range->prefix, ROUTE_DENY, range->reason, ret_problem);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < draft->n_candidates; i++) {
		const Candidate *candidate = &draft->candidates[i];
		const RouteRow *around = denial_around(table, candidate->prefix);

		if (around && (prefix_equal(row_prefix(around), candidate->prefix) ||
			       !opening_lies_between(draft, row_prefix(around), candidate->prefix)))
			continue;
		r = row_add(table, candidate->prefix, ROUTE_DENY, candidate->reason, ret_problem);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A forwarder that something of the host answers at would be hidden by it. */
static bool forwarder_is_of_host(uint32_t forwarder, const RouteTable *table, const Draft *draft)
{
	HostPrefix prefix = { forwarder, 32 };

	for (size_t i = 0; i < draft->n_candidates; i++)
		if (prefix_holds(draft->candidates[i].prefix, prefix))
			return true;
	return denial_around(table, prefix);
}

static bool forwarder_is_opened(uint32_t forwarder, const Draft *draft)
{
	for (size_t i = 0; i < draft->n_openings; i++)
		if (prefix_holds(draft->openings[i].prefix, (HostPrefix){ forwarder, 32 }))
			return true;
	return false;
}

static int forwarder_row_add(RouteTable *table, uint32_t forwarder, char **ret_problem)
{
	table->forwarder = forwarder;
	return row_add(table, (HostPrefix){ forwarder, 32 }, ROUTE_DNS, "name server of the jail",
		       ret_problem);
}

static int forwarder_keep(RouteTable *table, const Draft *draft, uint32_t forwarder, char **ret_problem)
{
	char text[ROUTE_TEXT_MAX];

	table->forwarder = forwarder;
	if (forwarder == 0)
		return 0;
	if (!forwarder_is_of_host(forwarder, table, draft))
		return forwarder_row_add(table, forwarder, ret_problem);
	return strings_appendf(&table->warnings,
			       "no names resolve inside: a network of the host has come to hold %s, the name "
			       "server of this session; start it anew",
			       route_to_string(forwarder, 32, text));
}

static int forwarder_add(RouteTable *table, const Draft *draft, char **ret_problem)
{
	for (size_t i = 0; i < ELEMENTSOF(forwarders); i++) {
		if (!forwarder_is_of_host(forwarders[i], table, draft) &&
		    !forwarder_is_opened(forwarders[i], draft))
			return forwarder_row_add(table, forwarders[i], ret_problem);
	}
	return strings_append(&table->warnings, BECAUSE(FORWARDER_NONE));
}

static bool is_own(const Draft *draft, HostPrefix prefix, const char **ret_reason)
{
	for (size_t i = 0; prefix.length == 32 && i < draft->n_candidates; i++)
		if (prefix_equal(draft->candidates[i].prefix, prefix)) {
			*ret_reason = draft->candidates[i].reason;
			return true;
		}
	return false;
}

static int openings_add(RouteTable *table, const Draft *draft, char **ret_problem)
{
	int r;

	for (size_t i = 0; i < draft->n_openings; i++) {
		const Opening *opening = &draft->openings[i];
		_cleanup_free_ char *reason = NULL;
		const char *own = NULL;
		bool known = false;

		for (size_t j = 0; j < i && !known; j++)
			known = prefix_equal(draft->openings[j].prefix, opening->prefix);
		if (known)
			continue;
		if (table->forwarder != 0 &&
		    prefix_equal(opening->prefix, (HostPrefix){ table->forwarder, 32 })) {
			if (strings_appendf(&table->warnings,
					    "%s: allow-ip %s is the name server of this session, which stays "
					    "that; start it anew",
					    opening->value->origin, opening->value->text) < 0)
				return -ENOMEM;
			continue;
		}

		if (asprintf(&reason, "allow-ip, %s", opening->value->origin) < 0) {
			reason = NULL;
			return -ENOMEM;
		}
		r = row_add(table, opening->prefix, ROUTE_ALLOW, reason, ret_problem);
		if (r < 0)
			return r;
		/* Named exactly, so it is meant; but the host's own services are seldom what was thought of.
		 */
		if (is_own(draft, opening->prefix, &own) &&
		    strings_appendf(
			    &table->warnings,
			    "%s: allow-ip %s is the %s: the agent reaches every service that listens there; "
			    "remove the line if that is not meant",
			    opening->value->origin, opening->value->text, own) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int table_make(const HostNetwork *host, const Config *config, const uint32_t *forwarder,
		      RouteTable *ret, char **ret_problem)
{
	_cleanup_(route_table_done) RouteTable table = { 0 };
	_cleanup_(draft_done) Draft draft = { 0 };
	int r;

	r = openings_read(&draft, config, ret_problem);
	if (r < 0)
		return r;
	r = candidates_read(&draft, host, &table.warnings, ret_problem);
	if (r < 0)
		return r;

	r = denials_add(&table, &draft, ret_problem);
	if (r < 0)
		return r;
	r = forwarder ? forwarder_keep(&table, &draft, *forwarder, ret_problem)
		      : forwarder_add(&table, &draft, ret_problem);
	if (r < 0)
		return r;
	r = openings_add(&table, &draft, ret_problem);
	if (r < 0)
		return r;
	r = row_add(&table, (HostPrefix){ 0, 0 }, ROUTE_INTERNET, "the internet", ret_problem);
	if (r < 0)
		return r;

	*ret = table;
	table = (RouteTable){ 0 };
	return 0;
}

int routes_make(const HostNetwork *host, const Config *config, RouteTable *ret, char **ret_problem)
{
	return table_make(host, config, NULL, ret, ret_problem);
}

int routes_make_again(const HostNetwork *host, const Config *config, uint32_t forwarder, RouteTable *ret,
		      char **ret_problem)
{
	return table_make(host, config, &forwarder, ret, ret_problem);
}

RouteVerdict routes_verdict(const RouteTable *table, uint32_t address)
{
	const RouteRow *row = routes_find(table, address);

	return row ? row->verdict : ROUTE_DENY;
}

bool routes_is_hosts(const RouteTable *table, uint32_t address)
{
	const RouteRow *row = routes_find_denial(table, address);

	return row && row->length == 32 && row->reason &&
	       (streq(row->reason, ADDRESS_OF_HOST) || streq(row->reason, GATEWAY_OF_HOST));
}

bool routes_is_explained(const RouteTable *table, size_t index)
{
	const RouteRow *row = &table->rows[index];

	if (row->verdict != ROUTE_DENY)
		return false;
	for (size_t i = 0; i < table->n_rows; i++)
		if (table->rows[i].verdict != ROUTE_DENY &&
		    prefix_equal(row_prefix(&table->rows[i]), row_prefix(row)))
			return false;
	return true;
}
