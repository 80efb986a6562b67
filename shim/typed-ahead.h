/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What was typed before the terminal was ours: the person's terminal has shown it already, or was told not
 * to. It goes to the agent without being shown again.
 */

#include "dbus/base.h"
#include "shim/terminal.h"

/*
 * terminal_claim(), and what waits in the terminal's input until then is written to the PTY. In line mode the
 * terminal has edited it: characters that the PTY would take for keys of its own are quoted (VLNEXT), and the
 * end of the file is one again. Nothing is taken along from a terminal that is shared, or whose PTY the agent
 * has changed already.
 */
void typed_ahead_claim(Terminal *terminal, int master_fd);
