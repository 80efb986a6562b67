/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From the table of routes that a namespace holds to another one, while an agent runs in it. At no moment is
 * anything reachable that neither of the two allows; the order, and why, stands in denial-change.c.
 */

#include "service/net/denial.h"

/*
 * routes: what denial was made with, or was last changed to; what wanted holds (routes_make_again()) takes
 * its place, wanted is left empty, and the whole namespace is read back. The far end, the addresses and the
 * default are the same in every table.
 *
 * An opening (allow-ip, forwarder) that the kernel does not take is left out: denial->left_out and
 * denial->warnings say so afterwards, the latter of this change alone.
 *
 * Return: 0. -EINVAL, -ENOMEM: nothing was changed, routes and wanted are as they were. -EREMCHG: the
 * namespace is not what was meant; whoever runs in it must end. All with *ret_problem, but -ENOMEM.
 */
int denial_change(Denial *denial, RouteTable *routes, RouteTable *wanted, char **ret_problem);

/* Is there an opening of exactly this prefix, and was it left out? */
bool denial_left_out(const Denial *denial, uint32_t address, uint8_t length);
