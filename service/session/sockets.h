/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sockets and FIFOs in the file system by which an agent could talk to something outside: a read-only mount
 * stops neither. The plan covers what is found here; what lies in a place that is private anyway is left out.
 */

#include "dbus/base.h"
#include "service/link/pack.h"

#define SOCKETS_FOUND_MAX 64u
#define SOCKETS_LISTED_MAX 1024u /* before directories stand for them */
/* Debian Policy 9.2.2: below are the accounts of the system. */
#define SYSTEM_UIDS 1000u

/*
 * Read the table of Unix sockets (proc(5), /proc/net/unix) from text and collect the paths that other
 * programs can talk to: listening ones, and bound datagram ones. Each once, in byte order.
 * Whatever lies below a private directory is left out, but not what lies below a shown one: of both, the
 * longest decides. Name services are left out as well (name-services.h). Return: 0; -E2BIG above SOCKETS_LISTED_MAX; -ENOMEM.
 */
typedef struct SocketPlaces {
	const char *const *private_directories; /* NULL-terminated, as all of these */
	const char *const *shown_directories;
} SocketPlaces;

/* Would an agent see path, as far as places tell, and is it none of a name service? */
bool sockets_path_is_seen(const char *path, const SocketPlaces *places);

int sockets_parse(FILE *text, const SocketPlaces *places, char ***ret);

/*
 * The same for this machine, narrowed to what this process could open for writing, with the sockets that
 * their names do not place (socket-search.h) and the FIFOs that lie beside. Where there are too many, a
 * directory of this user's stands for what lies in it (socket-fold.h); of FIFOs that this user made, some are
 * left out, with a warning: an agent can make any number of them, and must not keep its person from the next
 * session. Return: 0; -E2BIG with *ret_problem; a negative errno.
 */
int sockets_find(const SocketPlaces *places, char ***ret, char ***warnings, char **ret_problem);
