/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets of other programs, and netlink. For the files probes-*.c alone. */

#include "service/inside/probing.h"

#define PROBE_ANSWER_MSEC 200

/* Connect to a socket in the file system, or to an abstract one. Return: a descriptor or a negative errno. */
int probe_connect_path(const char *path, int type);
int probe_connect_abstract(const char *name, int type);
/* Does what is connected send the token of the baits? */
bool probe_hears_token(const Probing *p, int fd);
/*
 * Is who listens there a process of outside? The kernel knows (SO_PEERCRED), and gives a process that has no
 * number here the number 0.
 */
bool probe_peer_is_outside(const Probing *p, int fd);
/* Try stream, packet and datagram sockets there; what answers from outside is a finding. Return: whether one
 * could be connected. */
bool probing_connect(Probing *p, const char *path, bool abstract, unsigned *refused);
/* For each of a table: "@" begins an abstract one; {uid}, {home} and {user} are the session's; NULL ends it. */
void probing_connect_each(Probing *p, const char *const *patterns);

/*
 * Send one request and read the kernel's answer to it (netlink(7)). Return: 0, or its negative errno; that of
 * socket(2) and the like.
 */
int probe_netlink(int protocol, uint16_t type, uint16_t flags, const void *payload, size_t size);
