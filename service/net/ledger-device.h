/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The tun deny0: what is sent to a denied destination comes out at its descriptor, which the session alone
 * has. It explains and does not protect: it goes with that descriptor and takes its routes along, and behind
 * each of them stands the prohibit.
 */

#include "service/net/link.h"
#include "service/net/route.h"

/*
 * Packets that wait for the session: more than ten thousand, which an agent may send within the time in
 * which a busy machine does not run the session. What comes on top is dropped by the device, and counted.
 */
#define LEDGER_QUEUE 12288u
/* Of the device: a datagram above it comes in fragments. It bounds what waits in the queue. */
#define LEDGER_MTU 1500u

/*
 * In the holder: make the tun, which is not persistent. Return: 0; a negative errno with *ret_problem, as
 * tap_open().
 */
int ledger_device_open(int *ret_fd, char **ret_problem);

/* Bring it up, and lead each denied row to it. Nothing where there is no device. */
int ledger_step(Denial *denial, char **ret_problem);

/* Has this row a route by the device? None has where there is no device; else routes_is_explained(). */
bool ledger_has_row(const Denial *denial, const RouteTable *routes, size_t index);
/* That route: metric 0, ahead of the row's prohibit. */
Route ledger_route_of_row(const RouteRow *row, uint32_t ledger_index);

/* Hold the device against what was meant, but for what every device has. Return: 0; -EREMCHG with
 * *ret_problem. */
int ledger_device_check(const Link *link, char **ret_problem);

/* How many packets the device has dropped since it is. Return: 0 or a negative errno. */
int ledger_device_dropped(const Denial *denial, uint64_t *ret);
