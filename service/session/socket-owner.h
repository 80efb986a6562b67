/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which program of the jail sends a packet: its socket by NETLINK_SOCK_DIAG, then the process that has that
 * socket open, among the descendants of the jail's init. What an agent does to its names, threads and
 * descriptors costs only its own attribution: every walk is bounded, and so is their number.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/net/diag.h"

/* In a second; who asks more often is told nothing. */
#define SOCKET_OWNER_LOOKUPS_MAX 50u
/* Processor time of a second; beyond it likewise. */
#define SOCKET_OWNER_USEC_MAX (100 * USEC_PER_MSEC)
/* Of one look-up: processes, and threads and descriptors of all of them together. */
#define SOCKET_OWNER_PROCESSES_MAX 256u
#define SOCKET_OWNER_STEPS_MAX 4096u

typedef struct SocketOwner {
	char name[16]; /* of the process (proc(5), comm): any bytes, "" when nobody was found */
	int pid;       /* in the jail's pid namespace; 0 when not known */
} SocketOwner;

typedef struct SocketOwners SocketOwners;

/* diag_fd is borrowed (JailSockets). Return: NULL without memory. */
SocketOwners *socket_owners_new(int diag_fd);
SocketOwners *socket_owners_free(SocketOwners *owners);
DEFINE_CLEANUP(SocketOwners, socket_owners_free)

/* The jail's init; 0, as before, finds nobody. */
void socket_owners_set_leader(SocketOwners *owners, pid_t leader);
/* now_usec: CLOCK_MONOTONIC. Who was found lately by the same protocol and source port is found again. */
SocketOwner socket_owners_find(SocketOwners *owners, const SocketPair *pair, uint64_t now_usec);
