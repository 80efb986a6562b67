/* SPDX-License-Identifier: MIT */
#include "service/net/route.h"

#include "service/link/pack.h"

#define ATTRIBUTE_NAME(type, name) [type] = name
static const char *const attribute_names[] = {
	ATTRIBUTE_NAME(RTA_SRC, "a source prefix"),
	ATTRIBUTE_NAME(RTA_IIF, "an input device"),
	ATTRIBUTE_NAME(RTA_METRICS, "path metrics"),
	ATTRIBUTE_NAME(RTA_MULTIPATH, "several next hops"),
	ATTRIBUTE_NAME(RTA_FLOW, "a realm"),
	ATTRIBUTE_NAME(RTA_MARK, "a mark"),
	ATTRIBUTE_NAME(RTA_VIA, "a next hop of another family"),
	ATTRIBUTE_NAME(RTA_NEWDST, "a new destination"),
	ATTRIBUTE_NAME(RTA_ENCAP_TYPE, "an encapsulation"),
	ATTRIBUTE_NAME(RTA_ENCAP, "an encapsulation"),
	ATTRIBUTE_NAME(RTA_EXPIRES, "an expiry"),
	ATTRIBUTE_NAME(RTA_NH_ID, "a nexthop object"),
};

const char *route_attribute_to_string(uint16_t attribute, char buffer[static ROUTE_ATTRIBUTE_TEXT_MAX])
{
	if (attribute < ELEMENTSOF(attribute_names) && attribute_names[attribute])
		return attribute_names[attribute];
	snprintf(buffer, ROUTE_ATTRIBUTE_TEXT_MAX, "the attribute %u", attribute);
	return buffer;
}

static int decode_ipv4(const struct rtattr **slots, Route *route)
{
	if (route->length > 32 || (route->length > 0 && !slots[RTA_DST]) ||
	    attribute_ipv4(slots[RTA_DST], &route->destination) < 0 ||
	    attribute_ipv4(slots[RTA_GATEWAY], &route->gateway) < 0 ||
	    attribute_ipv4(slots[RTA_PREFSRC], &route->source) < 0)
		return -EBADMSG;
	return 0;
}

static int decode_ipv6(const struct rtattr **slots, Route *route)
{
	if (route->length > 128 || (route->length > 0 && !slots[RTA_DST]) ||
	    attribute_bytes(slots[RTA_DST], route->bytes, sizeof(route->bytes)) < 0)
		return -EBADMSG;
	return 0;
}

/* of_ipv6: or an answer to a look-up, which has more than a route of IPv4 */
static bool is_expected(uint16_t attribute, bool of_ipv6)
{
	switch (attribute) {
	case RTA_DST:
	case RTA_OIF:
	case RTA_GATEWAY:
	case RTA_PREFSRC:
	case RTA_PRIORITY:
	case RTA_TABLE:
		return true;
	case RTA_CACHEINFO: /* counters */
	case RTA_PREF:      /* IPv6 router preference */
	case RTA_UID:       /* echoed by look-ups */
		return of_ipv6;
	default:
		return false;
	}
}

int route_decode(const struct nlmsghdr *header, Route *ret)
{
	Route route = { 0 };
	const struct rtattr *slots[RTA_MAX + 1];
	const struct rtmsg *body;
	const void *attributes;
	size_t size;
	int r;

	if (header->nlmsg_type != RTM_NEWROUTE && header->nlmsg_type != RTM_DELROUTE)
		return -EBADMSG;
	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || attributes_sort(attributes, size, slots, ELEMENTSOF(slots), &route.attribute) < 0)
		return -EBADMSG;

	route.family = body->rtm_family;
	route.type = body->rtm_type;
	route.scope = body->rtm_scope;
	route.protocol = body->rtm_protocol;
	route.tos = body->rtm_tos;
	route.length = body->rtm_dst_len;
	route.source_length = body->rtm_src_len;
	route.flags = body->rtm_flags;
	route.table = body->rtm_table;
	if (attribute_u32(slots[RTA_TABLE], &route.table) < 0 ||
	    attribute_u32(slots[RTA_PRIORITY], &route.metric) < 0 ||
	    attribute_u32(slots[RTA_OIF], &route.device) < 0 ||
	    attribute_u32(slots[RTA_NH_ID], &route.nexthop_id) < 0)
		return -EBADMSG;

	if (route.family == AF_INET)
		r = decode_ipv4(slots, &route);
	else if (route.family == AF_INET6)
		r = decode_ipv6(slots, &route);
	else
		r = -EAFNOSUPPORT;
	if (r < 0)
		return r;

	route.has_gateway = slots[RTA_GATEWAY];
	route.has_source = slots[RTA_PREFSRC];
	route.multipath = slots[RTA_MULTIPATH];
	route.via = slots[RTA_VIA];
	for (uint16_t i = 0; i < ELEMENTSOF(slots) && route.attribute == 0; i++)
		if (slots[i] && !is_expected(i, route.family == AF_INET6 || (route.flags & RTM_F_CLONED)))
			route.attribute = i;
	*ret = route;
	return 0;
}

