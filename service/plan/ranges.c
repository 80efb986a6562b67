/* SPDX-License-Identifier: MIT */

/*
 * Apart from the table of routes, since the jail's own checks read it too, and a test has a list of its own. A
 * range is this one row: the table of routes, what an allow-ip may be, the self-test, the checks and the probes
 * all follow it.
 */

#include "service/plan/routes.h"

/* No two overlap. */
const DeniedRange denied_ranges[] = {
	{ { 0x00000000u, 8 }, "this network (RFC 791)", "is in 0.0.0.0/8, which no host has (RFC 791)" },
	{ { 0x7f000000u, 8 },
	  "loopback (RFC 1122)",
	  "is loopback (RFC 1122), of which the jail has its own: a local-port lets a single port of this "
	  "machine's in" },
	{ { 0x0a000000u, 8 }, "private network (RFC 1918)", NULL },
	{ { 0xac100000u, 12 }, "private network (RFC 1918)", NULL },
	{ { 0xc0a80000u, 16 }, "private network (RFC 1918)", NULL },
	{ { 0x64400000u, 10 }, "shared address space of providers (RFC 6598)", NULL },
	{ { 0xa9fe0000u, 16 }, "link-local and cloud metadata (RFC 3927)", NULL },
	{ { 0xa83f8110u, 32 }, "host service of the Azure cloud", NULL },
	{ { 0xc0000000u, 24 },
	  "IETF protocol assignments (RFC 6890)",
	  "is in 192.0.0.0/24 or holds it, where the jail's own addresses are (RFC 6890)" },
	{ { 0xc6120000u, 15 }, "benchmarking (RFC 2544)", NULL },
	{ { 0xe0000000u, 4 },
	  "multicast (RFC 5771)",
	  "is multicast (RFC 5771), which the jail does not have" },
	{ { 0xf0000000u, 4 },
	  "reserved, with the broadcast address (RFC 1112, RFC 919)",
	  "is in the reserved range 240.0.0.0/4 (RFC 1112)" },
	{ .reason = NULL },
};
