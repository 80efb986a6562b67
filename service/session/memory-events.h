/* SPDX-License-Identifier: MIT */
#pragma once

/* Whom the kernel killed for want of memory: memory.events of the session's control group
 * (admin-guide/cgroup-v2.rst of the kernel). */

#include "dbus/base.h"

/* Pure: how many processes of the group were killed, by a limit of its own or of a group above it. 0 for a
 * text without the number. */
uint64_t memory_events_killed(const char *text);
/*
 * What to tell the person. fd: the open file, or FD_NONE; memory_max: the configured limit in bytes, 0 for
 * none. Return: a sentence (cause and fix) to be freed; NULL when nobody was killed, or without memory.
 */
char *memory_events_sentence(int fd, uint64_t memory_max);
