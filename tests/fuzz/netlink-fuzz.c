/* SPDX-License-Identifier: MIT */

/*
 * A datagram of rtnetlink messages, through every parser, through the read-back's judgement and through the
 * description of the host's network. Only the kernel writes them, but nothing of ours may depend on that.
 */

#include <assert.h>
#include <sys/socket.h>

#include "service/net/address.h"
#include "service/net/host-network.h"
#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/nexthop.h"
#include "service/net/read-back.h"
#include "service/net/rule.h"
#include "service/net/unix-sockets.h"
#include "tests/fuzz/fuzz.h"

static const RouteRow rows[] = {
	{ 0x0a000000, 8, ROUTE_DENY, NULL },
	{ 0xc0a80000, 16, ROUTE_DENY, NULL },
	{ 0x0a010203, 32, ROUTE_ALLOW, NULL },
	{ 0, 0, ROUTE_INTERNET, NULL },
};

static void parse(const struct nlmsghdr *header, ReadBack *state)
{
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	char text[ADDRESS_TEXT_MAX];
	MessageList *list = NULL;
	Neighbour neighbour;
	Address address;
	Nexthop nexthop;
	Route route;
	Link link;
	Rule rule;

	(void)unix_sockets_take(&sockets, header);
	if (link_parse(header, &link) >= 0) {
		(void)link_is_fallback(&link);
		list = &state->links;
	} else if (address_decode(header, &address) >= 0) {
		assert(strlen(address_to_text(&address, text)) < sizeof(text));
		list = &state->addresses;
	} else if (neighbour_decode(header, &neighbour) >= 0) {
		assert(strlen(neighbour_to_text(&neighbour, text)) < sizeof(text));
		(void)neighbour_is_harmless(&neighbour);
		list = &state->neighbours;
	} else if (route_decode(header, &route) >= 0) {
		assert(strlen(route_to_text(&route, text)) < sizeof(text));
		list = route.family == AF_INET ? &state->routes : &state->routes6;
		state->public_route = route;
		state->public_route.multipath = state->public_route.via = NULL;
	} else if (rule_decode(header, &rule) >= 0)
		list = rule.family == AF_INET ? &state->rules : &state->rules6;
	else if (nexthop_decode(header, &nexthop) >= 0)
		list = &state->nexthops;
	if (list)
		assert(message_list_add(list, header) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const RouteTable routes = { .rows = (RouteRow *)rows, .n_rows = ELEMENTSOF(rows) };
	const Denial denial = { .routes = &routes, .lo_index = 1, .jail_index = 2 };
	_cleanup_(read_back_done) ReadBack state = { .public_address = 0xcb007105 };
	_cleanup_free_ char *problem = NULL;
	HostNetwork host = { 0 };
	const struct nlmsghdr *header;
	size_t offset = 0;
	int r;

	while (message_walk(data, size, &offset, &header) > 0) {
		assert(offset <= size);
		parse(header, &state);
	}

	r = read_back_check(&state, &denial, &problem);
	assert(r <= 0);
	assert((r == -EREMCHG) == (problem != NULL));
	if (host_network_collect(&state.addresses, &state.routes, &state.nexthops, &host) >= 0) {
		free(host.subnets);
		free(host.addresses);
		free(host.gateways);
	}
	return 0;
}
