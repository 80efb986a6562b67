/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The configuration file edited by the service: one allow-ip more or less (config-edit.h), the owner, the
 * mode and every other byte kept. Whatever happens while it does (a kill, the power), the old file or the new
 * one is there, whole. It does not follow links, and does not touch a file that no launch would read
 * (config-file.h).
 */

#include "dbus/base.h"

typedef struct AllowIpEdit {
	const char *address, *comment; /* comment: of one that is added */
	bool remove;
	bool check; /* say what would happen, and change nothing */
} AllowIpEdit;

/*
 * path: CS_CONFIG_PATH; another one in tests. lock_path: a file that root alone may open, made where it is
 * missing, locked while the file is read and replaced. A file that is missing is made, root's, 0644. Return:
 * 1 when the file was changed; 0 when it says so already; all others with *ret_problem: -EINVAL (address,
 * comment, or a file that no launch would read), -ENOENT (nothing to remove), -EAGAIN (somebody else is
 * editing it), other negative errnos of the file system.
 */
int allow_ip_file_edit(const char *path, const char *lock_path, const AllowIpEdit *edit, char **ret_problem);
