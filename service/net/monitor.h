/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * Read what waits on a watching socket (JailSockets.watch_fd), never blocking.
 * *wire_up is set when jail0 has LOWER_UP and the kernel sends by it, cleared when not; untouched when no
 * message was about jail0. *ret_changes counts the messages read. Return: 0; -ENOBUFS when the kernel
 * dropped events (read everything back then); another negative errno.
 */
int monitor_read(int watch_fd, bool *wire_up, unsigned *ret_changes);
/* Ask the kernel now. Return: 1 up, 0 not, negative errno. */
int monitor_wire_is_up(int route_fd);
