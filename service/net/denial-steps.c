/* SPDX-License-Identifier: MIT */

/*
 * ORDER IS SECURITY. Each step may rely on those above it, and nothing may become reachable before everything
 * that denies is there:
 *
 *  1. loopback    up first: only then does the kernel give it 127.0.0.1/8, and only a device that is up keeps
 *                 addresses that routes can name as their source.
 *  2. tables      the main table parted from the local one, while both hold nothing: only then can the far
 *                 end's address be the jail's own and a gateway.
 *  3. address     192.0.0.2/32 on lo, never on jail0: a route goes with its source address, and what is on lo
 *                 stays when the wire goes.
 *  4. filter      before jail0 is up, so that no frame can pass it unfiltered, not even the kernel's own.
 *  5. reverse-path  before jail0 is up too: what a denied sender sends in is dropped, from the first.
 *  6. jail0       up before the neighbour: a device that goes down forgets its permanent neighbours, and a
 *                 route by a device that is down is refused.
 *  7. far-end     the far end's address is the jail's own, before it has an entry as a neighbour: no socket
 *                 that is bound to jail0 ever reaches it as one.
 *  8. neighbour   the one link address that the filter lets out, for the far end alone. No ARP is ever
 *                 answered.
 *  9. prohibits   every denied range, before any route that leads out.
 * 10. ledger      before what opens, so that no denial inside an allow-ip goes unexplained. It protects
 *                 nothing: without it the prohibits answer.
 * 11. forwarder   ┐ more specific than the prohibits around them, so their order among each other does not
 * 12. allow-ip    ┘ matter; they may fail with a warning: then less is reachable, never more.
 * 13. default     last of all, since it opens most.
 *
 * The far end's own address belongs to the jail: "local 192.0.0.1 dev jail0". A socket that is bound to jail0
 * would otherwise take it for a neighbour on the link, find the one link address that passes the filter, and
 * so send to 192.0.0.1 of the host's network. The kernel refuses a gateway that is a local address and looks
 * for those in the local table alone (fib_check_nh_v4_gw() of the kernel), so this route stands in the main
 * one: there it need never be taken away, also when routes by the far end are added while an agent runs.
 */

#include "service/net/denial.h"
#include "service/net/link.h"
#include "service/net/tap.h"

/* clang-format off */
const DenialStep denial_steps[] = {
	{ "loopback", link_step_loopback, MEANT_NOTHING },
	{ "tables", denial_part_tables, MEANT_NOTHING },
	{ "address", denial_send, MEANT_ADDRESS },
	{ "filter", tap_step_filter, MEANT_NOTHING },
	{ "reverse-path", link_step_reverse_path, MEANT_NOTHING },
	{ "device", link_step_jail, MEANT_NOTHING },
	{ "far-end", denial_send, MEANT_FAR_END },
	{ "neighbour", denial_send, MEANT_NEIGHBOUR },
	{ "prohibits", denial_send, MEANT_PROHIBIT },
	{ "ledger", link_step_ledger, MEANT_LEDGER },
	{ "forwarder", denial_send, MEANT_FORWARDER },
	{ "allow-ip", denial_send, MEANT_ALLOW },
	{ "default", denial_send, MEANT_DEFAULT },
	{ NULL, NULL, MEANT_NOTHING },
};
/* clang-format on */
