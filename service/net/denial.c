/* SPDX-License-Identifier: MIT */
#include "service/net/denial.h"

#include <assert.h>

#include "service/link/pack.h"
#include "service/net/link.h"

#include <linux/fib_rules.h>
#include <netlink/route/rule.h>

int denial_check_table(const RouteTable *routes, char **ret_problem)
{
	size_t defaults = 0, denials = 0;

	for (size_t i = 0; i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];

		if (row->length > 32 || row->verdict >= ROUTE_VERDICT_MAX ||
		    (row->verdict == ROUTE_INTERNET) != (row->length == 0))
			return refuse(ret_problem, -EINVAL, "the table of routes is not sound");
		defaults += row->verdict == ROUTE_INTERNET;
		denials += row->verdict == ROUTE_DENY;
	}
	if (routes->n_rows > ROUTES_MAX || defaults != 1 || denials == 0)
		return refuse(ret_problem, -EINVAL, "the table of routes denies nothing, or leads nowhere");
	return 0;
}

int denial_init(Denial *denial, const JailSockets *sockets, const RouteTable *routes, char **ret_problem)
{
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	Link lo, jail, ledger = { 0 };
	int r;

	r = denial_check_table(routes, ret_problem);
	if (r < 0)
		return r;
	r = netlink_new(sockets->route_fd, NETLINK_ROUTE, &netlink);
	if (r < 0)
		return refuse(ret_problem, r, "the jail's rtnetlink socket cannot be used: %s", strerror(-r));
	r = link_find(netlink, "lo", &lo);
	if (r >= 0)
		r = link_find(netlink, ROUTES_JAIL_DEVICE, &jail);
	if (r >= 0 && sockets->ledger_fd >= 0)
		r = link_find(netlink, ROUTES_LEDGER_DEVICE, &ledger);
	if (r < 0)
		return refuse(ret_problem, r, "the jail's devices cannot be found: %s", strerror(-r));

	*denial = (Denial){
		.tap_fd = sockets->tap_fd,
		.routes = routes,
		.devices = { lo.index, jail.index, ledger.index, sockets->ipv6_off },
	};
	r = meant_make(routes, &denial->devices, &denial->meant);
	if (r >= 0)
		denial->netlink = TAKE_PTR(netlink);
	return r;
}

void denial_done(Denial *denial)
{
	denial->netlink = netlink_free(denial->netlink);
	denial->warnings = strings_free(denial->warnings);
	meant_done(&denial->meant);
	denial->tap_fd = FD_NONE;
}

int denial_apply(Denial *denial, char **ret_problem)
{
	for (const DenialStep *step = denial_steps; step->name; step++) {
		_cleanup_free_ char *problem = NULL;
		int r = step->apply(denial, step->kind, &problem);

		if (r < 0)
			return refuse(ret_problem, r,
				      "closing the jail's network failed at its step '%s': %s", step->name,
				      problem ?: strerror(-r));
	}
	return 0;
}

/* ---- sending ---- */

/* What opens may fail: then less is reachable. */
static int judge(Denial *denial, MeantRow *row, bool begins, const NetlinkAnswer *answer, char **ret_problem)
{
	const char *why = answer->text ?: strerror(-answer->error);
	_cleanup_free_ char *name = NULL;
	char text[ADDRESS_TEXT_MAX];
	Said said;
	int r;

	if (answer->error == 0)
		return 0;
	if (begins && (row->kind == MEANT_FORWARDER || row->kind == MEANT_ALLOW)) {
		row->left_out = true;
		return strings_appendf(&denial->warnings, "%s %s is not reachable: %s",
				       row->kind == MEANT_FORWARDER ? "the name server" : "allow-ip",
				       ipv4_to_text(row->row->address, row->row->length, text), why);
	}
	r = said_read(row->message, &said) ?: said_name(&said, &name);
	return r < 0 ? r
		     : refuse(ret_problem, answer->error, "%s cannot be %s: %s", name,
			      begins ? "added" : "removed", why);
}

/* What of list is of that kind and not in other (NULL: nothing is). */
static int send_rows(Denial *denial, Meant *list, const Meant *other, MeantKind kind, bool begins,
		     char **ret_problem)
{
	struct nlmsghdr **messages = calloc(list->n + 1, sizeof(*messages));
	MeantRow **rows = calloc(list->n + 1, sizeof(*rows));
	NetlinkAnswer *answers = NULL;
	size_t n = 0;
	int r = messages && rows ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < list->n; i++) {
		MeantRow *row = &list->rows[i];

		if (row->kind != kind || row->left_out || (other && meant_find(other, row)))
			continue;
		if (!begins) {
			row->message->nlmsg_type++; /* RTM_DEL... */
			row->message->nlmsg_flags = 0;
		}
		rows[n] = row;
		messages[n++] = row->message;
	}
	if (r >= 0)
		r = (answers = calloc(n + 1, sizeof(*answers))) ? 0 : -ENOMEM;
	if (r >= 0) {
		r = netlink_program(denial->netlink, messages, n, answers);
		if (r < 0)
			r = refuse(ret_problem, r, "the kernel does not answer: %s", strerror(-r));
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = judge(denial, rows[i], begins, &answers[i], ret_problem);
	netlink_answers_free(answers, n);
	free(messages);
	free(rows);
	return r;
}

