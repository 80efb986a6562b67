/* SPDX-License-Identifier: MIT */

/*
 * ORDER IS SECURITY, since an agent may be connecting all the while. Each step ends, with the kernel's answer
 * to each of its requests, before the next one begins:
 *
 *  1. denials that are new: from here on at most what the old table and the new one both leave open.
 *  2. openings that end.
 *  3. the ledger's routes that end, then those that begin. Where an opening has the same prefix as a denial,
 *     each stands in the other's place; between the two the prohibit answers.
 *  4. openings that begin: every denial that the new table has around them stands already. The far end is not
 *     touched for this (route.h).
 *  5. denials that end, last: what an opening that was taken away in 2 had made necessary.
 *  6. everything is read back.
 *
 * Only 4 may fail in part, with less reachable. Any other failure leaves what nobody meant.
 */

#include "service/net/denial-change.h"

#include <assert.h>

#include "service/link/pack.h"
#include "service/net/ledger-device.h"
#include "service/net/route.h"

typedef enum Kind {
	KIND_DENIAL, /* the prohibit */
	KIND_LEDGER, /* the route to the ledger that stands before it */
	KIND_OPENING,
} Kind;

typedef struct Change {
	Denial *denial;
	const RouteTable *routes, *wanted;
	bool *left_out; /* of wanted's rows */
	/* For one step. */
	struct nl_msg **messages;
	NetlinkAnswer *answers;
	size_t *rows, n, allocated;
} Change;

static bool is_denial(const RouteRow *row)
{
	return row->verdict == ROUTE_DENY;
}

/* The kernel tells rows apart by these alone; why one is open, it does not know. */
static bool is_same(const RouteRow *a, const RouteRow *b)
{
	return a->address == b->address && a->length == b->length && is_denial(a) == is_denial(b);
}

static bool is_of(const Change *change, const RouteTable *table, size_t index, Kind kind)
{
	if (kind == KIND_LEDGER)
		return ledger_has_row(change->denial, table, index);
	return is_denial(&table->rows[index]) == (kind == KIND_DENIAL);
}

static bool find(const RouteTable *table, const RouteRow *row, size_t *ret)
{
	for (size_t i = 0; i < table->n_rows; i++)
		if (is_same(&table->rows[i], row)) {
			*ret = i;
			return true;
		}
	return false;
}

static void step_clear(Change *change)
{
	for (size_t i = 0; i < change->n; i++) {
		nl_msg_freep(&change->messages[i]);
		freep(&change->answers[i].text);
		change->answers[i] = (NetlinkAnswer){ 0 };
	}
	change->n = 0;
}

static void change_done(Change *change)
{
	step_clear(change);
	free(change->messages);
	free(change->answers);
	free(change->rows);
	free(change->left_out);
}

static int change_init(Change *change)
{
	change->allocated = MAX_OF(change->routes->n_rows, change->wanted->n_rows);
	change->left_out = calloc(change->wanted->n_rows, sizeof(*change->left_out));
	change->messages = calloc(change->allocated, sizeof(*change->messages));
	change->answers = calloc(change->allocated, sizeof(*change->answers));
	change->rows = calloc(change->allocated, sizeof(*change->rows));
	return change->left_out && change->messages && change->answers && change->rows ? 0 : -ENOMEM;
}

/* Has the other table the same route? */
static bool find_kind(const Change *change, const RouteTable *table, const RouteRow *row, Kind kind,
		      size_t *ret)
{
	return find(table, row, ret) && is_of(change, table, *ret, kind);
}

static int step_add(Change *change, uint16_t type, Kind kind, const RouteRow *row, size_t index)
{
	const Route route = kind == KIND_LEDGER
				    ? ledger_route_of_row(row, (uint32_t)change->denial->ledger_index)
				    : route_of_row(row, (uint32_t)change->denial->jail_index);

	change->messages[change->n] = route_message(type, &route);
	if (!change->messages[change->n])
		return -ENOMEM;
	change->rows[change->n++] = index;
	return 0;
}

