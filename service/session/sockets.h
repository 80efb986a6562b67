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
 * private_directories: whatever lies below one of them is left out; so are name services (nscd, sssd),
 * without which programs inside know no user names. Return: 0; -E2BIG above SOCKETS_FOUND_MAX; -ENOMEM.
 */
int sockets_parse(FILE *text, const char *const *private_directories, char ***ret);

/*
 * The same for this machine, narrowed to what this process could open for writing, with the FIFOs that lie
 * beside such sockets. Return: 0; -E2BIG with *ret_problem; a negative errno.
 */
int sockets_find(const char *const *private_directories, char ***ret, char **ret_problem);
