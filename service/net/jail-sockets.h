/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/* What the holder opens in its own fresh network namespace and passes to the session. */
typedef struct JailSockets {
	int route_fd;  /* NETLINK_ROUTE, bound, to program and read back */
	int watch_fd;  /* NETLINK_ROUTE, bound, joined to the link, address, neighbour, route and rule groups
			*/
	int diag_fd;   /* NETLINK_SOCK_DIAG, bound */
	int tap_fd;    /* the persistent tap jail0, attached: it must be closed by all before pasta starts */
	int ledger_fd; /* the tun deny0, for the session alone; FD_NONE where none can be had */
	bool ipv6_off; /* disable_ipv6 could be written */
} JailSockets;

#define JAIL_SOCKETS_INIT ((JailSockets){ FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE, false })

void jail_sockets_close(JailSockets *sockets);

/*
 * In the holder, after unshare(2) and the id maps: switch IPv6 off where it can be, make the tap, open and
 * bind the sockets. Return: 0; a negative errno with *ret_problem that tells apart: /dev/net/tun absent,
 * denied by mode, denied by a device cgroup or an LSM, the kernel without tun. Without a ledger it is 0, with
 * *ret_problem saying why there is none.
 */
int jail_sockets_open(JailSockets *ret, char **ret_problem);
