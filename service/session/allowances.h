/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The addresses that one session may reach beside the internet, and on whose account: the configuration's,
 * and its own (AllowIp, or the variable that it was launched with). An address is open while either has it.
 * Pure.
 */

#include "dbus/base.h"
#include "service/plan/routes.h"

/* Of a session's own. */
#define ALLOWANCES_OWN_MAX 64u

typedef struct Allowance {
	char *text; /* canonical, as ConfigValue.text */
	bool configured, own;
	char *origin, *comment;         /* the configuration's */
	char *own_origin, *own_comment; /* the session's own */
	uint64_t own_end_usec;          /* CLOCK_BOOTTIME; 0: with the session */
} Allowance;

typedef struct Allowances {
	Allowance *entries;
	size_t n;
} Allowances;

void allowances_done(Allowances *allowances);
/* What a configuration with the environment's values says. Return: 0 or -ENOMEM. */
int allowances_read(const Config *config, Allowances *ret);
int allowances_copy(const Allowances *allowances, Allowances *ret);
/* Put them in the place of the configuration's allow-ip values. Return: 0; -E2BIG; -ENOMEM. */
int allowances_write(const Allowances *allowances, Config *config);

/*
 * Open text, or tell an open one's comment and end anew. *ret_prefix: what it means. Return: 0; -EINVAL for
 * no address; -E2BIG above ALLOWANCES_OWN_MAX; -ENOMEM.
 */
int allowances_allow(Allowances *allowances, const char *text, const char *comment, bool configured,
		     uint64_t own_end_usec, HostPrefix *ret_prefix, char **ret_problem);
/* Take back one of the two. Return: 0, also where the configuration's was not there; -ENOENT where the
 * session's own was not; -EINVAL; -ENOMEM. All with *ret_problem. */
int allowances_revoke(Allowances *allowances, const char *text, bool configured, char **ret_problem);
/* Take back what has ended by now. Return: how many. */
size_t allowances_expire(Allowances *allowances, uint64_t now_usec);
/* The next end, or 0. */
uint64_t allowances_next_end(const Allowances *allowances);
