/* SPDX-License-Identifier: MIT */
#pragma once

/* Reading what the kernel says of this process and of files, for the checks. */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/plan/expectations.h"

/* The whole of a file of /proc or of a small one; bounded. Return: to be freed, or NULL with errno set. */
char *measure_text(const char *path, size_t max, size_t *ret_size);
/* The value of a line "NAME:\tVALUE" of /proc/PID/status, up to its end, or NULL. Borrowed. */
const char *measure_field(const char *status, const char *name, size_t *ret_n);
/* The same as a number in that base. Return: false when there is no such line. */
bool measure_number(const char *status, const char *name, int base, uint64_t *ret);
/* The inode number of a namespace, "/proc/PROCESS/ns/KIND". Return: 0 where it cannot be read, or the kernel
 * has none of that kind. */
uint64_t measure_namespace(const char *process, NamespaceKind kind);
/* lstat(2) as an identity; not known when it fails, with errno set. */
ObjectIdentity measure_object(const char *path);
/* The same of what a link leads to. */
ObjectIdentity measure_target(const char *path);
/* A variable of this process, or NULL. */
const char *measure_variable(const char *name);
/* Is errno a want of descriptors, memory or ports? An agent beside us can bring that about, and it says
 * nothing of what was tried. */
static inline bool measure_is_starved(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EINTR ||
	       error == EADDRNOTAVAIL;
}

/*
 * Wait for the end of a child. Return: 0 when it has ended, and is not reaped; -ETIME at deadline_msec of the
 * same clock; -ECANCELED when somebody stopped it with a signal: an agent beside us may, and slowness does not.
 */
int measure_wait(pid_t pid, int pid_fd, int64_t deadline_msec);

/* Call each for every name in directory but "." and "..", in no order. Return: 0, -errno, or what each
 * returned when it was not 0. */
int measure_list(const char *directory, int (*each)(void *userdata, const char *name), void *userdata);

/* realpath(3). Return: to be freed, or NULL with errno set. */
char *measure_real_path(const char *path);