const char *route_to_text(const Route *route, char buffer[static ADDRESS_TEXT_MAX])
{
	if (route->family == AF_INET6)
		return ipv6_to_text(route->bytes, route->length, buffer);
	return ipv4_to_text(route->destination, route->length, buffer);
}

Route route_of_row(const RouteRow *row, uint32_t jail_index)
{
	Route route = {
		.family = AF_INET,
		.type = RTN_PROHIBIT,
		.scope = RT_SCOPE_UNIVERSE,
		.protocol = RTPROT_STATIC,
		.table = RT_TABLE_MAIN,
		.metric = ROUTES_DENY_METRIC,
		.destination = row->address,
		.length = row->length,
	};

	if (row->verdict == ROUTE_DENY)
		return route;

	route.type = RTN_UNICAST;
	route.metric = 0;
	route.device = jail_index;
	/* The far end lies inside a prohibited range, so nothing else would make it a valid gateway. */
	route.flags = RTNH_F_ONLINK;
	route.gateway = ROUTES_FAR_END;
	route.source = ROUTES_SOURCE;
	route.has_gateway = route.has_source = true;
	return route;
}

int route_compare_key(const Route *a, const Route *b)
{
	if (a->table != b->table)
		return a->table < b->table ? -1 : 1;
	if (a->destination != b->destination)
		return a->destination < b->destination ? -1 : 1;
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	return 0;
}

int route_check(const Route *found, const Route *meant, char **ret_problem)
{
	/* The wire comes and goes: no part of what was meant. */
	const uint32_t loose = RTNH_F_LINKDOWN;
	const char *what = NULL;
	char name[ADDRESS_TEXT_MAX], attribute[ROUTE_ATTRIBUTE_TEXT_MAX];

	if (found->attribute != 0)
		return refuse(ret_problem, -EREMCHG, "the route to %s has %s", route_to_text(found, name),
			      route_attribute_to_string(found->attribute, attribute));
	if (found->type != meant->type)
		what = "type";
	else if (found->scope != meant->scope)
		what = "scope";
	else if (found->tos != meant->tos)
		what = "type of service";
	else if (found->source_length != meant->source_length)
		what = "source prefix";
	else if (found->device != meant->device)
		what = "device";
	else if (found->has_gateway != meant->has_gateway || found->gateway != meant->gateway)
		what = "gateway";
	else if (found->has_source != meant->has_source || found->source != meant->source)
		what = "source";
	else if (found->protocol != meant->protocol)
		what = "protocol";
	else if ((found->flags & ~loose) != (meant->flags & ~loose))
		what = "set of flags";
	if (what)
		return refuse(ret_problem, -EREMCHG,
			      "the route to %s in table %u has another %s than was meant",
			      route_to_text(found, name), found->table, what);
	return 0;
}

Route route_of_far_end(uint32_t jail_index)
{
	return (Route){
		.family = AF_INET,
		.type = RTN_LOCAL,
		.scope = RT_SCOPE_HOST,
		.protocol = RTPROT_STATIC,
		.table = RT_TABLE_MAIN,
		.destination = ROUTES_FAR_END,
		.length = 32,
		.device = jail_index,
	};
}

struct nl_msg *route_message(uint16_t type, const Route *route)
{
	struct rtmsg body = {
		.rtm_family = AF_INET,
		.rtm_dst_len = route->length,
		.rtm_table = (uint8_t)route->table,
		.rtm_protocol = route->protocol,
		.rtm_scope = route->scope,
		.rtm_type = route->type,
		.rtm_flags = route->flags,
	};
	_cleanup_(nl_msg_freep) struct nl_msg *message = netlink_message(
		type, type == RTM_NEWROUTE ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));

	if (!message || netlink_put_ipv4(message, RTA_DST, route->destination) < 0)
		return NULL;
	if (route->metric != 0 && netlink_put_u32(message, RTA_PRIORITY, route->metric) < 0)
		return NULL;
	if (route->device != 0 && netlink_put_u32(message, RTA_OIF, route->device) < 0)
		return NULL;
	if (route->has_gateway && netlink_put_ipv4(message, RTA_GATEWAY, route->gateway) < 0)
		return NULL;
	if (route->has_source && netlink_put_ipv4(message, RTA_PREFSRC, route->source) < 0)
		return NULL;
	return TAKE_PTR(message);
}

