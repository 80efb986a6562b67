/* SPDX-License-Identifier: MIT */
#pragma once

/* What the kernel says of this network namespace (rtnetlink(7)), asked for without any library. */

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "dbus/base.h"

/* Call each for every message of a dump. type: RTM_GETLINK, ... Return: 0, -errno, or what each returned if
 * not 0. */
int dump_each(uint16_t type, uint8_t family, int (*each)(void *userdata, const struct nlmsghdr *header),
	      void *userdata);
/* Which route would a packet to address (host byte order) take? Return: 0 with *ret_type (RTN_) and the
 * device's number; -errno as the kernel refuses: -EACCES for a prohibit. */
int dump_lookup(uint32_t address, uint8_t *ret_type, uint32_t *ret_device);

/* Attributes after a body of size bytes: those of numbers below n into slots, others are left out. Return: 0,
 * -EBADMSG. */
int dump_attributes(const struct nlmsghdr *header, size_t size, const struct rtattr **slots, size_t n);
/* "A.B.C.D", and "/LENGTH" below 32. address in host byte order. */
typedef struct AddressText {
	char text[32];
} AddressText;
AddressText dump_text(uint32_t address, unsigned length);
/* The attribute as a number in the machine's byte order; fallback where it is absent or short. */
uint32_t dump_u32(const struct rtattr *attribute, uint32_t fallback);
/* An IPv4 address as a number in host byte order. */
uint32_t dump_address(const struct rtattr *attribute);
