/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names in a directory that an agent has written, and perhaps writes now: no link is followed, nothing that is
 * there is opened but directories, and nothing outside of it is touched, whatever is planted.
 */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * Open the directory at path below directory_fd. make: what is missing on the way, 0700; anything else that
 * stands in the place of a directory is removed; a mode that keeps its owner out is changed. Return: a
 * descriptor for reading; -ENOENT, -ENOTDIR, -EPERM for another user's; another negative errno.
 */
int project_directory_open(int directory_fd, const char *path, uid_t uid, bool make);
/* The same for the directory in which path lies; *ret_name: the last component, in path. */
int project_parent_open(int directory_fd, const char *path, uid_t uid, bool make, const char **ret_name);
/*
 * A file at path that something can be mounted on. Another thing of its name is removed, but not a directory
 * in which something is. Return: 0; -ENOTEMPTY; another negative errno.
 */
int project_file_make(int directory_fd, const char *path, uid_t uid);
/* A link with that text at path, unless a directory that is not empty stands there. Return: 0, -errno. */
int project_link_make(int directory_fd, const char *path, uid_t uid, const char *text);
/* Remove what is at path, unless it is a directory that is not empty. Best effort. */
void project_name_remove(int directory_fd, const char *path, uid_t uid);
/* Remove an empty file. Best effort. */
void project_file_remove(int directory_fd, const char *path, uid_t uid);
/* Remove an empty directory. Return: is it gone? */
bool project_directory_remove(int directory_fd, const char *path, uid_t uid);
/* Return: how many names, at most 2; a negative errno. */
int project_directory_count(int fd);
