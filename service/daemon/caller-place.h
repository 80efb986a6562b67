/* SPDX-License-Identifier: MIT */
#pragma once

/* Does the calling process live in the namespaces and in the root directory of the service? */

#include <sys/types.h>

#include "dbus/base.h"

/*
 * Return: 1; 0 with *ret_cause, a sentence without its end that says what differs; -ESRCH when the process has
 * gone; other negative errnos when it cannot be shown. The caller holds the process by a pidfd.
 */
int caller_place_check(pid_t pid, const char **ret_cause);

/*
 * Pure. The ids of the mounts at "/" in a text of /proc/PID/mountinfo, each with a space before it. Return: 0
 * with *ret_ids to be freed; -EBADMSG when there is none; -ENOMEM.
 */
int caller_place_roots(const char *mountinfo, char **ret_ids);
/* Pure. In how many pid namespaces, from the one of /proc on, is the process of this /proc/PID/status? */
size_t caller_place_pid_depth(const char *status);
