/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The routing allowlist of one session, pure: from what the host's network is and what the configuration
 * allows to the rows that the namespace must hold, no more and no less.
 */

#include "dbus/base.h"
#include "service/plan/config.h"

/* Addresses are IPv4 in host byte order throughout. */
#define ROUTES_SOURCE 0xc0000002u  /* 192.0.0.2, on lo */
#define ROUTES_FAR_END 0xc0000001u /* 192.0.0.1 (192.0.0.0/24 is IANA's, RFC 6890) */
#define ROUTES_DENY_METRIC 4096u
#define ROUTES_MAX 1024u
#define ROUTES_JAIL_DEVICE "jail0"
#define ROUTES_LEDGER_DEVICE "deny0"
#define ROUTES_FAR_END_MAC                         \
	{                                          \
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01 \
	}

typedef enum RouteVerdict {
	ROUTE_DENY,     /* prohibit, metric ROUTES_DENY_METRIC, no device, no source */
	ROUTE_DNS,      /* via the far end; may fail with a warning */
	ROUTE_ALLOW,    /* via the far end; may fail with a warning */
	ROUTE_INTERNET, /* the default, via the far end */
	ROUTE_VERDICT_MAX,
} RouteVerdict;

typedef struct RouteRow {
	uint32_t address;
	uint8_t length;
	RouteVerdict verdict;
	char *reason; /* "private network (RFC 1918)", "address of the host", "allow-ip,
			 /etc/claude-sandbox.conf:3", ... */
} RouteRow;

/* In the order in which they are programmed: denials, dns, allow, internet. */
typedef struct RouteTable {
	RouteRow *rows;
	size_t n_rows;
	uint32_t forwarder; /* D, or 0 when all three clash; of a table made again, also where no row opens it
			     */
	char **warnings;
} RouteTable;

typedef struct HostPrefix {
	uint32_t address;
	uint8_t length;
} HostPrefix;

/* What is denied on every host: ranges.c, the only list. Ends without a reason. */
typedef struct DeniedRange {
	HostPrefix prefix;
	const char *reason;
	const char *never; /* why no allow-ip can open a part of it, as the end of a sentence, or NULL */
} DeniedRange;

extern const DeniedRange denied_ranges[];

/* What the host's network is, as service/net/host.h reads it. */
typedef struct HostNetwork {
	HostPrefix *subnets; /* connected */
	size_t n_subnets;
	uint32_t *addresses; /* its own */
	size_t n_addresses;
	uint32_t *gateways; /* of every route */
	size_t n_gateways;
	bool uplink; /* a usable IPv4 default route exists */
} HostNetwork;

void host_network_done(HostNetwork *host);
void route_table_done(RouteTable *table);

/*
 * Return: 0; -E2BIG above ROUTES_MAX; -EINVAL with *ret_problem; -ENOMEM. Duplicates are one row; a subnet
 * that lies inside a denied range keeps its own row only where an allow-ip lies between them (more specific
 * denials win over wider allow-ips); a 0.0.0.0/0 or point-to-point "subnet" of the host never becomes a
 * denial of everything.
 */
int routes_make(const HostNetwork *host, const Config *config, RouteTable *ret, char **ret_problem);

/*
 * The same for a session that runs, whose name server is forwarder (0: none) and cannot become another one.
 * Its row is there unless something of the host has come to answer at that address, or denies it: then no
 * names resolve, and a warning says so. An allow-ip of exactly that address has no row of its own.
 */
int routes_make_again(const HostNetwork *host, const Config *config, uint32_t forwarder, RouteTable *ret,
		      char **ret_problem);

/* What the table says of one address: of the rows that hold it the narrowest, an opening before a denial. */
RouteVerdict routes_verdict(const RouteTable *table, uint32_t address);
/* The row that says so, or NULL. */
const RouteRow *routes_find(const RouteTable *table, uint32_t address);
/* The narrowest denial that holds it, though an opening may stand before that. Return: NULL for none. */
const RouteRow *routes_find_denial(const RouteTable *table, uint32_t address);
/* Is it one of the host's own addresses, or a gateway? */
bool routes_is_hosts(const RouteTable *table, uint32_t address);
/*
 * Has this row a route to the ledger, where there is one? Each denial has, but for one whose prefix an
 * opening has too, which stands in that place.
 */
bool routes_is_explained(const RouteTable *table, size_t index);

const char *route_verdict_to_string(RouteVerdict verdict);
/* "A.B.C.D/LEN", "default" for 0/0; buffer of at least ROUTE_TEXT_MAX bytes. Return: buffer. */
#define ROUTE_TEXT_MAX 19u
const char *route_to_string(uint32_t address, uint8_t length, char buffer[static ROUTE_TEXT_MAX]);
