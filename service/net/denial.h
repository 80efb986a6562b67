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
#include "service/net/meant.h"

typedef struct Denial {
	Netlink *netlink;
	int tap_fd;
	const RouteTable *routes;
	JailDevices devices;
	Meant meant;
	char **warnings; /* what may fail and did: forwarder, single allow-ip routes */
} Denial;

typedef struct DenialStep {
	const char *name;
	int (*apply)(Denial *denial, MeantKind kind, char **ret_problem);
	MeantKind kind; /* of the messages that it sends */
} DenialStep;

extern const DenialStep denial_steps[]; /* ends with a NULL name */

/* What no table of a jail may be: without a denial, without the one default. Return: 0 or -EINVAL. */
int denial_check_table(const RouteTable *routes, char **ret_problem);

/* Wrap the sockets, which stay open as long. Return: 0 or a negative errno with *ret_problem. */
int denial_init(Denial *denial, const JailSockets *sockets, const RouteTable *routes, char **ret_problem);
void denial_done(Denial *denial);

/* Run every step in order. Return: 0, or the first failure with *ret_problem that names the step and the
 * cause. */
int denial_apply(Denial *denial, char **ret_problem);
/* A step: send what is meant of one kind. Of what opens, what the kernel does not take is left out. */
int denial_send(Denial *denial, MeantKind kind, char **ret_problem);
/* A step: part the main table from the local one. */
int denial_part_tables(Denial *denial, MeantKind kind, char **ret_problem);

/*
 * What the namespace holds, as the kernel dumps it. Gathering asks the kernel; checking is pure, so that
 * tests and fuzzing can give it any message.
 */
typedef struct ReadBack {
	MessageList
		messages; /* of both families: links, addresses, neighbours, proxies, nexthops, rules, routes */
	uint32_t public_address;
	int lookup; /* 0, or how the kernel refused the route to public_address */
	uint8_t type;
	uint32_t device, gateway, source;
} ReadBack;

void read_back_done(ReadBack *state);
/* Return: 0; a negative errno with *ret_problem naming what could not be read. */
int read_back_gather(const Denial *denial, ReadBack *ret, char **ret_problem);
/* Return: 0; -EREMCHG with *ret_problem; -EBADMSG for a message that no kernel writes; -ENOMEM. */
int read_back_check(const ReadBack *state, Denial *denial, char **ret_problem);
/* Ask for the route to an address (host order), into lookup and what follows. */
void read_back_lookup(Netlink *netlink, uint32_t address, ReadBack *state);

/*
 * Read the whole namespace back, raw and attribute by attribute, and hold it against what was meant: links,
 * addresses, neighbours, routes of all tables, rules, nexthops, both families, and the lookup of a public
 * address. Return: 0; -EREMCHG with *ret_problem naming the first difference; another errno when it cannot be
 * read (that refuses too).
 */
int denial_read_back(Denial *denial, char **ret_problem);

/*
 * From the table of routes that a namespace holds to another one, while an agent runs in it. At no moment is
 * anything reachable that neither of the two allows; the order, and why, stands in denial.c.
 *
 * routes: what denial was made with, or was last changed to; what wanted holds (routes_make_again()) takes
 * its place, wanted is left empty, and the whole namespace is read back. The far end, the addresses and the
 * default are the same in every table.
 *
 * An opening (allow-ip, forwarder) that the kernel does not take is left out: denial_left_out() and
 * denial->warnings say so afterwards, the latter of this change alone.
 *
 * Return: 0. -EINVAL, -ENOMEM: nothing was changed, routes and wanted are as they were. -EREMCHG: the
 * namespace is not what was meant; whoever runs in it must end. All with *ret_problem, but -ENOMEM.
 */
int denial_change(Denial *denial, RouteTable *routes, RouteTable *wanted, char **ret_problem);

/* Is there an opening of exactly this prefix, and was it left out? */
bool denial_left_out(const Denial *denial, uint32_t address, uint8_t length);

/*
 * The routes that decide about packets, each with how the kernel holds it now (meant_show()). A dump that
 * fails makes every state "unknown". Return: how many, *ret to be freed with free(); -ENOMEM.
 */
ssize_t denial_show(Denial *denial, RouteShown **ret);
