/* SPDX-License-Identifier: MIT */
#pragma once

/* What a clock says, as one number. */

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_usec(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline int64_t clock_msec(clockid_t clock)
{
	return (int64_t)(clock_usec(clock) / 1000);
}
