/* SPDX-License-Identifier: MIT */
#pragma once

/* How a process of ours enters a jail that runs. The order is security: jail-join.c. */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * In a child of the session that is not dumpable: setns(2), with the jail's pidfd or with one of its namespaces, and
 * what has to follow it. Return: 0 or a negative errno.
 */
int jail_enter(int fd, int namespaces);

/* Return: the mount namespace of the jail whose init leader is, or a negative errno. */
int jail_mounts_open(pid_t leader);

/* In the child, in the jail's mount namespace and with its "/" as root. Return: 0 or a negative errno. */
typedef int (*JailJoined)(void *userdata);

/*
 * Call function in a child in this mount namespace of a jail, and wait for it, two seconds at most. Return: what
 * it returned; -ETIMEDOUT when it was killed; another negative errno.
 */
int jail_join(int mounts_fd, JailJoined function, void *userdata);
