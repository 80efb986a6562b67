/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"
#include "service/plan/routes.h"

/*
 * Learn that something in the network of the namespace that the caller is in (the host's) changed: links,
 * IPv4 addresses, IPv4 routes, nexthop objects (rtnetlink(7)). What it is now, host_network_read() tells.
 * Return: 0 with a non-blocking descriptor (O_CLOEXEC) that becomes readable, or a negative errno.
 */
int host_watch_open(int *ret_fd);
/* Read away what waits; however much that is, it was a change. */
void host_watch_drain(int fd);

/*
 * What was ever of the host: now, and with it all of known. A network that was there and went may come back,
 * and is denied before it does. The uplink is that of now. Return: 1 when now has what known lacks; 0;
 * -ENOMEM.
 */
int host_network_join(const HostNetwork *known, const HostNetwork *now, HostNetwork *ret);
