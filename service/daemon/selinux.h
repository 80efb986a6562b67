/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The caller's SELinux context (selinux(8)). A session must not leave the domain of the process that asked for
 * it, so it is executed in that one and not in the service's.
 */

#include <sys/types.h>

#include "dbus/base.h"

/* Does the kernel enforce or log by it? Where not, there is no context to be kept. */
bool selinux_is_on(void);

/*
 * The context of a process. attributes: its directory of them, "/proc/PID/attr". Return: 0 and the context;
 * -EBADMSG when it is none; another negative errno.
 */
int selinux_read(const char *attributes, char **ret);
/* What execve(2) is to switch to; attributes: "/proc/self/attr". Return: 0 or a negative errno. */
int selinux_set_exec(const char *attributes, const char *context);

/* The context of pid where it is another one than the service's. Return: 0, with NULL where nothing has to be
 * kept; a negative errno. */
int selinux_of_caller(pid_t pid, char **ret);
