/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The file that keeps a name free on the host while a session runs: a mask of the entry-point guard lies on
 * it. One line of text, which is a comment to a shell, mode 0444, no second name. Everything here works below
 * a directory that is held, and follows no link.
 */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * Put one at name, or find it there. Return: 1 made; 0 there already; -EEXIST when anything else is there;
 * -EOPNOTSUPP where the file system keeps no modes or owners; another negative errno. After an error nothing
 * of ours is there.
 */
int placeholder_file_make(int directory_fd, const char *name, uid_t uid);
/* Is it one, whole? */
bool placeholder_file_stands(int directory_fd, const char *name, uid_t uid);
/* Remove it, if it is one, or the beginning of one; anything else stays. */
void placeholder_file_remove(int directory_fd, const char *name, uid_t uid);
