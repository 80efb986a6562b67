/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"

/*
 * The NUL-separated text for bwrap's --args FD (bwrap(1)), and the descriptors that it names. first_fd is the
 * number that the first of them will have in bwrap; the i-th gets first_fd + i. ret_fds borrows the plan's
 * source descriptors, and owned memfds for ENTRY_FILE come as FD_NONE with their bytes to be supplied by the
 * caller from ret_files (same index; NULL for a source descriptor).
 */
typedef struct BwrapArguments {
	char *text;
	size_t size;
	int *fds;              /* borrowed from the plan; FD_NONE for a file */
	const Entry **entries; /* the entry that each descriptor belongs to */
	size_t n_fds;
} BwrapArguments;

void bwrap_arguments_done(BwrapArguments *arguments);
/*
 * Everything up to "--"; the command follows on bwrap's own command line. flags first (namespaces,
 * capabilities, as-pid-1, die-with-parent), then the entries in the plan's order. Return: 0, -ENOMEM.
 */
int bwrap_arguments_make(const Plan *plan, int first_fd, BwrapArguments *ret);
