/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The tun deny0: what is sent to a denied destination comes out at its descriptor, which the session alone
 * has. It explains and does not protect: it goes with that descriptor and takes its routes along, and behind
 * each of them stands the prohibit.
 */

#include "service/net/denial.h"

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

/* How many packets the device has dropped since it is. Return: 0 or a negative errno. */
int ledger_device_dropped(const Denial *denial, uint64_t *ret);