int denial_send(Denial *denial, MeantKind kind, char **ret_problem)
{
	return send_rows(denial, &denial->meant, NULL, kind, true, ret_problem);
}

/*
 * A new namespace keeps its local table inside the main one, until the first rule comes (fib_unmerge() of the
 * kernel): add one that says what the kernel's own does, before it, and take it away again. The tables stay
 * apart.
 */
int denial_part_tables(Denial *denial, MeantKind kind, char **ret_problem)
{
	struct rtnl_rule *rule = rtnl_rule_alloc();
	_cleanup_free_ char *text = NULL;
	struct nl_msg *add = NULL, *del = NULL;
	int added = -ENOMEM, deleted = -ENOMEM, r;

	if (rule) {
		rtnl_rule_set_family(rule, AF_INET);
		rtnl_rule_set_table(rule, RT_TABLE_MAIN);
		rtnl_rule_set_action(rule, FR_ACT_TO_TBL);
		rtnl_rule_set_prio(rule, 32765);
		added = rtnl_rule_build_add_request(rule, NLM_F_CREATE | NLM_F_EXCL, &add);
		deleted = rtnl_rule_build_delete_request(rule, 0, &del);
	}
	rtnl_rule_put(rule);
	r = netlink_program_one(denial->netlink, netlink_built(added, add), &text)
		    ?: netlink_program_one(denial->netlink, netlink_built(deleted, del), &text);
	if (r < 0)
		return refuse(ret_problem, r,
			      "the kernel does not part its routing tables (CONFIG_IP_MULTIPLE_TABLES): %s",
			      text ?: strerror(-r));
	return 0;
}

/* ---- the change ---- */

/*
 * ORDER IS SECURITY, since an agent may be connecting all the while. Each step ends, with the kernel's answer
 * to each of its requests, before the next one begins:
 *
 *  1. denials that are new: from here on at most what the old table and the new one both leave open.
 *  2. openings that end.
 *  3. the ledger's routes that end, then those that begin. Where an opening has the same prefix as a denial,
 *     each stands in the other's place; between the two the prohibit answers.
 *  4. openings that begin: every denial that the new table has around them stands already. The far end is not
 *     touched for this (denial-steps.c).
 *  5. denials that end, last: what an opening that was taken away in 2 had made necessary.
 *  6. everything is read back.
 *
 * Only 4 may fail in part, with less reachable. Any other failure leaves what nobody meant.
 */
static const struct {
	bool begins;
	MeantKind kind;
} changes[] = {
	{ true, MEANT_PROHIBIT },  { false, MEANT_FORWARDER }, { false, MEANT_ALLOW },
	{ false, MEANT_DEFAULT },  { false, MEANT_LEDGER },    { true, MEANT_LEDGER },
	{ true, MEANT_FORWARDER }, { true, MEANT_ALLOW },      { true, MEANT_DEFAULT },
	{ false, MEANT_PROHIBIT },
};

static int change_program(Denial *denial, Meant *wanted, char **ret_problem)
{
	int r = 0;

	/* An opening that was left out stays that. */
	for (size_t i = 0; i < wanted->n; i++) {
		const MeantRow *before = meant_find(&denial->meant, &wanted->rows[i]);

		wanted->rows[i].left_out = before && before->left_out;
	}
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(changes); i++)
		r = changes[i].begins
			    ? send_rows(denial, wanted, &denial->meant, changes[i].kind, true, ret_problem)
			    : send_rows(denial, &denial->meant, wanted, changes[i].kind, false, ret_problem);
	return r;
}

int denial_change(Denial *denial, RouteTable *routes, RouteTable *wanted, char **ret_problem)
{
	_cleanup_(meant_done) Meant meant = { 0 };
	_cleanup_free_ char *problem = NULL;
	int r;

	assert(denial->routes == routes);
	r = denial_check_table(wanted, ret_problem);
	if (r == 0)
		r = meant_make(wanted, &denial->devices, &meant);
	if (r < 0)
		return r;
	denial->warnings = strings_free(denial->warnings);

	r = change_program(denial, &meant, &problem);
	if (r >= 0) {
		route_table_done(routes);
		*routes = *wanted;
		*wanted = (RouteTable){ 0 };
		meant_done(&denial->meant);
		denial->meant = meant;
		meant = (Meant){ 0 };
		r = denial_read_back(denial, &problem);
	}
	if (r < 0)
		return refuse(ret_problem, -EREMCHG, "changing the jail's network failed: %s",
			      problem ?: strerror(-r));
	return 0;
}

bool denial_left_out(const Denial *denial, uint32_t address, uint8_t length)
{
	for (size_t i = 0; i < denial->meant.n; i++) {
		const MeantRow *row = &denial->meant.rows[i];

		if (meant_is_opening(row) && row->row->address == address && row->row->length == length)
			return row->left_out;
	}
	return false;
}
