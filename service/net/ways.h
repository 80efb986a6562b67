/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Every way round a route: what a process without any privilege can ask of a socket so that the kernel chooses
 * another output device, or another route, than the table says (ip(7), socket(7)). The self-test before the
 * wire, check 20, the probes and the tests all try these, and no others. libc only: it is linked into the jail.
 */

#include <sys/socket.h>

#include "dbus/base.h"

typedef enum WayNumber {
	WAY_PLAIN, /* none */
	WAY_DEVICE,
	WAY_INDEX,
	WAY_UNICAST,
	WAY_PACKET_INFO,
	WAY_MULTICAST,
	WAY_DEVICE_NO_ROUTE,
	WAYS_TO_DEVICES, /* those before are all that choose the device: each launch tries them */
	WAY_NO_ROUTE = WAYS_TO_DEVICES,
	WAY_SOURCE,
	WAY_FOREIGN_SOURCE,
	WAY_LOOSE_ROUTE,
	WAY_STRICT_ROUTE,
	WAY_MAX,
} WayNumber;

typedef struct Way {
	const char *name;
	/*
	 * Before the socket is used; device: its name, index: its number. address: of the destination, in
	 * network order. NULL: nothing is to be done. Return: 0 or a negative errno: the kernel has no such
	 * way.
	 */
	int (*prepare)(int fd, const char *device, unsigned index, uint32_t address);
	bool by_device;   /* it names one, and leads there whatever the destination */
	bool packet_info; /* the device goes with each datagram */
} Way;

extern const Way ways[WAY_MAX];

int way_prepare(const Way *way, int fd, const char *device, unsigned index, uint32_t address);
/* One datagram, of IPv4 or IPv6, with the device where the way says so. Return: 0 or a negative errno. */
int way_send(const Way *way, int fd, unsigned index, const struct sockaddr *to, socklen_t to_size,
	     const void *data, size_t size);
