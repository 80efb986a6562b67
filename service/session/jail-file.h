/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A file of ours in a jail that runs, in the place of another one: read-only and without a name of its own,
 * changed through the descriptor that stays outside.
 */

#include <sys/types.h>

#include "dbus/base.h"

typedef struct JailFilePlace {
	const char *path; /* as the agent follows it; there must be a file, or its place in the jail's /run */
	const char *last_name; /* what the links of the host end at; NULL when they do not end */
	const char *before;    /* a nameless mount there that reads this makes room */
} JailFilePlace;

/*
 * Make the file with that text in the jail's /run and mount it over place. leader: the jail's init, whose pid
 * is known to be right. A child of ours does it in the jail's mount namespace (jail-join.h). Return: 0 with a
 * descriptor of the file; a negative errno.
 */
int jail_file_put(pid_t leader, const JailFilePlace *place, const char *text, int *ret_fd);
/*
 * Its two halves. An empty file that everybody reads, whatever the umask, with *ret_name until it is mounted.
 * Return: a descriptor or a negative errno.
 */
int jail_file_make(int directory_fd, char **ret_name);
/* In the jail's mount namespace: mount it, read-only, on what place_fd stands for. */
int jail_file_mount(int file_fd, int place_fd);
/* Write other text into it. Return: 0 or a negative errno. */
int jail_file_write(int fd, const char *text);
/* Does the agent see this file at path? */
bool jail_file_is_seen(pid_t leader, const char *path, int fd);
/* Is what the agent sees at path a file with this text? */
bool jail_file_reads(pid_t leader, const char *path, const char *text);
