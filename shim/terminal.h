/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The person's terminal, and the PTY that stands for it inside. Whatever is changed here is given back by
 * terminal_release(), on every way out.
 *
 * The terminal's description that we got is the shell's too: O_NONBLOCK set on it would make the shell's
 * reads fail. So the terminal is opened anew; where that is not permitted its descriptor is used as it is.
 */

#include <sys/ioctl.h>
#include <termios.h>

#include "dbus/base.h"
#include "shim/streams.h"

typedef struct Terminal {
	TerminalUse use;
	int in_fd, out_fd;      /* ours; FD_NONE without a terminal */
	bool blocking;          /* they could not be opened anew */
	bool changed;           /* its modes are not those in saved */
	struct termios saved;   /* its own modes, as they were when we changed them last */
	struct termios applied; /* ours, while changed */
	struct termios given;   /* what the PTY was made with */
} Terminal;

#define TERMINAL_INIT ((Terminal){ .use = TERMINAL_NONE, .in_fd = FD_NONE, .out_fd = FD_NONE })

/* Return: 0, also when there is no terminal; -ENOMEM, -EMFILE. */
int terminal_open(const Streams *streams, Terminal *ret);
void terminal_done(Terminal *terminal);

/*
 * Make the PTY: the terminal's modes and size; its number is not that of our controlling terminal. Return: 0;
 * -ENOSPC when the system has no more of them, ... The slave is for the agent alone: it must be closed here
 * before the end of the output can be seen.
 */
int terminal_make_pty(Terminal *terminal, int *ret_master_fd, int *ret_slave_fd);

/* Has a job control shell put us in the foreground? A terminal that is not our session's has no such thing.
 */
bool terminal_is_foreground(const Terminal *terminal);
/* Is it there no more (hung up)? */
bool terminal_is_gone(const Terminal *terminal);
/*
 * Has the agent made its PTY one that it reads keys from: without line mode, or with the echo changed? What
 * it does to the PTY is what it would have done to the terminal.
 */
bool terminal_pty_is_taken(const Terminal *terminal, int master_fd);

/*
 * Does the terminal put a carriage return before each newline now? The PTY did so already: what it made has
 * to be taken out again.
 */
bool terminal_makes_returns(const Terminal *terminal);

/*
 * Do the keys that wait belong to the agent? On a terminal that is shared only while we hold it and nobody
 * has changed its modes since.
 */
bool terminal_keys_are_ours(const Terminal *terminal, int master_fd);

/*
 * Bring the terminal's modes to what is right for the PTY's, in the foreground only. Whoever shares the
 * terminal with others changes no more of it than the agent did: its output stays as the agent's PTY has it;
 * and nothing while one of the others has taken line mode or the echo from it.
 */
void terminal_claim(Terminal *terminal, int master_fd);
/*
 * After we may have been away: where the shell has set modes of its own, ours are none any more, and there is
 * nothing to give back.
 */
void terminal_revisit(Terminal *terminal);
/*
 * Give it back its own modes; in the background only if nobody has set others since. With flush, what was
 * typed and not read is dropped.
 */
void terminal_release(Terminal *terminal, bool flush);

/* Copy the size to the PTY; the kernel tells the agent (ioctl_tty(2)). Return: whether it was another one. */
bool terminal_copy_size(const Terminal *terminal, int master_fd);
