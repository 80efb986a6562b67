/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ways to addresses, tried side by side: what a process without any right can ask of a socket before it
 * connects or sends. For the files probes-*.c alone.
 *
 * A destination was reached when something answered: data, a connection, or a refusal that only another
 * machine sends (a reset; "port unreachable"). The jail's own refusals are other errors. Where nobody
 * listens, two more things tell that a packet left: an address resolved by ARP on the wire (whoever is at its
 * other end answers for every address), and a route that leads out.
 */

#include <sys/socket.h>

#include "service/inside/probing.h"
#include "service/net/ways.h"

#define REACH_TARGETS_MAX 200u
#define REACH_MSEC 500

typedef struct ReachTarget {
	struct sockaddr_storage address;
	socklen_t size;
	bool token; /* one of the jail's own addresses, or one that may answer: only the token tells */
	bool udp_only, tcp_only;
	bool group; /* who answers has another address */
	char text[80];
} ReachTarget;

typedef struct ReachTargets {
	ReachTarget targets[REACH_TARGETS_MAX];
	size_t n;
	unsigned left_out; /* addresses for which there was no room */
	unsigned msec;     /* how long to wait for answers; 0: REACH_MSEC */
} ReachTargets;

typedef struct ReachWay {
	const char *name; /* NULL: the way's own */
	const Way *way;   /* NULL: the plain one */
	/* Before it is used, beside that; device: its name, index its number, 0 without one. Return: 0 or a
	 * negative errno: the kernel refuses the way itself. */
	int (*prepare)(int fd, const ReachTarget *target, const char *device, unsigned index);
	bool by_device; /* once for each of them, as with a way that names one */
	bool udp_only, tcp_only, mapped /* of IPv4, by an IPv6 socket */;
	bool ping;    /* an echo request (RFC 792) is sent */
	int protocol; /* 0: the usual one */
} ReachWay;

/* Add an address to be tried. port in host order. */
void reach_add4(ReachTargets *targets, uint32_t address, uint16_t port, bool token);
void reach_add6(ReachTargets *targets, const char *text, uint16_t port, unsigned scope, bool token);
/* One of every denied range, and each single address that is denied: of the plan's routes, or without a plan
 * of what is denied everywhere. */
void reach_add_denied(const Probing *p, ReachTargets *targets);
/* The listeners outside. */
void reach_add_baits(const Probing *p, ReachTargets *targets);
/* Does the plan let that address be reached? */
bool reach_is_allowed(const Probing *p, uint32_t address);

/*
 * Try all ways to all targets, and wait for answers. What comes of it is found. Return:
 * how many datagrams the kernel took for the wire's device by the ways that name it.
 */
unsigned reach_try(Probing *p, const ReachWay *tried, size_t n_ways, const ReachTargets *targets);
/* Whether there is a jail of networks to be tried at all; otherwise that is what is found. */
bool reach_is_jailed(Probing *p);
