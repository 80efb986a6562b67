/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sockets and FIFOs in the file system by which an agent could talk to something outside: a read-only mount
 * stops neither. The plan covers what is found here; what lies in a place that is private anyway is left out.
 */

#include "dbus/base.h"
#include "service/link/pack.h"

#define SOCKETS_FOUND_MAX 64u

/*
 * Read the table of Unix sockets (proc(5), /proc/net/unix) from text and collect the paths that other
 * programs can talk to: listening ones, and bound datagram ones. Each once, in byte order.
 * Whatever lies below a private directory is left out, but not what lies below a shown one: of both, the
 * longest decides. Name services (nscd, sssd) are left out as well, without which programs inside know no
 * user names. Return: 0; -E2BIG above SOCKETS_FOUND_MAX; -ENOMEM.
 */
typedef struct SocketPlaces {
	const char *const *private_directories; /* NULL-terminated, as all of these */
	const char *const *shown_directories;
} SocketPlaces;

int sockets_parse(FILE *text, const SocketPlaces *places, char ***ret);

/*
 * The same for this machine, narrowed to what this process could open for writing, with the FIFOs that lie
 * beside such sockets. Return: 0; -E2BIG with *ret_problem; a negative errno.
 */
int sockets_find(const SocketPlaces *places, char ***ret, char **ret_problem);
