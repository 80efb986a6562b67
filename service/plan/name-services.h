/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The sockets of other programs that agents have, so that getpwnam(3) and the like know the names of users from a directory
 * server: all that can be asked of these is such names. Everything else that answers such questions can do more, which
 * docs/security.md says of each, and stays hidden or is covered.
 */

#include <sys/types.h>

#include "dbus/base.h"

/* index from 0. Return: the path of the socket, NULL at the end. */
const char *name_service_at(size_t index);
/* Is path, which may begin with /var/run for /run, one of them, and one that agents of this user have? */
bool name_service_is(const char *path, uid_t uid);
