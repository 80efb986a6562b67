/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "dbus/base.h"

/*
 * The directory below CS_TEMP_ROOT/UID that belongs to one workspace: 13 characters of [a-z2-7], the 64 bits
 * of a keyed hash (SipHash-2-4) of its path. The key lies beside the directories, where no agent sees it; so
 * nobody can choose a path that shares another's. CS_TEMP_ROOT and UID are made by the service. root:
 * CS_TEMP_ROOT, another one in tests. Return: 0 with the directory's path; -ENOENT when the service has made
 * none for this user; -EPERM with *ret_problem for a link, a wrong owner or mode; another negative errno.
 */
int temp_root_make(const char *root, uid_t uid, const char *workspace, char **ret, char **ret_problem);
