/* SPDX-License-Identifier: MIT */
#pragma once

/* Whoever listens on a session's socket: unix(7), SO_PEERCRED. */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * Who listens at the other end of a connected socket: unix(7), SO_PEERCRED names who called listen(2).
 * Return: 0, or -EPERM when it is not exactly this process of this user.
 */
int link_peer_check(int fd, pid_t pid, uid_t uid);
/* Is that process stopped, so that it cannot answer? */
bool link_peer_is_stopped(int fd);
