/* SPDX-License-Identifier: MIT */
#include "service/net/denial.h"
#include "service/net/link.h"
#include "service/net/public-address.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

typedef union DumpBody {
	struct ifinfomsg link;
	struct ifaddrmsg address;
	struct ndmsg neighbour;
	struct rtmsg route;
	struct fib_rule_hdr rule;
	struct nhmsg nexthop;
} DumpBody;

/*
 * Links come first and last would do as well: nobody but us may change this namespace, and a change in
 * between shows in the dump that follows or in the watching socket.
 */
static const struct {
	const char *what;
	uint16_t type;
	size_t size;
	DumpBody body;
	bool optional; /* a kernel without the family or the objects holds none */
} dumps[] = {
	{ "links", RTM_GETLINK, sizeof(struct ifinfomsg) },
	{ "addresses", RTM_GETADDR, sizeof(struct ifaddrmsg) },
	{ "neighbours", RTM_GETNEIGH, sizeof(struct ndmsg) },
	{ "proxies", RTM_GETNEIGH, sizeof(struct ndmsg), { .neighbour.ndm_flags = NTF_PROXY } },
	{ "nexthop objects", RTM_GETNEXTHOP, sizeof(struct nhmsg), .optional = true },
	{ "rules", RTM_GETRULE, sizeof(struct fib_rule_hdr), { .rule.family = AF_INET } },
	{ "rules", RTM_GETRULE, sizeof(struct fib_rule_hdr), { .rule.family = AF_INET6 }, .optional = true },
	{ "routes", RTM_GETROUTE, sizeof(struct rtmsg), { .route.rtm_family = AF_INET6 }, .optional = true },
	{ "routes", RTM_GETROUTE, sizeof(struct rtmsg), { .route.rtm_family = AF_INET } },
};

void read_back_done(ReadBack *state)
{
	message_list_done(&state->messages);
}

static uint32_t number_of(struct nl_addr *address)
{
	uint32_t number = 0;

	if (address && nl_addr_get_len(address) == sizeof(number))
		memcpy(&number, nl_addr_get_binary_addr(address), sizeof(number));
	return ntohl(number);
}

void read_back_lookup(Netlink *netlink, uint32_t address, ReadBack *state)
{
	struct {
		struct rtmsg body;
		struct rtattr attribute;
		uint32_t address;
	} question = { { .rtm_family = AF_INET, .rtm_dst_len = 32 },
		       { RTA_LENGTH(sizeof(address)), RTA_DST },
		       htonl(address) };
	_cleanup_(message_list_done) MessageList list = { 0 };
	const struct nlmsghdr *header;
	struct rtnl_route *route = NULL;
	struct rtnl_nexthop *hop;
	size_t offset = 0;

	state->lookup =
		netlink_ask(netlink, netlink_request(RTM_GETROUTE, 0, &question, sizeof(question)), &list);
	if (state->lookup < 0)
		return;
	header = message_list_next(&list, &offset);
	if (!header || rtnl_route_parse((struct nlmsghdr *)header, &route) < 0) {
		state->lookup = -EBADMSG;
		return;
	}
	hop = rtnl_route_get_nnexthops(route) == 1 ? rtnl_route_nexthop_n(route, 0) : NULL;
	state->type =
		rtnl_route_get_family(route) == AF_INET ? (uint8_t)rtnl_route_get_type(route) : RTN_UNSPEC;
	state->device = hop ? (uint32_t)rtnl_route_nh_get_ifindex(hop) : 0;
	state->gateway = hop ? number_of(rtnl_route_nh_get_gateway(hop)) : 0;
	state->source = number_of(rtnl_route_get_pref_src(route));
	rtnl_route_put(route);
}

int read_back_gather(const Denial *denial, ReadBack *ret, char **ret_problem)
{
	_cleanup_(read_back_done) ReadBack state = { 0 };
	int r;

	for (size_t i = 0; i < ELEMENTSOF(dumps); i++) {
		r = netlink_dump(denial->netlink, dumps[i].type, &dumps[i].body, dumps[i].size,
				 &state.messages);
		if (r < 0 && !(dumps[i].optional && (r == -EOPNOTSUPP || r == -EAFNOSUPPORT)))
			return refuse(ret_problem, r, "cannot read the %s of the jail's network back: %s",
				      dumps[i].what, strerror(-r));
	}
	r = public_address_find(denial->routes, &state.public_address);
	if (r < 0)
		return refuse(ret_problem, r, "the denied ranges leave no public address");
	read_back_lookup(denial->netlink, state.public_address, &state);

	*ret = state;
	state = (ReadBack){ 0 };
	return 0;
}

static int check_lookup(const ReadBack *state, const Denial *denial, char **ret_problem)
{
	char name[ADDRESS_TEXT_MAX];

	ipv4_to_text(state->public_address, 32, name);
	if (state->lookup < 0)
		return refuse(ret_problem, -EREMCHG, "the public address %s has no route: %s", name,
			      strerror(-state->lookup));
	if (state->type != RTN_UNICAST || state->device != denial->devices.jail ||
	    state->gateway != ROUTES_FAR_END || state->source != ROUTES_SOURCE)
		return refuse(ret_problem, -EREMCHG,
			      "the public address %s is not reached by way of " ROUTES_JAIL_DEVICE, name);
	return 0;
}

int read_back_check(const ReadBack *state, Denial *denial, char **ret_problem)
{
	int r = link_compare(&denial->devices, &state->messages, ret_problem);

	if (r >= 0)
		r = meant_compare(&denial->meant, &denial->devices, &state->messages, ret_problem);
	return r < 0 ? r : check_lookup(state, denial, ret_problem);
}

int denial_read_back(Denial *denial, char **ret_problem)
{
	_cleanup_(read_back_done) ReadBack state = { 0 };
	int r = read_back_gather(denial, &state, ret_problem);

	if (r < 0)
		return r;
	r = read_back_check(&state, denial, ret_problem);
	if (r == -EBADMSG)
		return refuse(ret_problem, r,
			      "the kernel's description of the jail's network cannot be understood");
	return r;
}

ssize_t denial_show(Denial *denial, RouteShown **ret)
{
	const struct rtmsg body = { .rtm_family = AF_INET };
	_cleanup_(message_list_done) MessageList list = { 0 };
	int r;

	r = netlink_dump(denial->netlink, RTM_GETROUTE, &body, sizeof(body), &list);
	if (r >= 0)
		r = meant_compare(&denial->meant, &denial->devices, &list, NULL);
	return r == -ENOMEM ? r : meant_show(&denial->meant, r >= 0 || r == -EREMCHG, ret);
}
