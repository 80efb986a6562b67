/* SPDX-License-Identifier: MIT */
#pragma once

/* The caller's descriptors for the agent, by their slots (service/link/slots.h), as the service handed them on, examined before any of them goes
 * inside. */

#include "dbus/base.h"
#include "service/plan/request.h"

#define KEYS_MAX SLOTS_MAX

typedef struct TerminalKeys {
	int fds[KEYS_MAX];   /* FD_NONE: the key is closed inside, or is the terminal */
	int terminal_fd;     /* the PTY's slave, or FD_NONE */
	char *terminal_path; /* "/dev/pts/N", or NULL */
} TerminalKeys;

#define TERMINAL_KEYS_INIT ((TerminalKeys){ SLOTS_NONE, FD_NONE, NULL })

void terminal_keys_done(TerminalKeys *keys);
/*
 * A new PTY of the session's own, for a program that runs in an agent's place and has no person. *ret_fd is
 * its master; whoever closes it hangs the terminal up. Return: 0; a negative errno with *ret_problem.
 */
int terminal_keys_make(TerminalKeys *keys, int *ret_fd, char **ret_problem);
/*
 * Take fds (SPAWN_FD_STDIN and on; FD_NONE where nothing is open) over and hold them against the request.
 * Refused with -EINVAL and *ret_problem: a directory or O_PATH descriptor, a terminal that is not declared as
 * one, a declared one that is none or no PTY's slave below /dev/pts, two different terminals.
 */
int terminal_keys_take(TerminalKeys *keys, const int fds[static KEYS_MAX], const SessionRequest *request,
		       char **ret_problem);
