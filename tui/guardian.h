/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who gives the terminal back when this program cannot: a small process that waits for its end, whatever
 * ended it. A shell restores the terminal's modes itself, but nobody leaves the alternate screen, or
 * switches the mouse off.
 *
 * It is a session leader, so that what is sent to the group of this program does not meet it; it holds a
 * pidfd of this program and the terminal, and touches that only if this program died while it had it.
 */

#include <sys/types.h>
#include <termios.h>

#include "dbus/base.h"

typedef struct Guardian {
	pid_t pid; /* 0: there is none */
	int order_fd;
} Guardian;

#define GUARDIAN_INIT ((Guardian){ .order_fd = FD_NONE })

/*
 * Start it. natural: the modes to restore; farewell: what to write (copied by the fork). Return: 0 or a
 * negative errno: the screen can be used without it.
 */
int guardian_start(Guardian *guardian, int terminal_fd, const struct termios *natural, const char *farewell);
/* The terminal is in our hands from now on, with these modes; or, NULL, as it was. */
void guardian_tell(const Guardian *guardian, const struct termios *modes);
/* End it: the terminal is as it was. */
void guardian_stop(Guardian *guardian);
