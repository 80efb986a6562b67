/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An IPv4 packet that an agent sent to a denied destination, taken apart, and the answer to it. Pure; every
 * byte is the adversary's, and no length in it is believed.
 */

#include "dbus/base.h"

#define PACKET_TCP 6u
#define PACKET_UDP 17u
#define PACKET_ICMP 1u

typedef struct Packet {
	uint8_t protocol;             /* of IP (IANA); PACKET_TCP, ... */
	uint32_t source, destination; /* host byte order, like the ports */
	/* 0 where the protocol has none. ICMP: the identifier of an echo request, and 0. */
	uint16_t source_port, destination_port;
	/* May it be answered with an ICMP error (RFC 1122, 3.2.2)? */
	bool answerable;
	/* A fragment other than the first: part of an attempt that was seen already. */
	bool later_fragment;
} Packet;

/*
 * Return: 0; -EAFNOSUPPORT for another version than 4; -EBADMSG for what is too short, or whose lengths do
 * not fit. Bytes behind the packet's own length are ignored.
 */
int packet_parse(const void *data, size_t size, Packet *ret);

/* The longest header of IPv4, twice 8 bytes, and a header without options before it. */
#define PACKET_ANSWER_MAX 96u
/*
 * "Communication administratively prohibited" (type 3, code 13: RFC 792, RFC 1812 5.2.7.1) about a packet
 * that packet_parse() took, from that address (host byte order) to its sender. Return: the size of the
 * answer; 0 when the packet may not be answered.
 */
size_t packet_answer(const void *data, size_t size, uint32_t from, uint8_t ret[static PACKET_ANSWER_MAX]);

/* "tcp", "udp", "icmp", or "ip-N" into buffer. Return: buffer, or a constant. */
#define PACKET_PROTOCOL_TEXT_MAX 8u
const char *packet_protocol_to_string(uint8_t protocol, char buffer[static PACKET_PROTOCOL_TEXT_MAX]);
