/* SPDX-License-Identifier: MIT */
#pragma once

/* Network devices: those that the namespace holds, lo, jail0 and the ledger's deny0. */

#include "service/net/denial.h"
#include "service/net/netlink.h"

#include <net/if.h>

#define LINK_MTU 65520u

/* What an RTM_NEWLINK or RTM_DELLINK says. */
typedef struct Link {
	uint32_t index;
	char name[IFNAMSIZ];
	uint16_t type;  /* ARPHRD_ */
	uint32_t flags; /* IFF_ */
	uint32_t mtu;
	uint8_t address[6];
	bool has_address;
	char kind[32]; /* IFLA_INFO_KIND, "" for none */
	/* IFLA_TUN_: as given, 0xff where absent (linux/if_link.h) */
	uint8_t tun_type, tun_pi, tun_vnet_header, tun_persist, tun_multi_queue;
	uint32_t reverse_path; /* rp_filter of IPv4; 0 (off) where the kernel says nothing */
	const char *strange;   /* the first property that no device of ours has, in words, or NULL */
} Link;

/* Return: 0, or -EBADMSG for what no kernel writes. */
int link_parse(const struct nlmsghdr *header, Link *ret);

/* The name of one of the devices that kernels with tunnel drivers put into every new namespace? */
bool link_is_fallback(const Link *link);

/* Ask for a device by name; waits for whoever is changing it. Return: 0, -ENODEV, or another negative errno.
 */
int link_find(Netlink *netlink, const char *name, Link *ret);

/* A request to switch flags of a device on. NULL without memory. */
struct nl_msg *link_change_message(int index, uint32_t flags);
/* No link-local address of its own, in case that IPv6 could not be switched off. A kernel without it refuses.
 */
int link_without_generated_address(const Denial *denial, int index);

int link_step_loopback(Denial *denial, char **ret_problem);
int link_step_jail(Denial *denial, char **ret_problem);
/* Drop what arrives from an address to which no route leads out by jail0 (RFC 3704). Before the device is up.
 */
int link_step_reverse_path(Denial *denial, char **ret_problem);
