/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Files copied between a project's directory and the host's, within bounds: both sides by descriptors alone, no link
 * is followed, and whatever changes meanwhile, a name stands for nothing or for a whole copy.
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "dbus/base.h"

#define COPY_FILES_MAX 200u
#define COPY_BYTES_MAX (64u << 20)

typedef struct CopyBudget {
	unsigned n_files;
	uint64_t n_bytes;
	uint64_t until_usec; /* CLOCK_MONOTONIC */
	bool spent;          /* something was left out */
} CopyBudget;

CopyBudget copy_budget(void);
/* Is there time for more? */
bool copy_budget_lasts(CopyBudget *budget);
/* Is there room for a file of that size? It is taken. */
bool copy_budget_take(CopyBudget *budget, uint64_t size);

/* A regular file of the user's. Return: a descriptor; -ENOENT for anything else, another negative errno. */
int copy_open(int directory_fd, const char *name, uid_t uid, struct stat *ret);
/* A directory of the user's, made where there is none. Return: a descriptor or a negative errno. */
int copy_directory_open(int directory_fd, const char *name, uid_t uid, bool make);
/* The first st->st_size bytes of fd become name, with their time. replace: in the place of another file; durable: with
 * fsync(2). Return: 0 or a negative errno. */
int copy_file(int fd, const struct stat *st, int directory_fd, const char *name, bool replace, bool durable);
/*
 * Move name from one directory to another on another file system: files, directories and links, one by one, nothing
 * in the place of what is there. What does not fit into the budget stays.
 */
void copy_move(int from_fd, int to_fd, const char *name, uid_t uid, CopyBudget *budget);
