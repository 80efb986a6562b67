/* SPDX-License-Identifier: MIT */
#pragma once

/* The external programs of a session (bwrap, pasta, git), and what every child of it sheds before it runs
 * one. */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * Find name in /usr/bin, /bin, /usr/sbin, /sbin, in this order; no variable moves it. What is found must be a
 * regular file (links of root are followed), root's, executable, writable by root alone and not set-id.
 * Return: 0 with an absolute path; -ENOENT when it is nowhere; -EPERM when the first that exists is none to
 * be trusted; both with *ret_problem (cause and fix; package names the package that brings it).
 */
int program_find(const char *name, const char *package, char **ret_path, char **ret_problem);

/*
 * In a child: default dispositions and an empty mask of all signals (a pasta that inherits an ignored SIGPIPE
 * refuses to start), and SIGKILL when parent dies. parent: the pid of the process that forked; a child whose
 * parent died before this call ends here. Call it after every change of credentials or user namespace: each
 * of them clears the parent-death signal (prctl(2), PR_SET_PDEATHSIG).
 */
void program_child_reset(pid_t parent);

/*
 * In a child: put in, out and error at 0, 1 and 2 (FD_NONE: /dev/null) and close everything above 2, then
 * execute. The three must be above 2. Does not return: ends with 127 after one line on descriptor 2 when it
 * cannot execute.
 */
_noreturn_ void program_execute(const char *path, char *const *argv, char *const *environment, int in,
				int out, int error);

/* /dev/null, read and write, above 2 and O_CLOEXEC. Return: a descriptor or a negative errno. */
int program_open_null(void);

/* pidfd_open(2), which has no wrapper in older libraries. Return: a descriptor (O_CLOEXEC) or a negative
 * errno. */
int program_pidfd(pid_t pid);
/*
 * The same for a process that is no child of ours but one of parent's, so that a pid which was given away
 * meanwhile is not taken for it. Return: a descriptor; -ESRCH when it has ended; another negative errno.
 */
int program_pidfd_below(pid_t pid, pid_t parent);
/* Send signal through pidfd. Return: 0 or a negative errno (-ESRCH: it has ended). */
int program_signal(int pidfd, int signal);
/*
 * Reap the child behind pidfd if it has ended. Return: 1 with its status as wait(2) encodes it in *ret_status
 * (may be NULL); 0 when it still runs; negative errno.
 */
int program_reap(int pidfd, int *ret_status);
/*
 * Kill the child behind *pidfd, wait until it is reaped, and close the descriptor. Bounded: a process that
 * was sent SIGKILL ends; timeout_msec is for one that hangs in the kernel. Does nothing on FD_NONE.
 */
void program_destroy(int *pidfd, int timeout_msec);
