/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/routes.h"

/*
 * Read the network of the namespace that the caller is in (the host's) from raw rtnetlink(7) dumps: connected
 * subnets, own addresses, gateways of every route, whether an IPv4 default route exists.
 * Return: 0; a negative errno with *ret_problem.
 */
int host_network_read(HostNetwork *ret, char **ret_problem);