/* A row that may fail: remember that it is not there, and say so. */
static int leave_out(Denial *denial, size_t index, const NetlinkAnswer *answer)
{
	const RouteRow *row = &denial->routes->rows[index];
	char name[ADDRESS_TEXT_MAX];

	denial->left_out[index] = true;
	return strings_appendf(&denial->warnings, "%s %s is not reachable: %s",
			       row->verdict == ROUTE_DNS ? "the name server" : "allow-ip",
			       ipv4_to_text(row->address, row->length, name),
			       answer->text ?: strerror(-answer->error));
}

/* Program every row of one verdict. soft: one that fails is a warning. */
static int program_rows(Denial *denial, RouteVerdict verdict, bool soft, char **ret_problem)
{
	const RouteTable *routes = denial->routes;
	struct nl_msg **messages = calloc(routes->n_rows + 1, sizeof(*messages));
	NetlinkAnswer *answers = calloc(routes->n_rows + 1, sizeof(*answers));
	size_t *rows = calloc(routes->n_rows + 1, sizeof(*rows)), n = 0;
	Route route;
	int r = messages && answers && rows ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < routes->n_rows; i++) {
		if (routes->rows[i].verdict != verdict)
			continue;
		route = route_of_row(&routes->rows[i], (uint32_t)denial->jail_index);
		messages[n] = route_message(RTM_NEWROUTE, &route);
		if (!messages[n])
			r = -ENOMEM;
		rows[n++] = i;
	}
	if (r >= 0) {
		r = netlink_program(denial->netlink, messages, n, answers);
		if (r < 0)
			r = refuse(ret_problem, r, "the kernel does not take routes: %s", strerror(-r));
	}
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const RouteRow *row = &routes->rows[rows[i]];
		char name[ADDRESS_TEXT_MAX];

		if (answers[i].error == 0)
			continue;
		if (soft)
			r = leave_out(denial, rows[i], &answers[i]);
		else
			r = refuse(ret_problem, answers[i].error, "cannot add the route to %s (%s): %s",
				   ipv4_to_text(row->address, row->length, name), row->reason ?: "",
				   answers[i].text ?: strerror(-answers[i].error));
	}

	for (size_t i = 0; messages && i < n; i++)
		nl_msg_freep(&messages[i]);
	free(messages);
	netlink_answers_free(answers, routes->n_rows);
	free(rows);
	return r;
}

int route_step_prohibits(Denial *denial, char **ret_problem)
{
	return program_rows(denial, ROUTE_DENY, false, ret_problem);
}

int route_step_forwarder(Denial *denial, char **ret_problem)
{
	return program_rows(denial, ROUTE_DNS, true, ret_problem);
}

int route_step_allow_ip(Denial *denial, char **ret_problem)
{
	return program_rows(denial, ROUTE_ALLOW, true, ret_problem);
}

int route_step_default(Denial *denial, char **ret_problem)
{
	return program_rows(denial, ROUTE_INTERNET, false, ret_problem);
}

int route_step_far_end(Denial *denial, char **ret_problem)
{
	Route route = route_of_far_end((uint32_t)denial->jail_index);
	_cleanup_(nl_msg_freep) struct nl_msg *message = route_message(RTM_NEWROUTE, &route);
	_cleanup_free_ char *text = NULL;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_program_one(denial->netlink, message, &text);
	if (r < 0)
		return refuse(ret_problem, r, "cannot keep the far end's address in the jail: %s",
			      text ?: strerror(-r));
	return 0;
}

int route_lookup(Netlink *netlink, uint32_t address, Route *ret)
{
	struct rtmsg body = { .rtm_family = AF_INET, .rtm_dst_len = 32 };
	_cleanup_(nl_msg_freep) struct nl_msg *message =
		netlink_message(RTM_GETROUTE, 0, &body, sizeof(body));
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct nlmsghdr *header;
	size_t offset = 0;
	Route route;
	int r;

	if (!message)
		return -ENOMEM;
	r = netlink_put_ipv4(message, RTA_DST, address);
	if (r >= 0)
		r = netlink_ask(netlink, message, &list);
	if (r < 0)
		return r;
	header = message_list_next(&list, &offset);
	r = header ? route_decode(header, &route) : -EBADMSG;
	if (r < 0)
		return r;
	route.multipath = route.via = NULL;
	*ret = route;
	return 0;
}
