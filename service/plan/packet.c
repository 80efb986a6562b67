/* SPDX-License-Identifier: MIT */
#include "service/plan/packet.h"

#include <assert.h>

/* RFC 791, 3.1 */
#define IP_HEADER_MIN 20u
#define IP_PROTOCOL 9u
#define IP_CHECKSUM 10u
#define IP_SOURCE 12u
#define IP_DESTINATION 16u
#define FRAGMENT_OFFSET_MASK 0x1fffu
#define DONT_FRAGMENT 0x4000u
/* What an ICMP error returns of the packet behind its header (RFC 792). */
#define QUOTED 8u
#define ICMP_HEADER 8u
#define ICMP_UNREACHABLE 3u
#define ICMP_PROHIBITED 13u
#define ICMP_ECHO_REQUEST 8u
#define TTL 64u
/* Precedence "internetwork control" (RFC 1812, 4.3.2.5). */
#define TOS_ERROR 0xc0u

static uint16_t get_u16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t get_u32(const uint8_t *bytes)
{
	return (uint32_t)get_u16(bytes) << 16 | get_u16(bytes + 2);
}

static void put_u16(uint8_t *bytes, uint16_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
	put_u16(bytes, (uint16_t)(value >> 16));
	put_u16(bytes + 2, (uint16_t)value);
}

/* RFC 1071, for an even number of bytes. */
static uint16_t checksum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;

	assert(size % 2 == 0);
	for (size_t i = 0; i < size; i += 2)
		sum += get_u16(bytes + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The only ICMP messages that ask for something (RFC 792, 950, 8335); errors are never answered with errors.
 */
static bool icmp_is_query(uint8_t type)
{
	switch (type) {
	case ICMP_ECHO_REQUEST:
	case 13: /* timestamp */
	case 15: /* information */
	case 17: /* address mask */
	case 42: /* extended echo */
		return true;
	default:
		return false;
	}
}

/* Neither this host nor any, nor loopback, multicast, reserved or broadcast. */
static bool is_single_host(uint32_t address)
{
	return address >> 24 != 0 && address >> 24 != 127 && address >> 28 != 0xe && address >> 28 != 0xf;
}

static bool is_group(uint32_t address)
{
	return address >> 28 == 0xe || address == UINT32_MAX;
}

/* What stands behind the header, as far as it is there; an attempt counts whether or not it is whole. */
static void parse_payload(const uint8_t *payload, size_t size, Packet *packet)
{
	switch (packet->protocol) {
	case PACKET_TCP:
	case PACKET_UDP:
		if (size >= 4) {
			packet->source_port = get_u16(payload);
			packet->destination_port = get_u16(payload + 2);
		}
		break;
	case PACKET_ICMP:
		if (size < 1 || !icmp_is_query(payload[0]))
			packet->answerable = false;
		else if (payload[0] == ICMP_ECHO_REQUEST && size >= 6)
			packet->source_port = get_u16(payload + 4);
		break;
	default:
		break;
	}
}

/* Return: the length of the header; -EAFNOSUPPORT; -EBADMSG. *ret_total: of the packet. */
static int header_length(const uint8_t *bytes, size_t size, size_t *ret_total)
{
	size_t header, total;

	if (size < 1)
		return -EBADMSG;
	if (bytes[0] >> 4 != 4)
		return -EAFNOSUPPORT;
	header = (bytes[0] & 15u) * 4u;
	if (size < IP_HEADER_MIN || header < IP_HEADER_MIN || header > size)
		return -EBADMSG;
	total = get_u16(bytes + 2);
	if (total < header || total > size)
		return -EBADMSG;
	*ret_total = total;
	return (int)header;
}

int packet_parse(const void *data, size_t size, Packet *ret)
{
	const uint8_t *bytes = data;
	size_t total = 0;
	Packet packet;
	int header = header_length(bytes, size, &total);

	if (header < 0)
		return header;
	packet = (Packet){ .protocol = bytes[IP_PROTOCOL],
			   .source = get_u32(bytes + IP_SOURCE),
			   .destination = get_u32(bytes + IP_DESTINATION),
			   .later_fragment = (get_u16(bytes + 6) & FRAGMENT_OFFSET_MASK) != 0 };
	packet.answerable =
		!packet.later_fragment && is_single_host(packet.source) && !is_group(packet.destination);
	if (!packet.later_fragment)
		parse_payload(bytes + header, total - (size_t)header, &packet);
	*ret = packet;
	return 0;
}

size_t packet_answer(const void *data, size_t size, uint32_t from, uint8_t ret[static PACKET_ANSWER_MAX])
{
	const uint8_t *bytes = data;
	uint8_t *icmp = ret + IP_HEADER_MIN;
	size_t total = 0, quoted, length;
	Packet packet;
	int header;

	if (packet_parse(data, size, &packet) < 0 || !packet.answerable)
		return 0;
	header = header_length(bytes, size, &total);
	quoted = (size_t)header + MIN_OF(total - (size_t)header, (size_t)QUOTED);
	memset(ret, 0, PACKET_ANSWER_MAX);
	/* An odd byte more in the sum is a 0. */
	length = ICMP_HEADER + quoted;
	icmp[0] = ICMP_UNREACHABLE;
	icmp[1] = ICMP_PROHIBITED;
	memcpy(icmp + ICMP_HEADER, bytes, quoted);
	put_u16(icmp + 2, checksum(icmp, length + length % 2));

	ret[0] = 4 << 4 | IP_HEADER_MIN / 4;
	ret[1] = TOS_ERROR;
	put_u16(ret + 2, (uint16_t)(IP_HEADER_MIN + length));
	put_u16(ret + 6, DONT_FRAGMENT);
	ret[8] = TTL;
	ret[IP_PROTOCOL] = PACKET_ICMP;
	put_u32(ret + IP_SOURCE, from);
	put_u32(ret + IP_DESTINATION, packet.source);
	put_u16(ret + IP_CHECKSUM, checksum(ret, IP_HEADER_MIN));
	return IP_HEADER_MIN + length;
}

const char *packet_protocol_to_string(uint8_t protocol, char buffer[static PACKET_PROTOCOL_TEXT_MAX])
{
	switch (protocol) {
	case PACKET_TCP:
		return "tcp";
	case PACKET_UDP:
		return "udp";
	case PACKET_ICMP:
		return "icmp";
	default:
		(void)snprintf(buffer, PACKET_PROTOCOL_TEXT_MAX, "ip-%u", protocol);
		return buffer;
	}
}
