/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * Learn that something in the network of the namespace that the caller is in (the host's) changed: links,
 * IPv4 addresses, IPv4 routes (rtnetlink(7)). What it is now, host_network_read() tells. Return: 0 with a
 * non-blocking descriptor (O_CLOEXEC) that becomes readable, or a negative errno.
 */
int host_watch_open(int *ret_fd);
/* Read away what waits; however much that is, it was a change. */
void host_watch_drain(int fd);
