/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The caller's descriptors above 2 that go to the agent, at their numbers: pipes and regular files. Sockets,
 * directories, terminals and devices lead further than what can be read from them, and stay outside.
 */

#include "service/link/slots.h"

typedef struct Further {
	int fds[SLOTS_FURTHER_MAX]; /* close-on-exec */
	uint8_t numbers[SLOTS_FURTHER_MAX];
	size_t n;
} Further;

/*
 * Before this process opens anything: what is open was handed to it. What would go along and cannot is said (complain.h).
 */
void further_find(Further *ret);
void further_close(Further *further);
