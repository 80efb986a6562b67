/* SPDX-License-Identifier: MIT */

/*
 * ORDER IS SECURITY. Each step may rely on those above it, and nothing may become reachable before everything
 * that denies is there:
 *
 *  1. loopback    up first: only then does the kernel give it 127.0.0.1/8, and only a device that is up keeps
 *                 addresses that routes can name as their source.
 *  2. address     192.0.0.2/32 on lo, never on jail0: a route goes with its source address, and what is on lo
 *                 stays when the wire goes.
 *  3. filter      before jail0 is up, so that no frame can pass it unfiltered, not even the kernel's own.
 *  4. reverse-path  before jail0 is up too: what a denied sender sends in is dropped, from the first.
 *  5. jail0       up before the neighbour: a device that goes down forgets its permanent neighbours, and a
 *                 route by a device that is down is refused.
 *  6. neighbour   the one link address that the filter lets out, for the far end alone. No ARP is ever
 * answered.
 *  7. prohibits   every denied range, before any route that leads out.
 *  8. forwarder   ┐ more specific than the prohibits around them, so their order among each other does not
 *  9. allow-ip    ┘ matter; they may fail with a warning: then less is reachable, never more.
 * 10. default     last of what opens.
 * 11. far-end     the far end's address is the jail's own, so that no socket reaches it as a neighbour. After
 * the routes, because the kernel takes no gateway that is a local address; before anything runs.
 */

#include "service/net/address.h"
#include "service/net/denial.h"
#include "service/net/link.h"
#include "service/net/neighbour.h"
#include "service/net/route.h"
#include "service/net/tap.h"

/* clang-format off */
const DenialStep denial_steps[] = {
	{ "loopback", link_step_loopback },
	{ "address", address_step },
	{ "filter", tap_step_filter },
	{ "reverse-path", link_step_reverse_path },
	{ "device", link_step_jail },
	{ "neighbour", neighbour_step },
	{ "prohibits", route_step_prohibits },
	{ "forwarder", route_step_forwarder },
	{ "allow-ip", route_step_allow_ip },
	{ "default", route_step_default },
	{ "far-end", route_step_far_end },
	{ NULL, NULL },
};
/* clang-format on */
