/* SPDX-License-Identifier: MIT */

/*
 * A datagram of rtnetlink messages, through every parser, through the read-back's judgement and through the
 * description of the host's network. Only the kernel writes them, but nothing of ours may depend on that.
 */

#include <assert.h>
#include <sys/socket.h>

#include "service/net/denial.h"
#include "service/net/host.h"
#include "service/net/link.h"
#include "service/net/unix-sockets.h"
#include "tests/fuzz/fuzz.h"

static const RouteRow rows[] = {
	{ 0x0a000000, 8, ROUTE_DENY, NULL },
	{ 0xc0a80000, 16, ROUTE_DENY, NULL },
	{ 0x0a010203, 32, ROUTE_ALLOW, NULL },
	{ 0, 0, ROUTE_INTERNET, NULL },
};

typedef struct Lists {
	ReadBack state;
	MessageList addresses, routes, nexthops;
} Lists;

static const JailDevices devices = { .lo = 1, .jail = 2 };

static void parse(const struct nlmsghdr *header, Lists *lists)
{
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	_cleanup_free_ char *name = NULL;
	MessageList *list = NULL;
	Said said;
	Link link;

	(void)unix_sockets_take(&sockets, header);
	if (said_read(header, &said) >= 0) {
		(void)said_is_kernels(&said, &devices);
		assert(said_name(&said, &name) == 0);
		list = header->nlmsg_type == RTM_NEWADDR      ? &lists->addresses
		       : header->nlmsg_type == RTM_NEWROUTE   ? &lists->routes
		       : header->nlmsg_type == RTM_NEWNEXTHOP ? &lists->nexthops
							      : NULL;
	} else if (link_parse(header, &link) >= 0)
		(void)link_part(&link, &devices);
	else
		return;
	assert(message_list_add(&lists->state.messages, header) == 0);
	if (list)
		assert(message_list_add(list, header) == 0);
}

static void lists_done(Lists *lists)
{
	read_back_done(&lists->state);
	message_list_done(&lists->addresses);
	message_list_done(&lists->routes);
	message_list_done(&lists->nexthops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const RouteTable routes = { .rows = (RouteRow *)rows, .n_rows = ELEMENTSOF(rows) };
	Denial denial = { .routes = &routes, .devices = devices };
	_cleanup_(lists_done) Lists lists = { .state.public_address = 0xcb007105 };
	_cleanup_free_ char *problem = NULL;
	HostNetwork host = { 0 };
	const struct nlmsghdr *header;
	size_t offset = 0;
	int r;

	assert(meant_make(&routes, &devices, &denial.meant) == 0);
	while (message_walk(data, size, &offset, &header) > 0) {
		assert(offset <= size);
		parse(header, &lists);
	}

	r = read_back_check(&lists.state, &denial, &problem);
	assert(r <= 0);
	assert((r == -EREMCHG) == (problem != NULL));
	meant_done(&denial.meant);
	if (host_network_collect(&lists.addresses, &lists.routes, &lists.nexthops, &host) >= 0) {
		free(host.subnets);
		free(host.addresses);
		free(host.gateways);
	}
	return 0;
}
