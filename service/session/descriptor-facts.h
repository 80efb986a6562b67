/* SPDX-License-Identifier: MIT */
#pragma once

/* Which of the caller's descriptors are files, and what an agent can do with them. */

#include "service/plan/mounts.h"
#include "service/session/terminal-keys.h"

typedef struct DescriptorFacts {
	PlanDescriptor descriptors[KEYS_MAX];
	char *paths[KEYS_MAX]; /* owned; named by the descriptors */
	size_t n;
} DescriptorFacts;

void descriptor_facts_done(DescriptorFacts *facts);
/*
 * Regular files and devices but for /dev/null; pipes, sockets and terminals are none. writable: opened for
 * writing, or this process, which is the caller's, could open it so. Return: 0 or -ENOMEM.
 */
int descriptor_facts_find(const int fds[static KEYS_MAX], const uint8_t further[static SLOTS_FURTHER_MAX],
			  DescriptorFacts *ret);
