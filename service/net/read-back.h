/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the namespace holds, as the kernel dumps it, and the judgement of it. Gathering asks the kernel;
 * checking is pure, so that tests and fuzzing can give it any message.
 */

#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/route.h"

typedef struct ReadBack {
	MessageList links, addresses, neighbours, proxies, routes, routes6, rules, rules6, nexthops;
	uint32_t public_address;
	int lookup; /* 0, or how the kernel refused the route to public_address */
	Route public_route;
} ReadBack;

void read_back_done(ReadBack *state);
/* Return: 0; a negative errno with *ret_problem naming what could not be read. */
int read_back_gather(Netlink *netlink, const RouteTable *routes, ReadBack *ret, char **ret_problem);
/*
 * Uses routes, left_out, ipv6_off and the indexes of denial, nothing else of it.
 * Return: 0; -EREMCHG with *ret_problem; -EBADMSG for a message that no kernel writes; -ENOMEM.
 */
int read_back_check(const ReadBack *state, const Denial *denial, char **ret_problem);

/* Parts of read_back_check(), in read-back-check.c and read-back-routes.c. */
int read_back_check_routes(const ReadBack *state, const Denial *denial, char **ret_problem);
/* One device by itself. Return: 0; -EREMCHG with *ret_problem. */
int read_back_check_link(const Link *link, const Denial *denial, char **ret_problem);
/* An entry that the kernel makes and drops by itself, and that leads nowhere? */
bool read_back_neighbour_is_kernels(const Neighbour *neighbour, const Denial *denial);
