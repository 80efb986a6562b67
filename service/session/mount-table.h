/* SPDX-License-Identifier: MIT */
#pragma once

/* What is mounted where, as the kernel says it (proc_pid_mountinfo(5)): which places show the same thing. */

#include "dbus/base.h"

typedef struct MountTable MountTable;

/* Read this process's table. Return: 0; -E2BIG above 4096 mounts; -EBADMSG; another negative errno. */
int mount_table_read(MountTable **ret);
/* The same from a text in its format, which is taken. */
int mount_table_parse(char *text, MountTable **ret);
MountTable *mount_table_free(MountTable *table);
DEFINE_CLEANUP(MountTable, mount_table_free)

/*
 * Call each for every other path at which what is at the canonical path is mounted too, by the table alone:
 * it may be hidden there by a later mount. Return: 0, -ENOMEM, or what each returned if not 0.
 */
int mount_table_aliases(const MountTable *table, const char *path,
			int (*each)(void *userdata, const char *alias), void *userdata);
