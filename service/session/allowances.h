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
 * Open text for the session, or tell an open one's end anew. *ret_prefix: what it means. Return: 0; -EINVAL for
 * no address; -E2BIG above ALLOWANCES_OWN_MAX; -ENOMEM.
 */
int allowances_allow(Allowances *allowances, const char *text, uint64_t end_usec, HostPrefix *ret_prefix,
		     char **ret_problem);
/* Take back the session's own. Return: 0; -ENOENT where there is none; -EINVAL; -ENOMEM. All with
 * *ret_problem. */
int allowances_revoke(Allowances *allowances, const char *text, char **ret_problem);
/*
 * texts (NULL-terminated, or NULL) are what the configuration opens now; without opens, none that it did not
 * open before. Return: 0; -EINVAL with *ret_problem; -ENOMEM, and what is left is of no use.
 */
int allowances_configure(Allowances *allowances, char *const *texts, bool opens, char **ret_problem);
/* The configuration does not open that. text: canonical. */
void allowances_unconfigure(Allowances *allowances, const char *text);
/* text: canonical. */
bool allowances_have(const Allowances *allowances, const char *text);
bool allowances_open_the_same(const Allowances *a, const Allowances *b);
/* Take back what has ended by now. Return: how many. */
size_t allowances_expire(Allowances *allowances, uint64_t now_usec);
/* The next end, or 0. */
uint64_t allowances_next_end(const Allowances *allowances);
