/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Neighbours: the far end's permanent entry is the only way by which a frame gets the only link address that
 * the tap's filter lets out.
 */

#include "service/net/denial.h"
#include "service/net/netlink.h"

typedef struct Neighbour {
	uint8_t family, flags, type; /* NTF_, RTN_ */
	uint16_t state;              /* NUD_ */
	uint32_t device;
	uint32_t address;  /* AF_INET, host order */
	uint8_t bytes[16]; /* AF_INET6 */
	uint8_t mac[6];
	bool has_mac;
	bool odd_mac;       /* a link address of another size */
	uint16_t attribute; /* the first attribute that no entry of ours has, or 0 */
} Neighbour;

/* Return: 0; -EAFNOSUPPORT for another family; -EBADMSG. */
int neighbour_decode(const struct nlmsghdr *header, Neighbour *ret);
const char *neighbour_to_text(const Neighbour *neighbour, char buffer[static ADDRESS_TEXT_MAX]);
/*
 * Did the kernel make this one by itself, and does it lead nowhere: unresolved, or the fixed mapping of a
 * multicast or broadcast address, which the filter drops?
 */
bool neighbour_is_harmless(const Neighbour *neighbour);
/*
 * Forget the unresolved entries of n addresses (host order) on a device, never the far end's. An address
 * without entry is no error.
 */
int neighbour_forget(Netlink *netlink, uint32_t device, const uint32_t *addresses, size_t n);

int neighbour_step(Denial *denial, char **ret_problem);
