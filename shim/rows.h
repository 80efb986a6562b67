/* SPDX-License-Identifier: MIT */
#pragma once

/* Rows of checks on the screen, each when it comes: id, status, title; what was found below, where it
 * matters. */

#include "dbus/client.h"
#include "shim/sandbox.h"

/* One row: id, status, title, detail, and the fix where the table has a fifth column. Return: 0, -ENOMEM, or
 * the error of the stream. */
int rows_print(const SandboxContext *context, char *const *cells, size_t n_columns);
