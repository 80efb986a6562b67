/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The name service, asked once for each uid or group and believed for a minute: the one place where the
 * service waits (a directory server may be slow), so it stays rare. What refuses is not kept, and nothing is when
 * /etc/passwd or /etc/group has changed: who was just let in need not wait.
 */

#include <sys/types.h>

#include "dbus/base.h"

#define USERS_KEPT_USEC (60 * USEC_PER_SEC)
#define USERS_KEPT_MAX 256u

typedef struct User {
	uid_t uid;
	gid_t gid;
	char *name, *home, *shell;
} User;

typedef struct Users Users;

int users_new(Users **ret);
Users *users_free(Users *users);
DEFINE_CLEANUP(Users, users_free)

/*
 * The passwd entry of uid; borrowed until the next call. Return: 0; -ENOENT for a uid without entry; -EINVAL
 * for an entry that nobody can use (no absolute home); other negative errnos of the name service.
 */
int users_find(Users *users, uid_t uid, const User **ret);
/* Return: 0; -ENOENT for a name that is no group; other negative errnos. */
int users_group(Users *users, const char *name, gid_t *ret);

/* Pure: does this shell let its owner log in? */
bool shell_is_login(const char *shell);
