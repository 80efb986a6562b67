/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What one message of rtnetlink(7) says about an address, a neighbour, a rule, a route or a nexthop object, and
 * how it differs from one that was meant. Messages are compared as bytes, attribute by attribute, and not by
 * libnl-route's parsers: those leave out what they do not know, and such an attribute may lead a packet
 * elsewhere. What may differ stands in one table (said.c).
 */

#include "service/net/netlink.h"
#include "service/plan/routes.h"

/* What tells one message of the kernel from another. */
typedef struct SaidKey {
	uint16_t type; /* RTM_NEW... */
	uint8_t family, length;
	uint32_t table;  /* of a route; of a nexthop object its number */
	uint32_t metric; /* of a rule its priority */
	uint32_t device; /* of an address or a neighbour */
	uint8_t proxy, pad[3];
	uint8_t address[16];
} SaidKey;

/* The devices of a namespace. */
typedef struct JailDevices {
	uint32_t lo, jail;
	uint32_t ledger; /* 0: there is no deny0, and the prohibits answer alone */
	bool ipv6_off;
} JailDevices;

/* IFA_PROTO, Linux 5.18: linux/if_addr.h of some distributions is older than the kernel. */
#define ADDRESS_PROTOCOL 11
#define SAID_SLOTS 64u

typedef struct Said {
	const struct nlmsghdr *header;
	const void *body;
	const struct rtattr *slots[SAID_SLOTS];
	uint16_t unknown; /* the first attribute above them, or 0 */
	SaidKey key;
} Said;

/* Of a message that removes too: RTM_DEL... is said as RTM_NEW.... Return: 0 or -EBADMSG. */
int said_read(const struct nlmsghdr *header, Said *ret);
/* "the route to 10.0.0.0/8 in table 254 with metric 4096". Return: 0; -ENOMEM. */
int said_name(const Said *said, char **ret);
/* Of one key. Return: 1 when they are the same; 0 with *ret_what, the first difference; -ENOMEM. */
int said_compare(const Said *found, const Said *meant, char **ret_what);
/* Is that an entry that the kernel makes and drops by itself, and that leads nowhere? */
bool said_is_kernels(const Said *said, const JailDevices *devices);
