/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/routes.h"

/*
 * In the holder, before pasta: send one datagram for each way round the routes (plain, SO_BINDTODEVICE,
 * SO_BINDTOIFINDEX, IP_UNICAST_IF, IP_PKTINFO, IP_MULTICAST_IF, broadcast) to a representative of every
 * denied row, and one to a public address; read the tap. The ways that name a device are tried with the
 * ledger's too, to the public address as well. Exactly the frame to the public address may appear,
 * to the far end's MAC. Return: 0; -ENOTUNIQ with *ret_problem naming trick and destination of the frame that
 * got through (or saying that the public one did not).
 */
int self_test_run(int tap_fd, const RouteTable *routes, char **ret_problem);
