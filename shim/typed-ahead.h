/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What was typed before the terminal was ours: the person's terminal has shown it already, or was told not
 * to. It goes to the agent without being shown again.
 */

#include "dbus/base.h"
#include "shim/terminal.h"

#define TYPED_AHEAD_MAX 2050u

/*
 * terminal_claim(), and what waits in the terminal's input until then is written to the PTY. In line mode the
 * terminal has edited it: characters that the PTY would take for keys of its own are quoted (VLNEXT), and the
 * end of the file is one again. Nothing is taken along from a terminal that is shared, or whose PTY the agent
 * has changed already. Return: bytes in rest that the PTY did not take now, and that come first of all keys.
 */
size_t typed_ahead_claim(Terminal *terminal, int master_fd, char rest[static TYPED_AHEAD_MAX]);
