/* SPDX-License-Identifier: MIT */
#pragma once

/* The 22 checks, each measured by one function; the table is in checks.c, what each row means stands there.
 */

#include "service/inside/battery.h"

void check_marker(Battery *b);     /* 01 */
void check_privileges(Battery *b); /* 02 */
void check_home(Battery *b);       /* 03 */
void check_secrets(Battery *b);    /* 04 */
void check_display(Battery *b);    /* 05 */
void check_capabilities(Battery *b);
void check_pid_namespace(Battery *b);
void check_ipc_namespace(Battery *b);
void check_uts_namespace(Battery *b);
void check_devices(Battery *b); /* 10 */
void check_tmp(Battery *b);
void check_run(Battery *b);
void check_system_secrets(Battery *b);
void check_netrc(Battery *b);
void check_xauthority(Battery *b); /* 15 */
void check_git(Battery *b);
void check_scope(Battery *b);
void check_own_files(Battery *b);
void check_routes(Battery *b);
void check_reach(Battery *b); /* 20 */
void check_agent(Battery *b);
void check_entry_guard(Battery *b); /* 22 */

/* checks-self.c: that namespace is not the service's, of this process and of those of a running session; for
 * the row that the kind is nearest to. */
void check_namespace(Battery *b, NamespaceKind kind);
/* checks-filter.c: every refusal of the filter, for row 02. */
void check_filter(Battery *b);
/* checks-anchors.c: what is mounted over what agents may write stays there, in every mount namespace that
 * they can make; for the rows whose entries those are. */
void check_anchors(Battery *b, const char *row);
/* checks-contents.c: private directories hold what the plan has there and nothing else; likewise. */
void check_contents(Battery *b, const char *row);
/* checks-listeners.c: nobody but the session's own ports listens in a jail that just began; for row 20. */
void check_listeners(Battery *b);
/* dns.c: does the name server at that address (host byte order) answer? Return: milliseconds; -ETIME;
 * another negative errno. */
int dns_ask(uint32_t address, int timeout_msec);
#define DNS_MSEC 5000