/* What wanted has and routes does not. An opening that was left out stays that. */
static int gather_begins(Change *change, Kind kind)
{
	int r = 0;

	for (size_t i = 0, at; r >= 0 && i < change->wanted->n_rows; i++) {
		const RouteRow *row = &change->wanted->rows[i];

		if (!is_of(change, change->wanted, i, kind))
			continue;
		if (!find_kind(change, change->routes, row, kind, &at))
			r = step_add(change, RTM_NEWROUTE, kind, row, i);
		else if (kind == KIND_OPENING)
			change->left_out[i] = change->denial->left_out[at];
	}
	return r;
}

static int gather_ends(Change *change, Kind kind)
{
	int r = 0;

	for (size_t i = 0, at; r >= 0 && i < change->routes->n_rows; i++) {
		const RouteRow *row = &change->routes->rows[i];

		if (is_of(change, change->routes, i, kind) && !change->denial->left_out[i] &&
		    !find_kind(change, change->wanted, row, kind, &at))
			r = step_add(change, RTM_DELROUTE, kind, row, i);
	}
	return r;
}

/* What begins may fail softly where it opens. */
static int judge(Change *change, size_t n, bool begins, Kind kind, char **ret_problem)
{
	const RouteTable *table = begins ? change->wanted : change->routes;
	const RouteRow *row = &table->rows[change->rows[n]];
	const NetlinkAnswer *answer = &change->answers[n];
	const char *why = answer->text ?: strerror(-answer->error);
	char name[ADDRESS_TEXT_MAX];

	if (answer->error == 0)
		return 0;
	if (!begins || kind != KIND_OPENING)
		return refuse(ret_problem, answer->error, "the route to %s cannot be %s: %s",
			      ipv4_to_text(row->address, row->length, name), begins ? "added" : "removed",
			      why);
	change->left_out[change->rows[n]] = true;
	return strings_appendf(&change->denial->warnings, "%s %s is not reachable: %s",
			       row->verdict == ROUTE_DNS ? "the name server" : "allow-ip",
			       ipv4_to_text(row->address, row->length, name), why);
}

static int step(Change *change, bool begins, Kind kind, char **ret_problem)
{
	int r = begins ? gather_begins(change, kind) : gather_ends(change, kind);

	if (r >= 0 && change->n > 0) {
		r = netlink_program(change->denial->netlink, change->messages, change->n, change->answers);
		if (r < 0)
			r = refuse(ret_problem, r, "the kernel does not take routes: %s", strerror(-r));
	}
	for (size_t i = 0; r >= 0 && i < change->n; i++)
		r = judge(change, i, begins, kind, ret_problem);
	step_clear(change);
	return r;
}

static int change_program(Change *change, char **ret_problem)
{
	static const struct {
		bool begins;
		Kind kind;
	} steps[] = {
		{ true, KIND_DENIAL }, { false, KIND_OPENING }, { false, KIND_LEDGER },
		{ true, KIND_LEDGER }, { true, KIND_OPENING },  { false, KIND_DENIAL },
	};

	for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
		int r = step(change, steps[i].begins, steps[i].kind, ret_problem);

		if (r < 0)
			return r;
	}
	return 0;
}

int denial_change(Denial *denial, RouteTable *routes, RouteTable *wanted, char **ret_problem)
{
	_cleanup_(change_done) Change change = { .denial = denial, .routes = routes, .wanted = wanted };
	_cleanup_free_ char *problem = NULL;
	int r;

	assert(denial->routes == routes);
	r = denial_check_table(wanted, ret_problem);
	if (r == 0)
		r = change_init(&change);
	if (r < 0)
		return r;
	denial->warnings = strings_free(denial->warnings);

	r = change_program(&change, &problem);
	if (r >= 0) {
		route_table_done(routes);
		*routes = *wanted;
		*wanted = (RouteTable){ 0 };
		free(denial->left_out);
		denial->left_out = TAKE_PTR(change.left_out);
		r = denial_read_back(denial, &problem);
	}
	if (r < 0)
		return refuse(ret_problem, -EREMCHG, "changing the jail's network failed: %s",
			      problem ?: strerror(-r));
	return 0;
}

bool denial_left_out(const Denial *denial, uint32_t address, uint8_t length)
{
	const RouteRow row = { .address = address, .length = length, .verdict = ROUTE_ALLOW };
	size_t at;

	return find(denial->routes, &row, &at) && denial->left_out[at];
}
