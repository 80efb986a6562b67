/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Files of the person's that git's settings name: what it ignores, and the attributes of files. Their content is shown
 * to agents, so no link that an agent could have made may lead to another file.
 */

#include "dbus/base.h"
#include "service/plan/request.h"

#define GIT_PERSON_BYTES_MAX 65536u

/*
 * Read path whole. Directories on its way are no links; the file itself may be one, to a path without links, where it
 * lies in the home itself: in every other directory an agent of some session could have made it. home: canonical. Return: 0; -ENOENT; -ELOOP, -EACCES, -EBADMSG (no file, too long, of
 * another user); -ENOMEM.
 */
int git_person_read(const SessionRequest *request, const char *home, const char *path, char **ret);
