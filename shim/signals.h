/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Signals that launch takes for the agent, read from a descriptor. One that was ignored when launch began is ignored
 * by launch itself (nohup(1)) and by the agent, until the agent handles it: so it is passed on all the same, but for
 * the terminal's end and stop, which are about launch.
 */

#include <signal.h>

#include "dbus/base.h"

/*
 * Block what is taken. *ret_ignored: what launch itself must not mind. Return: 0 with a non-blocking descriptor, a
 * negative errno.
 */
int signals_open(int *ret_fd, sigset_t *ret_ignored);
/*
 * Return: the next signal's number, 0 when there is none now. *ret_key: the kernel made it, for the whole
 * group that has the terminal (a key, a hang-up); else somebody sent it. What signals_share() sent is passed
 * over.
 */
int signals_read(int fd, bool *ret_key);
/* A key that the agent's terminal makes a signal of: our group hears it too, as it would from the terminal.
 */
void signals_share(int number);

/*
 * Stop as number would have stopped us: with our whole group when a key or the terminal makes that signal, so
 * that a pipeline or a wrapping script stops too, else alone. Returns when continued, or at once where nobody
 * could continue us (an orphaned group: setpgid(2)). Return: whether we were stopped.
 */
bool signals_stop_self(int number);
/* End by number, without a core file: it would be launch's, not the agent's. */
_noreturn_ void signals_die_by(int number);
