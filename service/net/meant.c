/* SPDX-License-Identifier: MIT */
#include "service/net/meant.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <netlink/route/addr.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <netlink/route/rule.h>

#define ADDRESS_OF_LOOPBACK 1 /* IFAPROT_KERNEL_LO */
#define LOOPBACK 0x7f000001u

static void nl_addr_putp(struct nl_addr **address)
{
	nl_addr_put(*address);
}

void meant_done(Meant *meant)
{
	for (size_t i = 0; i < meant->n; i++)
		free(meant->rows[i].message);
	free(meant->rows);
	*meant = (Meant){ 0 };
}

/* built: what libnl's builder returned. Return: the row, or NULL without memory. */
static MeantRow *meant_add(Meant *meant, MeantKind kind, int built, struct nl_msg *message)
{
	_cleanup_free_ struct nlmsghdr *header = netlink_built(built, message);
	MeantRow *grown = meant->rows;
	Said said;

	if (!header || said_read(header, &said) < 0)
		return NULL;
	if (meant->n == meant->allocated) {
		meant->allocated = 2 * meant->allocated + 32;
		grown = reallocarray(grown, meant->allocated, sizeof(*grown));
		if (!grown)
			return NULL;
		meant->rows = grown;
	}
	grown[meant->n] = (MeantRow){ .kind = kind, .key = said.key, .message = TAKE_PTR(header) };
	return &grown[meant->n++];
}

static struct nl_addr *address_new(uint32_t address, uint8_t length)
{
	const uint32_t bytes = htonl(address);
	struct nl_addr *new =
		nl_addr_build(AF_INET, length > 0 ? &bytes : NULL, length > 0 ? sizeof(bytes) : 0);

	if (new)
		nl_addr_set_prefixlen(new, length);
	return new;
}

typedef struct Draft {
	uint8_t type, scope, protocol, table, length;
	uint32_t address, source, gateway, metric, device; /* 0: none */
} Draft;

static int draft_build(const Draft *draft, struct rtnl_route *route, struct nl_msg **ret)
{
	_cleanup_(nl_addr_putp) struct nl_addr *destination = address_new(draft->address, draft->length),
					       *source = address_new(draft->source, 32),
					       *gateway = address_new(draft->gateway, 32);
	struct rtnl_nexthop *hop = draft->device != 0 ? rtnl_route_nh_alloc() : NULL;

	if (hop)
		rtnl_route_add_nexthop(route, hop);
	if (!destination || !source || !gateway || (draft->device != 0 && !hop) ||
	    rtnl_route_set_family(route, AF_INET) < 0 || rtnl_route_set_type(route, draft->type) < 0 ||
	    rtnl_route_set_dst(route, destination) < 0 ||
	    (draft->source != 0 && rtnl_route_set_pref_src(route, source) < 0))
		return -ENOMEM;
	rtnl_route_set_table(route, draft->table);
	rtnl_route_set_scope(route, draft->scope);
	rtnl_route_set_protocol(route, draft->protocol);
	if (draft->metric != 0)
		rtnl_route_set_priority(route, draft->metric);
	if (hop)
		rtnl_route_nh_set_ifindex(hop, (int)draft->device);
	if (draft->gateway != 0) {
		rtnl_route_nh_set_gateway(hop, gateway);
		/* The far end lies inside a prohibited range, so nothing else would make it a valid gateway. */
		rtnl_route_set_flags(route, RTNH_F_ONLINK);
	}
	return rtnl_route_build_add_request(route, NLM_F_CREATE | NLM_F_EXCL, ret);
}

static MeantRow *add_route(Meant *meant, MeantKind kind, const Draft *draft)
{
	struct rtnl_route *route = rtnl_route_alloc();
	struct nl_msg *message = NULL;
	int r = route ? draft_build(draft, route, &message) : -ENOMEM;

	rtnl_route_put(route);
	return meant_add(meant, kind, r, message);
}

