/* SPDX-License-Identifier: MIT */
#pragma once

/* Verify of the manager: a launch of an agent whose session runs the checks in the agent's place. */

#include "service/daemon/launch.h"
#include "service/daemon/row-list.h"

/* From the first check to the end of the session. */
#define VERIFY_DEADLINE_USEC (600 * USEC_PER_SEC)

extern const LaunchKind launch_of_verify;

/* How the checks ended. */
typedef struct VerifyEnd {
	bool failed;     /* the program that checks says that something did */
	const char *why; /* what ended them before they were done, in words: a row of its own, which fails; or
			    NULL */
} VerifyEnd;

/*
 * The verdict, once: list may get a last row, which is then *ret_last (else NULL). Return: 1 passed, 0
 * failed, or -ENOMEM.
 */
int verify_conclude(RowList *list, const VerifyEnd *end, const Row **ret_last);
/* Answer a call of Verify, either member. Return: 0, or a negative errno when nothing was sent. */
int verify_reply(sd_bus_message *call, const RowList *list, bool passed);
/* Keep what the session says, and send it on. */
void verify_take_rows(const Signals *signals, const Client *client, const char *row_call, RowList *list,
		      const LinkRow *rows, uint32_t n);
