/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The rtnetlink messages that ought to be there: one list, of addresses, neighbours, rules and routes, each
 * message as the kernel dumps it. Programming sends them; a change is the difference of two lists; reading
 * back compares the kernel's dumps with them, attribute by attribute; the table of routes that is shown is
 * the same comparison. They are built with libnl-route's objects; what of one may differ is in said.c. Devices are in link.h: the kernel tells much of
 * them that nobody means.
 */

#include "service/net/said.h"
#include "service/plan/routes.h"

/* Who makes a message, and in which step (denial-steps.c). */
typedef enum MeantKind {
	MEANT_NOTHING, /* a step that sends no message of the list */
	MEANT_KERNEL,  /* the kernel by itself */
	MEANT_ADDRESS,
	MEANT_FAR_END,
	MEANT_NEIGHBOUR,
	MEANT_PROHIBIT,
	MEANT_LEDGER,
	MEANT_FORWARDER,
	MEANT_ALLOW,
	MEANT_DEFAULT,
} MeantKind;

typedef enum MeantState {
	MEANT_MISSING,
	MEANT_DIFFERENT,
	MEANT_IN_FORCE,
} MeantState;

typedef struct MeantRow {
	MeantKind kind;
	SaidKey key;
	struct nlmsghdr *message;
	const RouteRow *row; /* of the table of routes, or NULL */
	const char *reason;  /* what is shown of one that no row says, or NULL */
	bool optional;       /* not every kernel makes it */
	bool left_out;       /* may fail, and the kernel did not take it */
	MeantState state;    /* in the last comparison */
} MeantRow;

typedef struct Meant {
	MeantRow *rows; /* of one kind in the order in which they are sent */
	size_t n, allocated;
} Meant;

/* routes outlives *ret. Return: 0 or -ENOMEM. */
int meant_make(const RouteTable *routes, const JailDevices *devices, Meant *ret);
void meant_done(Meant *meant);

/* A route by the far end, which may fail where it is not the default? */
bool meant_is_opening(const MeantRow *row);
/* The row of the same kind and key, of another list; openings are one kind. Return: NULL for none. */
MeantRow *meant_find(const Meant *meant, const MeantRow *row);

/*
 * Hold what the kernel holds against the list; every row has its state then. Messages of devices are passed
 * over, as are entries that the kernel makes and drops by itself and that lead nowhere. Return: 0; -EREMCHG
 * with *ret_problem naming the first difference; -EBADMSG for a message that no kernel writes; -ENOMEM.
 */
int meant_compare(Meant *meant, const JailDevices *devices, const MessageList *found, char **ret_problem);

/* A row of the table of routes as it is shown. */
typedef struct RouteShown {
	uint32_t address; /* host order */
	uint8_t length;
	RouteVerdict verdict;
	const char *device; /* "" for a denial, which has none */
	const char *reason; /* borrowed from the table of routes, or a constant */
	const char *state;  /* "in force", "left out", "missing", "different", "unknown" */
} RouteShown;

/*
 * After meant_compare(): first what is the namespace's own (its loopback, its address, the far end's, which
 * it holds itself), then the rows of the table in their order; of two routes of one row the one that is worse
 * off says how it is. known: else every state is "unknown". Return: how many; *ret is freed with free();
 * -ENOMEM.
 */
ssize_t meant_show(const Meant *meant, bool known, RouteShown **ret);