static MeantRow *add_address(Meant *meant, MeantKind kind, uint32_t device, uint32_t address, uint8_t length,
			     int scope)
{
	_cleanup_(nl_addr_putp) struct nl_addr *local = address_new(address, length);
	struct rtnl_addr *new = rtnl_addr_alloc();
	struct nl_msg *message = NULL;
	int r = -ENOMEM;

	if (local && new &&rtnl_addr_set_local(new, local) >= 0 && rtnl_addr_set_label(new, "lo") >= 0) {
		rtnl_addr_set_ifindex(new, (int)device);
		rtnl_addr_set_scope(new, scope);
		rtnl_addr_set_flags(new, IFA_F_PERMANENT);
		rtnl_addr_set_valid_lifetime(new, UINT32_MAX);
		rtnl_addr_set_preferred_lifetime(new, UINT32_MAX);
		r = rtnl_addr_build_add_request(new, NLM_F_CREATE | NLM_F_EXCL, &message);
	}
	/* libnl has no word for these two. */
	if (r >= 0)
		r = nla_put_u32(message, IFA_FLAGS, IFA_F_PERMANENT);
	if (r >= 0 && kind == MEANT_KERNEL)
		r = nla_put_u8(message, ADDRESS_PROTOCOL, ADDRESS_OF_LOOPBACK);
	rtnl_addr_put(new);
	return meant_add(meant, kind, r, message);
}

static MeantRow *add_neighbour(Meant *meant, uint32_t device)
{
	static const uint8_t mac[6] = ROUTES_FAR_END_MAC;
	_cleanup_(nl_addr_putp) struct nl_addr *address = address_new(ROUTES_FAR_END, 32),
					       *link = nl_addr_build(AF_LLC, mac, sizeof(mac));
	struct rtnl_neigh *new = rtnl_neigh_alloc();
	struct nl_msg *message = NULL;
	int r = -ENOMEM;

	if (address && link && new &&rtnl_neigh_set_dst(new, address) >= 0) {
		rtnl_neigh_set_ifindex(new, (int)device);
		rtnl_neigh_set_state(new, NUD_PERMANENT);
		rtnl_neigh_set_lladdr(new, link);
		r = rtnl_neigh_build_add_request(new, NLM_F_CREATE | NLM_F_EXCL, &message);
	}
	rtnl_neigh_put(new);
	/* rtnl_neigh_set_type() of libnl before 3.8 makes it forget the rest. */
	if (r >= 0)
		((struct ndmsg *)nlmsg_data(nlmsg_hdr(message)))->ndm_type = RTN_UNICAST;
	return meant_add(meant, MEANT_NEIGHBOUR, r, message);
}

/* ip-rule(8): local, main, default. IPv6 has no default table, and some kernels have no IPv6. */
static MeantRow *add_rule(Meant *meant, int family, uint32_t priority, uint32_t table)
{
	struct rtnl_rule *new = rtnl_rule_alloc();
	struct nl_msg *message = NULL;
	MeantRow *row;
	int r = new ? 0 : -ENOMEM;

	if (new) {
		rtnl_rule_set_family(new, family);
		rtnl_rule_set_table(new, table);
		rtnl_rule_set_action(new, FR_ACT_TO_TBL);
		rtnl_rule_set_protocol(new, RTPROT_KERNEL);
		if (priority != 0)
			rtnl_rule_set_prio(new, priority);
		r = rtnl_rule_build_add_request(new, 0, &message);
	}
	rtnl_rule_put(new);
	row = meant_add(meant, MEANT_KERNEL, r, message);
	if (row)
		row->optional = family == AF_INET6;
	return row;
}

