/* SPDX-License-Identifier: MIT */
#include "service/link/siphash.h"

typedef struct SipState {
	uint64_t v0, v1, v2, v3;
} SipState;

static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_rounds(SipState *s, unsigned n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 = rotate(s->v2, 32);
	}
}

uint64_t siphash(const uint8_t key[static 16], const void *bytes, size_t n)
{
	uint64_t k0 = load(key, 8), k1 = load(key + 8, 8), last;
	const uint8_t *p = bytes;
	/* The constants are the paper's: "somepseudorandomlygeneratedbytes". */
	SipState s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
		       k1 ^ 0x7465646279746573u };

	for (const uint8_t *end = p + (n - n % 8); p < end; p += 8) {
		uint64_t word = load(p, 8);

		s.v3 ^= word;
		sip_rounds(&s, 2);
		s.v0 ^= word;
	}
	last = load(p, n % 8) | (uint64_t)(n & 0xff) << 56;
	s.v3 ^= last;
	sip_rounds(&s, 2);
	s.v0 ^= last;
	s.v2 ^= 0xff;
	sip_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
