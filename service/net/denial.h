/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Programs the denial into the holder's namespace through the passed sockets. ORDER IS SECURITY: loopback up,
 * address, filter, far end, neighbour, prohibits, the ledger's routes, forwarder, allow-ip, default; the
 * default is last, so that nothing is reachable before everything that denies is there. The steps stand in a
 * table of their own file (denial-steps.c) so that a test can link the program with one left out and see the
 * refusal.
 */

#include "service/net/jail-sockets.h"
#include "service/plan/routes.h"

typedef struct Netlink Netlink; /* netlink.h */

typedef struct Denial {
	Netlink *netlink;
	int tap_fd;
	const RouteTable *routes;
	bool ipv6_off;
	int lo_index, jail_index;
	int ledger_index; /* 0: there is no deny0, and the prohibits answer alone */
	char **warnings;  /* soft steps that failed: forwarder, single allow-ip routes */
	bool *left_out;   /* one for each row of routes: a soft row that could not be programmed */
} Denial;

typedef struct DenialStep {
	const char *name;
	int (*apply)(Denial *denial, char **ret_problem);
} DenialStep;

extern const DenialStep denial_steps[]; /* ends with a NULL name */

/* What no table of a jail may be: without a denial, without the one default. Return: 0 or -EINVAL. */
int denial_check_table(const RouteTable *routes, char **ret_problem);

/* Wrap the sockets; keeps none of them. Return: 0 or a negative errno with *ret_problem. */
int denial_init(Denial *denial, const JailSockets *sockets, const RouteTable *routes, char **ret_problem);
void denial_done(Denial *denial);

/* Run every step in order. Return: 0, or the first failure with *ret_problem that names the step and the
 * cause. */
int denial_apply(Denial *denial, char **ret_problem);

/*
 * Read the whole namespace back, raw and attribute by attribute, and hold it against what was meant: links,
 * addresses, neighbours, routes of all tables, rules, nexthops, both families, and the lookup of a public
 * address. Return: 0; -EREMCHG with *ret_problem naming the first difference; another errno when it cannot be
 * read (that refuses too).
 */
int denial_read_back(Denial *denial, char **ret_problem);
