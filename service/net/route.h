/* SPDX-License-Identifier: MIT */
#pragma once

/* Routes: the rows of the RouteTable as the kernel is to hold them, and what it says that it holds. */

#include "service/net/denial.h"
#include "service/net/netlink.h"

typedef struct Route {
	uint8_t family, type, scope, protocol, tos, length, source_length;
	uint32_t table, metric, device, flags; /* RTM_F_ and RTNH_F_ */
	uint32_t destination, gateway, source; /* AF_INET, host order; source: the address we send from */
	uint8_t bytes[16];                     /* AF_INET6 destination */
	bool has_gateway, has_source;
	uint16_t attribute; /* the first attribute that no route of ours has, or 0 */
	/* For readers of foreign routes; they point into the message. */
	const struct rtattr *multipath, *via;
	uint32_t nexthop_id;
} Route;

/* Return: 0; -EAFNOSUPPORT for another family; -EBADMSG. */
int route_decode(const struct nlmsghdr *header, Route *ret);
/* "A.B.C.D/LEN". Return: buffer. */
const char *route_to_text(const Route *route, char buffer[static ADDRESS_TEXT_MAX]);
/* "multipath", "nexthop object", ... or "attribute N". Return: buffer, or a constant. */
#define ROUTE_ATTRIBUTE_TEXT_MAX 32u
const char *route_attribute_to_string(uint16_t attribute, char buffer[static ROUTE_ATTRIBUTE_TEXT_MAX]);

/* The route that stands for a row. */
Route route_of_row(const RouteRow *row, uint32_t jail_index);
/* By table, destination, length and metric: what tells one route from another. Return: as for qsort(3). */
int route_compare_key(const Route *a, const Route *b);
/*
 * Two routes of one key, everything else. Return: 0 when equal; -EREMCHG with *ret_problem naming the first
 * difference; -ENOMEM.
 */
int route_check(const Route *found, const Route *meant, char **ret_problem);

int route_step_prohibits(Denial *denial, char **ret_problem);
int route_step_forwarder(Denial *denial, char **ret_problem);
int route_step_allow_ip(Denial *denial, char **ret_problem);
int route_step_default(Denial *denial, char **ret_problem);

/*
 * The far end's own address belongs to the jail: "local 192.0.0.1 dev jail0". A socket that is bound to jail0
 * would otherwise take it for a neighbour on the link, find the one link address that passes the filter, and
 * so send to 192.0.0.1 of the host's network. The kernel refuses a gateway that is a local address and looks
 * for those in the local table alone (fib_check_nh_v4_gw() of the kernel), so this route stands in the main
 * one: there it need never be taken away, also when routes by the far end are added while an agent runs.
 * rule_step_tables() parts the two tables before.
 */
Route route_of_far_end(uint32_t jail_index);
/* A request about a route: RTM_NEWROUTE (which must not be there yet) or RTM_DELROUTE. NULL without memory.
 */
struct nl_msg *route_message(uint16_t type, const Route *route);
int route_step_far_end(Denial *denial, char **ret_problem);

/*
 * Ask for the route to an address (host order). Return: 0 with *ret, whose pointers are NULL; the kernel's
 * own refusal (-EACCES for a prohibit); another negative errno.
 */
int route_lookup(Netlink *netlink, uint32_t address, Route *ret);
