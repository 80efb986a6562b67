/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How much of the service's time each user has left: a token bucket for each uid, counted in microseconds of
 * work. Whatever is done for a user is charged after it was done, with what it took: calls, packets of the
 * user's sessions, bytes of the log. A user may save BUDGET_BURST_USEC, gets one part in BUDGET_SHARE of the
 * time back, and owes at most BUDGET_DEBT_USEC. Pure: the caller says what time it is, and time that goes
 * backwards gives nothing.
 */

#include <sys/types.h>

#include "dbus/base.h"

#define BUDGET_BURST_USEC (500 * USEC_PER_MSEC)
#define BUDGET_DEBT_USEC (1 * USEC_PER_SEC)
#define BUDGET_SHARE 4u

/* How many of something came in one second. */
typedef struct SecondCount {
	uint64_t second_usec;
	uint32_t n;
} SecondCount;

/* Return: whether n more are within most of this second; they are counted then. */
bool second_count(SecondCount *count, uint64_t now_usec, uint32_t n, uint32_t most);

typedef struct Budget Budget;

/* Return: NULL without memory. */
Budget *budget_new(void);
Budget *budget_free(Budget *budget);
DEFINE_CLEANUP(Budget, budget_free)

/* Return: 0 or -ENOMEM (the work is free then). */
int budget_charge(Budget *budget, uid_t uid, uint64_t now_usec, uint64_t work_usec);
/* How long uid has to wait; 0 for a user who has something left. */
uint64_t budget_wait(const Budget *budget, uid_t uid, uint64_t now_usec);
/* Users that are remembered: those whose bucket was not full when somebody was charged last. */
size_t budget_users(const Budget *budget);