/* fib_add_ifaddr() of the kernel: what it derives from 127.0.0.1/8 and 192.0.0.2/32 on lo. */
static const struct {
	uint32_t destination, source;
	uint8_t length, type, scope;
	bool optional;
	const char *reason;
} kernel_routes[] = {
	{ 0x7f000000, LOOPBACK, 8, RTN_LOCAL, RT_SCOPE_HOST, false,
	  "the jail's own loopback, not the host's" },
	{ ROUTES_SOURCE, ROUTES_SOURCE, 32, RTN_LOCAL, RT_SCOPE_HOST, false, "the jail's own address" },
	{ LOOPBACK, LOOPBACK, 32, RTN_LOCAL, RT_SCOPE_HOST, false, NULL },
	{ 0x7fffffff, LOOPBACK, 32, RTN_BROADCAST, RT_SCOPE_LINK, false, NULL },
	/* Linux before 5.17 has the network's own address too. */
	{ 0x7f000000, LOOPBACK, 32, RTN_BROADCAST, RT_SCOPE_LINK, true, NULL },
};

static int add_own(Meant *meant, const JailDevices *devices)
{
	static const struct {
		uint32_t priority, table;
	} rules[] = { { 0, RT_TABLE_LOCAL }, { 32766, RT_TABLE_MAIN }, { 32767, RT_TABLE_DEFAULT } };
	const Draft far_end = {
		.type = RTN_LOCAL,
		.scope = RT_SCOPE_HOST,
		.protocol = RTPROT_STATIC,
		.table = RT_TABLE_MAIN,
		.address = ROUTES_FAR_END,
		.length = 32,
		.device = devices->jail,
	};
	MeantRow *row;

	for (size_t i = 0; i < ELEMENTSOF(kernel_routes); i++) {
		row = add_route(meant, MEANT_KERNEL,
				&(Draft){ .type = kernel_routes[i].type,
					  .scope = kernel_routes[i].scope,
					  .protocol = RTPROT_KERNEL,
					  .table = RT_TABLE_LOCAL,
					  .length = kernel_routes[i].length,
					  .address = kernel_routes[i].destination,
					  .source = kernel_routes[i].source,
					  .device = devices->lo });
		if (!row)
			return -ENOMEM;
		row->optional = kernel_routes[i].optional;
		row->reason = kernel_routes[i].reason;
	}
	for (size_t i = 0; i < ELEMENTSOF(rules); i++)
		if (!add_rule(meant, AF_INET, rules[i].priority, rules[i].table) ||
		    (rules[i].table != RT_TABLE_DEFAULT &&
		     !add_rule(meant, AF_INET6, rules[i].priority, rules[i].table)))
			return -ENOMEM;
	if (!add_address(meant, MEANT_KERNEL, devices->lo, LOOPBACK, 8, RT_SCOPE_HOST) ||
	    /* Global scope: the kernel then also answers from it where no route names a source. */
	    !add_address(meant, MEANT_ADDRESS, devices->lo, ROUTES_SOURCE, 32, RT_SCOPE_UNIVERSE) ||
	    !add_neighbour(meant, devices->jail))
		return -ENOMEM;
	row = add_route(meant, MEANT_FAR_END, &far_end);
	if (row)
		row->reason = "the jail's own: it names the far end";
	return row ? 0 : -ENOMEM;
}

static int add_row(Meant *meant, MeantKind kind, const RouteRow *row, const Draft *template)
{
	Draft draft = *template;
	MeantRow *new;

	draft.protocol = RTPROT_STATIC;
	draft.table = RT_TABLE_MAIN;
	draft.address = row->address;
	draft.length = row->length;
	new = add_route(meant, kind, &draft);
	if (new)
		new->row = row;
	return new ? 0 : -ENOMEM;
}

