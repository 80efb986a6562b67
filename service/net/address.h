/* SPDX-License-Identifier: MIT */
#pragma once

/* Addresses of devices: the jail's own is 192.0.0.2/32, on lo. */

#include "service/net/denial.h"
#include "service/net/netlink.h"

#include <net/if.h>

/* What an RTM_NEWADDR says; for AF_INET local and peer hold numbers, for AF_INET6 bytes hold the address. */
typedef struct Address {
	uint8_t family, length, scope;
	uint32_t flags; /* IFA_F_ */
	uint32_t device;
	uint32_t local, peer; /* host order; equal unless point to point */
	uint8_t bytes[16];
	bool forever;         /* no lifetime, or an infinite one */
	uint16_t attribute;   /* the first attribute that no address of ours has, or 0 */
	uint8_t protocol;     /* IFA_PROTO: who made it, 0 unknown */
	char label[IFNAMSIZ]; /* "" where the family has none */
} Address;

/* Return: 0; -EAFNOSUPPORT for another family; -EBADMSG. */
int address_decode(const struct nlmsghdr *header, Address *ret);
/* "A.B.C.D/LEN". Return: buffer. */
const char *address_to_text(const Address *address, char buffer[static ADDRESS_TEXT_MAX]);

int address_step(Denial *denial, char **ret_problem);
