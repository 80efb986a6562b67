/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "dbus/base.h"

/*
 * In a child: make a user namespace that maps uid and gid to themselves alone, and, when network is set, a
 * network namespace that it owns. Return: 0; a negative errno with *ret_problem, which tells apart: the
 * kernel without them, switched off (max_user_namespaces, unprivileged_userns_clone), the limit reached,
 * AppArmor's restriction, a container's seccomp filter.
 */
int user_namespace_enter(uid_t uid, gid_t gid, bool network, char **ret_problem);
/* Does AppArmor restrict user namespaces to programs whose profile permits them (Ubuntu's sysctl)? */
bool user_namespaces_are_restricted(void);
/* Is a seccomp filter on this process (proc(5), "Seccomp:" in status)? */
bool seccomp_is_on(void);
/* Write /proc/self/{setgroups,uid_map,gid_map} (user_namespaces(7)). Return: 0 or a negative errno. */
int user_namespace_map(uid_t uid, gid_t gid);