static int add_rows(Meant *meant, const RouteTable *routes, const JailDevices *devices)
{
	static const MeantKind kinds[ROUTE_VERDICT_MAX] = {
		[ROUTE_DENY] = MEANT_PROHIBIT,
		[ROUTE_DNS] = MEANT_FORWARDER,
		[ROUTE_ALLOW] = MEANT_ALLOW,
		[ROUTE_INTERNET] = MEANT_DEFAULT,
	};
	const Draft denial = { .type = RTN_PROHIBIT,
			       .scope = RT_SCOPE_UNIVERSE,
			       .metric = ROUTES_DENY_METRIC },
		    opening = { .type = RTN_UNICAST,
				.scope = RT_SCOPE_UNIVERSE,
				.device = devices->jail,
				.gateway = ROUTES_FAR_END,
				.source = ROUTES_SOURCE },
		    /* Metric 0, ahead of the row's prohibit. */
		ledger = { .type = RTN_UNICAST,
			   .scope = RT_SCOPE_LINK,
			   .device = devices->ledger,
			   .source = ROUTES_SOURCE };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < routes->n_rows; i++) {
		const RouteRow *row = &routes->rows[i];

		if (row->verdict < ROUTE_VERDICT_MAX)
			r = add_row(meant, kinds[row->verdict], row,
				    row->verdict == ROUTE_DENY ? &denial : &opening);
	}
	for (size_t i = 0; r >= 0 && devices->ledger != 0 && i < routes->n_rows; i++)
		if (routes_is_explained(routes, i))
			r = add_row(meant, MEANT_LEDGER, &routes->rows[i], &ledger);
	return r;
}

int meant_make(const RouteTable *routes, const JailDevices *devices, Meant *ret)
{
	_cleanup_(meant_done) Meant meant = { 0 };
	int r = add_own(&meant, devices);

	if (r >= 0)
		r = add_rows(&meant, routes, devices);
	if (r < 0)
		return r;
	*ret = meant;
	meant = (Meant){ 0 };
	return 0;
}

bool meant_is_opening(const MeantRow *row)
{
	return row->kind >= MEANT_FORWARDER;
}

MeantRow *meant_find(const Meant *meant, const MeantRow *row)
{
	for (size_t i = 0; i < meant->n; i++)
		if (memcmp(&meant->rows[i].key, &row->key, sizeof(row->key)) == 0 &&
		    (meant->rows[i].kind == row->kind ||
		     (meant_is_opening(&meant->rows[i]) && meant_is_opening(row))))
			return &meant->rows[i];
	return NULL;
}

/* ---- what the kernel holds ---- */

static int compare_keys(const void *a, const void *b)
{
	return memcmp(&(*(MeantRow *const *)a)->key, &(*(MeantRow *const *)b)->key, sizeof(SaidKey));
}

/* What is to be there, by key. */
static MeantRow **index_new(const Meant *meant, size_t *ret_n)
{
	MeantRow **index = calloc(meant->n + 1, sizeof(*index));
	size_t n = 0;

	if (!index)
		return NULL;
	for (size_t i = 0; i < meant->n; i++) {
		meant->rows[i].state = MEANT_MISSING;
		if (!meant->rows[i].left_out)
			index[n++] = &meant->rows[i];
	}
	qsort(index, n, sizeof(*index), compare_keys);
	*ret_n = n;
	return index;
}

/* *ret_what: what is wrong with it, in words, or NULL. */
static int compare_one(const Said *said, MeantRow *const *index, size_t n, char **ret_what)
{
	const MeantRow key = { .key = said->key }, *const pointer = &key;
	MeantRow *const *match = bsearch(&pointer, index, n, sizeof(*index), compare_keys);
	_cleanup_free_ char *what = NULL;
	bool twice;
	Said meant;
	int r;

	if (!match)
		return (*ret_what = strdup("was not meant to be there")) ? 0 : -ENOMEM;
	twice = (*match)->state != MEANT_MISSING;
	r = said_read((*match)->message, &meant);
	if (r >= 0)
		r = said_compare(said, &meant, &what);
	if (r < 0)
		return r;
	(*match)->state = r > 0 && (*match)->state != MEANT_DIFFERENT ? MEANT_IN_FORCE : MEANT_DIFFERENT;
	if (!twice)
		*ret_what = TAKE_PTR(what);
	else if (asprintf(ret_what, "is there twice%s%s", what ? ": the second " : "", what ?: "") < 0)
		return -ENOMEM;
	return 0;
}

