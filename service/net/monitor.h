/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * Read what waits on a watching socket (JailSockets.watch_fd), never blocking.
 * *ret_wire_up is set when a link message says that jail0 has LOWER_UP, cleared when one says that it has
 * not; untouched otherwise. *ret_changes counts the messages read. Return: 0; -ENOBUFS when the kernel
 * dropped events (read everything back then); another negative errno.
 */
int monitor_read(int watch_fd, bool *wire_up, unsigned *ret_changes);
/* Ask the kernel now. Return: 1 up, 0 not, negative errno. */
int monitor_wire_is_up(int route_fd);
