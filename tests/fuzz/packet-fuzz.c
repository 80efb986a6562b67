/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/plan/packet.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly that size, so that a byte too far is noticed. */
	_cleanup_free_ uint8_t *copy = malloc(size ?: 1);
	uint8_t answer[PACKET_ANSWER_MAX];
	Packet packet, quoted;
	size_t n;

	assert(copy);
	memcpy(copy, data, size);
	n = packet_answer(copy, size, 0xc0000008, answer);
	if (packet_parse(copy, size, &packet) < 0) {
		assert(n == 0);
		return 0;
	}
	assert(size >= 20 && (n > 0) == packet.answerable && n <= sizeof(answer));
	if (n == 0)
		return 0;
	/* The answer is a packet, and is no reason for another one. */
	assert(packet_parse(answer, n, &quoted) == 0);
	assert(quoted.protocol == PACKET_ICMP && quoted.destination == packet.source && !quoted.answerable);
	return 0;
}
