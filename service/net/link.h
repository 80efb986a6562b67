/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Network devices: those that the namespace holds, lo, jail0 and the ledger's deny0. They are changed by
 * libnl-route's objects and read raw: libnl leaves out what the tun driver says, programs that are attached
 * and alternative names.
 */

#include "service/net/denial.h"

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

typedef enum LinkPart {
	LINK_LOOPBACK,
	LINK_JAIL,
	LINK_LEDGER,
	LINK_FALLBACK, /* kernels with tunnel drivers put it into every new namespace; never up */
	LINK_OTHER,
} LinkPart;

/* Return: 0, or -EBADMSG for what no kernel writes. */
int link_parse(const struct nlmsghdr *header, Link *ret);
LinkPart link_part(const Link *link, const JailDevices *meant);
/* One device by itself. Return: 0; -EREMCHG with *ret_problem. */
int link_check(const Link *link, const JailDevices *meant, char **ret_problem);
/* All that a dump has. Return: likewise; -EBADMSG. */
int link_compare(const JailDevices *meant, const MessageList *found, char **ret_problem);
/* The news that a device has gone which no driver put there? */
bool link_is_removal(const struct nlmsghdr *header, const Link *link);

/* Ask for a device by name; waits for whoever is changing it. Return: 0, -ENODEV, or another negative errno.
 */
int link_find(Netlink *netlink, const char *name, Link *ret);

int link_step_loopback(Denial *denial, MeantKind kind, char **ret_problem);
int link_step_jail(Denial *denial, MeantKind kind, char **ret_problem);
/* Drop what arrives from an address to which no route leads out by jail0 (RFC 3704). Before the device is up.
 */
int link_step_reverse_path(Denial *denial, MeantKind kind, char **ret_problem);
/* deny0, where there is one, and each denied row led to it. */
int link_step_ledger(Denial *denial, MeantKind kind, char **ret_problem);
