/* SPDX-License-Identifier: MIT */
#include "service/plan/packet.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SOURCE 0xc0000002u
#define DENIED 0x0a010203u
#define ROUTER 0xc0000008u

typedef struct Made {
	uint8_t bytes[256];
	size_t size;
} Made;

/* options: bytes of them; payload as it is. */
static Made make(uint8_t protocol, uint32_t destination, size_t options, const void *payload, size_t size)
{
	Made made = { .size = 20 + options + size };
	struct iphdr ip = {
		.version = 4,
		.ihl = (unsigned)((20 + options) / 4) & 15u,
		.tot_len = htons((uint16_t)made.size),
		.ttl = 64,
		.protocol = protocol,
		.saddr = htonl(SOURCE),
		.daddr = htonl(destination),
	};

	memcpy(made.bytes, &ip, sizeof(ip));
	memset(made.bytes + 20, 1, options);
	memcpy(made.bytes + 20 + options, payload, size);
	return made;
}

/* 0xc350 is 50000, 0x0050 is 80. */
static const uint8_t transport[8] = { 0xc3, 0x50, 0x00, 0x50, 1, 2, 3, 4 };
static const uint8_t echo[8] = { 8, 0, 0, 0, 0x12, 0x34, 0, 1 };

static void attempts_are_read(void **state)
{
	static const struct {
		uint8_t protocol;
		const uint8_t *payload;
		uint16_t source, destination;
	} cases[] = {
		{ PACKET_TCP, transport, 50000, 80 },
		{ PACKET_UDP, transport, 50000, 80 },
		{ PACKET_ICMP, echo, 0x1234, 0 },
		{ 132, transport, 0, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		for (size_t options = 0; options <= 40; options += 4) {
			Made made = make(cases[i].protocol, DENIED, options, cases[i].payload, 8);
			Packet packet;

			assert_int_equal(packet_parse(made.bytes, made.size, &packet), 0);
			assert_int_equal(packet.protocol, cases[i].protocol);
			assert_int_equal(packet.source, SOURCE);
			assert_int_equal(packet.destination, DENIED);
			assert_int_equal(packet.source_port, cases[i].source);
			assert_int_equal(packet.destination_port, cases[i].destination);
			assert_true(packet.answerable);
			assert_false(packet.later_fragment);
			/* What the device padded. */
			assert_int_equal(packet_parse(made.bytes, made.size + 9, &packet), 0);
			assert_int_equal(packet.destination_port, cases[i].destination);
		}
}

static void bad_ones_are_refused(void **state)
{
	Made made = make(PACKET_TCP, DENIED, 4, transport, 8);
	Packet packet;

	for (size_t size = 0; size < made.size; size++)
		assert_int_equal(packet_parse(made.bytes, size, &packet), -EBADMSG);
	made.bytes[0] = 6 << 4;
	assert_int_equal(packet_parse(made.bytes, made.size, &packet), -EAFNOSUPPORT);
	for (uint8_t words = 0; words < 5; words++) {
		made.bytes[0] = (uint8_t)(4 << 4 | words);
		assert_int_equal(packet_parse(made.bytes, made.size, &packet), -EBADMSG);
	}
	made = make(PACKET_TCP, DENIED, 40, transport, 8);
	/* A total length within the header, and one above what there is. */
	made.bytes[3] = 59;
	assert_int_equal(packet_parse(made.bytes, made.size, &packet), -EBADMSG);
	made.bytes[3] = 69;
	assert_int_equal(packet_parse(made.bytes, made.size, &packet), -EBADMSG);
}

/* The header alone, or half of the ports: an attempt all the same. */
static void short_payloads_count(void **state)
{
	for (size_t size = 0; size < 4; size++) {
		Made made = make(PACKET_UDP, DENIED, 0, transport, size);
		uint8_t answer[PACKET_ANSWER_MAX];
		Packet packet;

		assert_int_equal(packet_parse(made.bytes, made.size, &packet), 0);
		assert_int_equal(packet.destination_port, 0);
		assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 28 + 20 + size);
	}
}

static unsigned sum(const uint8_t *bytes, size_t size)
{
	unsigned total = 0;

	for (size_t i = 0; i < size; i++)
		total += i % 2 ? bytes[i] : (unsigned)bytes[i] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

static void answers_are_whole(void **state)
{
	for (size_t options = 0; options <= 40; options += 4)
		for (size_t size = 0; size <= 64; size++) {
			uint8_t payload[64] = { 0xc3, 0x50, 0x00, 0x50, 9 };
			Made made = make(PACKET_UDP, DENIED, options, payload, size);
			uint8_t answer[PACKET_ANSWER_MAX];
			size_t quoted = 20 + options + MIN_OF(size, (size_t)8);
			size_t n = packet_answer(made.bytes, made.size, ROUTER, answer);
			struct iphdr ip;

			assert_int_equal(n, 20 + 8 + quoted);
			assert_true(n <= sizeof(answer));
			memcpy(&ip, answer, sizeof(ip));
			assert_int_equal(ip.version, 4);
			assert_int_equal(ip.ihl, 5);
			assert_int_equal(ntohs(ip.tot_len), n);
			assert_int_equal(ip.protocol, IPPROTO_ICMP);
			assert_int_equal(ntohl(ip.saddr), ROUTER);
			assert_int_equal(ntohl(ip.daddr), SOURCE);
			assert_int_equal(sum(answer, 20), 0xffff);
			assert_int_equal(answer[20], ICMP_DEST_UNREACH);
			assert_int_equal(answer[21], ICMP_PKT_FILTERED);
			assert_int_equal(sum(answer + 20, n - 20), 0xffff);
			assert_memory_equal(answer + 28, made.bytes, quoted);
		}
}

/* RFC 1122, 3.2.2: what is never answered with an error. */
static void some_get_no_answer(void **state)
{
	static const uint8_t errors[] = { 3, 4, 5, 11, 12, 0, 14, 255 };
	static const uint32_t groups[] = { 0xe0000001, 0xeffffffa, 0xffffffff };
	static const uint32_t senders[] = { 0, 0x7f000001, 0xe0000001, 0xffffffff, 0xf0000001 };
	uint8_t answer[PACKET_ANSWER_MAX], message[8] = { 0 };
	Packet packet;
	Made made;

	for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
		message[0] = errors[i];
		made = make(PACKET_ICMP, DENIED, 0, message, sizeof(message));
		assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 0);
	}
	made = make(PACKET_ICMP, DENIED, 0, message, 0);
	assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 0);
	for (size_t i = 0; i < ELEMENTSOF(groups); i++) {
		made = make(PACKET_UDP, groups[i], 0, transport, 8);
		assert_int_equal(packet_parse(made.bytes, made.size, &packet), 0);
		assert_int_equal(packet.destination_port, 80);
		assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 0);
	}
	for (size_t i = 0; i < ELEMENTSOF(senders); i++) {
		uint32_t sender = htonl(senders[i]);

		made = make(PACKET_UDP, DENIED, 0, transport, 8);
		memcpy(made.bytes + 12, &sender, 4);
		assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 0);
	}
	/* Fragments: the first alone has the ports. */
	made = make(PACKET_UDP, DENIED, 0, transport, 8);
	made.bytes[6] = 0x20;
	assert_int_equal(packet_parse(made.bytes, made.size, &packet), 0);
	assert_false(packet.later_fragment);
	assert_int_equal(packet.destination_port, 80);
	assert_true(packet_answer(made.bytes, made.size, ROUTER, answer) > 0);
	made.bytes[7] = 1;
	assert_int_equal(packet_parse(made.bytes, made.size, &packet), 0);
	assert_true(packet.later_fragment);
	assert_int_equal(packet.destination_port, 0);
	assert_int_equal(packet_answer(made.bytes, made.size, ROUTER, answer), 0);
}

static void protocols_have_names(void **state)
{
	char buffer[PACKET_PROTOCOL_TEXT_MAX];

	assert_string_equal(packet_protocol_to_string(6, buffer), "tcp");
	assert_string_equal(packet_protocol_to_string(17, buffer), "udp");
	assert_string_equal(packet_protocol_to_string(1, buffer), "icmp");
	assert_string_equal(packet_protocol_to_string(255, buffer), "ip-255");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_are_read),    cmocka_unit_test(bad_ones_are_refused),
		cmocka_unit_test(short_payloads_count), cmocka_unit_test(answers_are_whole),
		cmocka_unit_test(some_get_no_answer),   cmocka_unit_test(protocols_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
