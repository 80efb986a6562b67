/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * rtnetlink(7) messages as bytes: walking a datagram, keeping what a dump brought, taking attributes apart.
 * Pure, bounds-checked, and the part that is fuzzed: nothing here believes a length.
 */

#include "dbus/base.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/* Copies of whole messages, one behind the other, each at a multiple of NLMSG_ALIGNTO. */
typedef struct MessageList {
	uint8_t *data;
	size_t size, allocated; /* bytes */
	size_t n_messages;
} MessageList;

/* A dump above this is refused: far more than any namespace of ours holds, enough for a host with 250,000
 * routes. */
#define MESSAGE_LIST_BYTES_MAX (32u * 1024 * 1024)

void message_list_done(MessageList *list);
/* Append a copy of header, whose length message_walk() has checked. Return: 0, -EMSGSIZE above the bound,
 * -ENOMEM. */
int message_list_add(MessageList *list, const struct nlmsghdr *header);
/* *offset starts at 0. Return: the next message, or NULL. */
const struct nlmsghdr *message_list_next(const MessageList *list, size_t *offset);

/*
 * The message at *offset of a datagram of size bytes, aligned as a struct nlmsghdr. *offset moves behind it.
 * Return: 1 with *ret; 0 at the end; -EBADMSG when a header or its length does not fit.
 */
int message_walk(const void *data, size_t size, size_t *offset, const struct nlmsghdr **ret);

/*
 * The fixed header of size bytes behind the nlmsghdr, and the attributes behind that.
 * Return: the fixed header, or NULL when the message is shorter.
 */
const void *message_body(const struct nlmsghdr *header, size_t size, const void **ret_attributes,
			 size_t *ret_size);

/*
 * Sort attributes by type into slots[n_slots]; an absent one is NULL. *ret_unknown (may be NULL) is the first
 * type that has no slot, or 0. Return: 0; -EBADMSG for a length that does not fit, a type that comes twice,
 * or type 0.
 */
int attributes_sort(const void *data, size_t size, const struct rtattr **slots, size_t n_slots,
		    uint16_t *ret_unknown);
/* The attributes nested in one. Return: as attributes_sort(). */
int attributes_nested(const struct rtattr *attribute, const struct rtattr **slots, size_t n_slots,
		      uint16_t *ret_unknown);

size_t attribute_size(const struct rtattr *attribute);
/* Values of exactly that size; an absent attribute leaves *ret alone. Return: 0 or -EBADMSG. */
int attribute_u8(const struct rtattr *attribute, uint8_t *ret);
int attribute_u32(const struct rtattr *attribute, uint32_t *ret);
/* An IPv4 address, in host byte order. */
int attribute_ipv4(const struct rtattr *attribute, uint32_t *ret);
int attribute_bytes(const struct rtattr *attribute, void *ret, size_t size);
/* A name that ends with its only NUL within the attribute and fits into size bytes. */
int attribute_name(const struct rtattr *attribute, char *ret, size_t size);

/* "A.B.C.D", or "A.B.C.D/LEN" when length is not 32; "default" for 0/0. Return: buffer. */
#define ADDRESS_TEXT_MAX 64u
const char *ipv4_to_text(uint32_t address, unsigned length, char buffer[static ADDRESS_TEXT_MAX]);
const char *ipv6_to_text(const uint8_t address[static 16], unsigned length,
			 char buffer[static ADDRESS_TEXT_MAX]);
