/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The descriptors of a caller that its agent gets, from Launch to execve(2). Each has a slot: slots 0, 1 and 2 are the
 * agent's own numbers, the others say what number they have there ("further" ones: 63 of `claude <(program)`).
 */

#include "dbus/base.h"

#define SLOTS_MAX 16u /* dbus-daemon(1): the system bus carries so many in a message (max_message_unix_fds) */
#define SLOTS_FIRST_FURTHER 3u
#define SLOTS_FURTHER_MAX (SLOTS_MAX - SLOTS_FIRST_FURTHER)
#define SLOTS_ALL ((1u << SLOTS_MAX) - 1)
#define SLOTS_STANDARD ((1u << SLOTS_FIRST_FURTHER) - 1)
#define SLOTS_NUMBER_MAX 255u /* the last one that shells themselves use (bash) */
#define SLOTS_NONE                              \
	{                                       \
		[0 ... SLOTS_MAX - 1] = FD_NONE \
	}

/*
 * Does each further slot of the set (bit n: slot n) have a number of its own, 3 to SLOTS_NUMBER_MAX, rising, and
 * the others 0, all in the first places?
 */
bool slots_are_valid(uint32_t slots, const uint8_t further[static SLOTS_FURTHER_MAX]);
/* The agent's number of a slot. */
unsigned slot_number(unsigned slot, const uint8_t further[static SLOTS_FURTHER_MAX]);

/*
 * Is it a file of one of the kernel's own file systems? They have the type of regular files: /proc/PID/mem,
 * namespaces. It asks whoever serves the file system, who need not answer. Also true where nobody can tell.
 */
bool descriptor_is_of_kernel(int fd);
