/* SPDX-License-Identifier: MIT */
#pragma once

/* Data handed over as a memfd that nobody can change any more (memfd_create(2), fcntl(2) F_ADD_SEALS). */

#include "dbus/base.h"

/* Return: 0 with a descriptor (O_CLOEXEC, position 0), or a negative errno. name shows in /proc only. */
int sealed_make(const char *name, const void *data, size_t size, int *ret_fd);
/*
 * The same in two steps, for what has its place before it is known: an empty memfd, then its content and the
 * seals. Whoever has the descriptor reads from its start.
 */
int sealed_open(const char *name, int *ret_fd);
int sealed_fill(int fd, const void *data, size_t size);
/*
 * Read fd whole, from its start. Return: 0; -EPERM when it is no memfd sealed against writing, shrinking and
 * growing; -E2BIG above max bytes; -EBADMSG when it is empty; another negative errno.
 */
int sealed_read(int fd, size_t max, uint8_t **ret_data, size_t *ret_size);
