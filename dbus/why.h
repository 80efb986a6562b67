/* SPDX-License-Identifier: MIT */
#pragma once

/* Which row of a session's tables decides. Pure: links come through a function. */

#include "dbus/client.h"

/* Columns of the tables, as client-session.h has them. */
enum { EXPOSURE_PATH, EXPOSURE_KIND, EXPOSURE_MODE, EXPOSURE_ORIGIN, EXPOSURE_REASON };
enum { ROUTE_DESTINATION, ROUTE_VERDICT, ROUTE_DEVICE, ROUTE_REASON, ROUTE_STATE };

#define WHY_NONE (-1)

/* readlink(2). Return: 0 with *ret; -EINVAL for what is no link; another negative errno. */
typedef int (*WhyReadLink)(const char *path, char **ret);

/*
 * Where path, absolute, leads for the session's agent: links are followed where it sees what is outside, and
 * where the session made one. Return: 0 with *ret, canonical; -ELOOP; -ENOMEM.
 */
int why_resolve(const ClientTable *exposure, const char *path, WhyReadLink read_link, char **ret);

/*
 * The entry that decides what is at path, canonical: the last one at or above it. Descriptors decide nothing,
 * an empty directory and a link only about themselves. Return: its row, or WHY_NONE.
 */
ssize_t why_entry(const ClientTable *exposure, const char *path);
/* What that means for path, in words. */
const char *why_meaning(const ClientTable *exposure, ssize_t row, const char *path);
/* The same where nothing lies at path outside. Return: NULL where that says nothing about the jail. */
const char *why_nothing(const ClientTable *exposure, ssize_t row, const char *path);
/* The next descriptor, from row *index on, that is the file at path. Return: its row, or WHY_NONE. */
ssize_t why_descriptor(const ClientTable *exposure, const char *path, size_t *index);

/* IPv4, address in host order. One address has a length of 32. */
typedef struct WhyNetwork {
	uint32_t address;
	unsigned length;
} WhyNetwork;

/*
 * The route that decides about all of a network that no longer one names: the longest destination that is
 * there and holds it, and of two equal ones that which does not deny. Return: its row, or WHY_NONE.
 */
ssize_t why_route(const ClientTable *routes, WhyNetwork network);
/* What a route's verdict means for who sends there, in words. */
const char *why_verdict(const char *verdict);
/* How many routes to a part of the network decide otherwise than verdict? */
size_t why_others(const ClientTable *routes, WhyNetwork network, const char *verdict);
/* Could it be an allow-ip? */
bool why_may_be_allowed(WhyNetwork network);
/* Have the two anything in common? */
bool why_overlap(WhyNetwork a, WhyNetwork b);
/* Is some of it of no public range, so that a jail refuses it everywhere? */
bool why_is_internal(WhyNetwork network);
/* "A.B.C.D/LEN", or "default" for all, as routes are listed; host bits are left out. Return: 0 or -EINVAL. */
int why_network(const char *text, WhyNetwork *ret);

typedef enum WhyFamily {
	WHY_NO_ADDRESS,
	WHY_IPV4,
	WHY_IPV6,
} WhyFamily;

/*
 * What is text? "A.B.C.D", or IPv6 as inet_pton(3) takes it, also in brackets. An IPv4 address in IPv6's form
 * is one of IPv4, as the kernel sends it.
 */
WhyFamily why_address(const char *text, uint32_t *ret_ipv4);