int meant_compare(Meant *meant, const JailDevices *devices, const MessageList *found, char **ret_problem)
{
	_cleanup_free_ MeantRow **index = NULL;
	_cleanup_free_ char *problem = NULL;
	const struct nlmsghdr *header;
	size_t n, offset = 0;
	bool differs = false, rules6 = false;
	Said said;
	int r = 0;

	index = index_new(meant, &n);
	if (!index)
		return -ENOMEM;
	while (r >= 0 && (header = message_list_next(found, &offset))) {
		_cleanup_free_ char *what = NULL, *name = NULL;

		if (header->nlmsg_type == RTM_NEWLINK)
			continue;
		r = said_read(header, &said);
		if (r < 0)
			return r;
		rules6 = rules6 || (said.key.type == RTM_NEWRULE && said.key.family == AF_INET6);
		if (said_is_kernels(&said, devices))
			continue;
		r = compare_one(&said, index, n, &what);
		if (r < 0 || !what || differs)
			continue;
		differs = true;
		r = said_name(&said, &name) ?: refuse(&problem, 0, "%s %s", name, what);
	}
	for (size_t i = 0; r >= 0 && !differs && i < n; i++) {
		_cleanup_free_ char *name = NULL;
		bool optional = index[i]->optional && !(rules6 && index[i]->key.type == RTM_NEWRULE);

		if (index[i]->state != MEANT_MISSING || optional)
			continue;
		differs = true;
		r = said_read(index[i]->message, &said) ?: said_name(&said, &name);
		if (r >= 0)
			r = refuse(&problem, 0, "%s is missing", name);
	}
	if (r < 0)
		return r;
	return differs ? refuse(ret_problem, -EREMCHG, "%s", problem ?: strerror(ENOMEM)) : 0;
}

static const char *shown_state(const MeantRow *row, bool known)
{
	static const char *const names[] = {
		[MEANT_MISSING] = "missing",
		[MEANT_DIFFERENT] = "different",
		[MEANT_IN_FORCE] = "in force",
	};

	return row->left_out ? "left out" : known ? names[row->state] : "unknown";
}

static RouteShown show_own(const MeantRow *row, bool known)
{
	uint32_t address;

	memcpy(&address, row->key.address, sizeof(address));
	return (RouteShown){ .address = ntohl(address),
			     .length = row->key.length,
			     .verdict = ROUTE_ALLOW,
			     .device = row->kind == MEANT_FAR_END ? ROUTES_JAIL_DEVICE : "lo",
			     .reason = row->reason,
			     .state = shown_state(row, known) };
}

ssize_t meant_show(const Meant *meant, bool known, RouteShown **ret)
{
	_cleanup_free_ RouteShown *shown = calloc(meant->n + 1, sizeof(*shown));
	size_t n = 0;

	if (!shown)
		return -ENOMEM;
	for (size_t i = 0; i < meant->n; i++)
		if (meant->rows[i].reason)
			shown[n++] = show_own(&meant->rows[i], known);
	for (size_t i = 0, at = n; i < meant->n; i++) {
		const MeantRow *row = &meant->rows[i];

		if (!row->row)
			continue;
		if (row->kind != MEANT_LEDGER) {
			shown[n++] = (RouteShown){ .address = row->row->address,
						   .length = row->row->length,
						   .verdict = row->row->verdict,
						   .device = meant_is_opening(row) ? ROUTES_JAIL_DEVICE : "",
						   .reason = row->row->reason,
						   .state = shown_state(row, known) };
			continue;
		}
		/* In the order of the table too, behind all of it. */
		while (shown[at].verdict != ROUTE_DENY || shown[at].reason != row->row->reason ||
		       shown[at].address != row->row->address || shown[at].length != row->row->length)
			at++;
		shown[at].device = ROUTES_LEDGER_DEVICE;
		if (known && row->state < MEANT_IN_FORCE && streq(shown[at].state, "in force"))
			shown[at].state = shown_state(row, known);
	}
	*ret = TAKE_PTR(shown);
	return (ssize_t)n;
}
