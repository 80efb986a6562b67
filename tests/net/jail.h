/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A jail's network for tests: a forked holder in a user and network namespace of its own, which runs
 * functions of the test inside when asked. The test itself plays the session, outside.
 */

#include "service/net/denial.h"

#include <sys/types.h>

typedef struct Jail {
	pid_t holder;
	int control_fd;
	JailSockets sockets;
} Jail;

/* Runs in the holder. text is the caller's; ret_problem goes back to it. */
typedef int (*JailFunction)(const Jail *jail, const char *text, char **ret_problem);

/* Return: 0; a negative errno with *ret_problem, as jail_sockets_open() gave it. */
int jail_start(Jail *ret, char **ret_problem);
void jail_stop(Jail *jail);
/* Return: what the function returned. */
int jail_run(Jail *jail, JailFunction function, const char *text, char **ret_problem);

/* JailFunctions: text is a line of words for ip(8); its exit status comes back. */
int jail_ip(const Jail *jail, const char *text, char **ret_problem);
/* self_test_run() on the holder's tap. The routes are those of jail_routes. */
int jail_self_test(const Jail *jail, const char *text, char **ret_problem);
extern RouteTable jail_routes;

/* jail_routes: every static denied range, some of the host's, a forwarder, allow-ips, one of them equal to a
 * denial, the default; extra
 * denials of /32. */
void jail_routes_make(size_t extra);
void jail_routes_done(void);

/* Setup and teardown: a namespace that is closed as shipped. *state: the Jail and its Denial. closed-jail.c.
 */
int closed_jail(void **state);
int end_jail(void **state);

/* Children of a test that enter a namespace of their own. */
int namespace_enter(void);

/*
 * Run the test program's groups as root and again as an ordinary user, each in a mount namespace whose
 * /dev/net/tun everyone may open. Return: an exit status.
 */
int as_each_user(int (*run)(const char *user));
