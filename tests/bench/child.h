/* SPDX-License-Identifier: MIT */
#pragma once

/* Programs that a measurement starts, with or without a terminal of their own, and the clock. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Child {
	pid_t pid;
	int pidfd;
	int master_fd; /* the terminal's other side; FD_NONE without one */
} Child;

/* One line on standard error, then exit with 1; error: an errno or 0. */
__attribute__((noreturn)) void die(const char *what, int error);

/* CLOCK_MONOTONIC. Return: nanoseconds. */
uint64_t now_nsec(void);

/*
 * Start command (NULL-terminated, an absolute path first) in a session of its own. terminal: 0, 1 and 2 are a
 * new terminal of 24 lines of 80 columns, and it controls; otherwise they are /dev/null and our own standard
 * error.
 */
void child_start(Child *child, char *const *command, bool terminal);
/* Reap it once its pidfd is readable, and close everything; dies when it did not exit with 0. */
void child_finish(Child *child, const char *name);
/* Wait for the child, reading away what it writes, and finish it. */
void child_wait(Child *child, const char *name);
