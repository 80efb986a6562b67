/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who asks for a password where no desktop does: pkttyagent(1), polkit's own agent for terminals, as a child
 * for as long as one call takes. It registers for this process alone, and where the user has a session as a
 * fallback: an agent of that session asks instead. It speaks on the controlling terminal, whatever standard
 * input is.
 *
 * Its modes are restored when it ends, whatever the way: it switches the echo off while a password is typed,
 * and what was typed and not read is dropped, because it may be half a password.
 */

#include <sys/types.h>
#include <termios.h>

#include "dbus/base.h"

#define TEXT_AGENT_PATH "/usr/bin/pkttyagent"

typedef struct TextAgent {
	pid_t pid;    /* 0: there is none */
	int ready_fd; /* ends when it is registered, or has gone */
	int terminal_fd;
	bool saved;
	struct termios modes;
} TextAgent;

#define TEXT_AGENT_INIT ((TextAgent){ .ready_fd = FD_NONE, .terminal_fd = FD_NONE })

/*
 * Start it. Return: 0, and ready_fd becomes readable when it is registered (or could not be); -ENOTTY without
 * a controlling terminal in the foreground; another negative errno, -ENOENT where it is not installed. A call
 * that needs it is then still answered, by saying that there was nobody to ask.
 */
int text_agent_start(TextAgent *agent);
/* Wait until ready_fd says so. */
void text_agent_wait(const TextAgent *agent);
/* Has it been stopped since the last look? Then nobody asks, until it is continued (SIGCONT). */
bool text_agent_was_stopped(const TextAgent *agent);
/* Is the terminal this process group's, so that a question can be answered? */
bool text_agent_has_terminal(const TextAgent *agent);
/* End it and give the terminal back. */
void text_agent_stop(TextAgent *agent);
