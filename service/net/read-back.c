/* SPDX-License-Identifier: MIT */
#include "service/net/read-back.h"

#include "service/net/public-address.h"

#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>

void read_back_done(ReadBack *state)
{
	message_list_done(&state->links);
	message_list_done(&state->addresses);
	message_list_done(&state->neighbours);
	message_list_done(&state->proxies);
	message_list_done(&state->routes);
	message_list_done(&state->routes6);
	message_list_done(&state->rules);
	message_list_done(&state->rules6);
	message_list_done(&state->nexthops);
}

typedef struct ReadBackDump {
	const char *what;
	uint16_t type;
	size_t list; /* offset in ReadBack */
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct ndmsg neighbour;
		struct rtmsg route;
		struct fib_rule_hdr rule;
		struct nhmsg nexthop;
	} body;
	size_t body_size;
	bool optional; /* a kernel without the family or the objects holds none */
} ReadBackDump;

#define DUMP(field) .list = offsetof(ReadBack, field), .what = #field

/*
 * Links come first and last would do as well: nobody but us may change this namespace, and a change in
 * between shows in the dump that follows or in the watching socket.
 */
static const ReadBackDump dumps[] = {
	{ DUMP(links), .type = RTM_GETLINK, .body_size = sizeof(struct ifinfomsg) },
	{ DUMP(addresses), .type = RTM_GETADDR, .body_size = sizeof(struct ifaddrmsg) },
	{ DUMP(neighbours), .type = RTM_GETNEIGH, .body_size = sizeof(struct ndmsg) },
	{ DUMP(proxies), .type = RTM_GETNEIGH, .body.neighbour = { .ndm_flags = NTF_PROXY },
	  .body_size = sizeof(struct ndmsg) },
	{ DUMP(nexthops), .type = RTM_GETNEXTHOP, .body_size = sizeof(struct nhmsg), .optional = true },
	{ DUMP(rules), .type = RTM_GETRULE, .body.rule = { .family = AF_INET },
	  .body_size = sizeof(struct fib_rule_hdr) },
	{ DUMP(rules6), .type = RTM_GETRULE, .body.rule = { .family = AF_INET6 },
	  .body_size = sizeof(struct fib_rule_hdr), .optional = true },
	{ DUMP(routes6), .type = RTM_GETROUTE, .body.route = { .rtm_family = AF_INET6 },
	  .body_size = sizeof(struct rtmsg), .optional = true },
	{ DUMP(routes), .type = RTM_GETROUTE, .body.route = { .rtm_family = AF_INET },
	  .body_size = sizeof(struct rtmsg) },
};

int read_back_gather(Netlink *netlink, const RouteTable *routes, ReadBack *ret, char **ret_problem)
{
	_cleanup_(read_back_done) ReadBack state = { 0 };
	int r;

	for (size_t i = 0; i < ELEMENTSOF(dumps); i++) {
		const ReadBackDump *dump = &dumps[i];
		MessageList *list = (void *)((uint8_t *)&state + dump->list);

		r = netlink_dump(netlink, dump->type, &dump->body, dump->body_size, list);
		if (r < 0 && !(dump->optional && (r == -EOPNOTSUPP || r == -EAFNOSUPPORT)))
			return refuse(ret_problem, r, "cannot read the %s of the jail's network back: %s",
				      dump->what, strerror(-r));
	}

	r = public_address_find(routes, &state.public_address);
	if (r < 0)
		return refuse(ret_problem, r, "the denied ranges leave no public address");
	state.lookup = route_lookup(netlink, state.public_address, &state.public_route);

	*ret = state;
	state = (ReadBack){ 0 };
	return 0;
}

int denial_read_back(Denial *denial, char **ret_problem)
{
	_cleanup_(read_back_done) ReadBack state = { 0 };
	int r = read_back_gather(denial->netlink, denial->routes, &state, ret_problem);

	if (r < 0)
		return r;
	r = read_back_check(&state, denial, ret_problem);
	if (r == -EBADMSG)
		return refuse(ret_problem, r,
			      "the kernel's description of the jail's network cannot be understood");
	return r;
}
