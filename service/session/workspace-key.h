/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A name for what belongs to a workspace, in a directory that keeps the key of all such names: nobody who does
 * not know the key finds two workspaces of one name.
 */

#include <sys/types.h>

#include "dbus/base.h"

#define WORKSPACE_KEY_FILE ".key"
#define WORKSPACE_KEY_LENGTH 13u /* 64 bits in digits of five */

/* The key is made where there is none. Return: 0; a negative errno (-EPERM: what is there is no key). */
int workspace_key(int directory_fd, uid_t uid, const char *workspace,
		  char ret[static WORKSPACE_KEY_LENGTH + 1]);
