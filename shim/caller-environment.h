/* SPDX-License-Identifier: MIT */
#pragma once

/* The caller's environment as handoff put it into a descriptor. Data: nothing of it steers this program. */

#include "dbus/base.h"

/*
 * Read and close the descriptor whose number stands in text. Return: 0 with *ret a NULL-terminated vector, to
 * be freed with strings_free(); -EINVAL for anything but the number of a regular file that holds
 * NUL-terminated strings; -E2BIG above CS_REQUEST_BYTES_MAX bytes or CS_REQUEST_STRINGS_MAX strings; -ENOMEM.
 */
int caller_environment_read(const char *text, char ***ret);
