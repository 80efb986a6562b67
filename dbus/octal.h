/* SPDX-License-Identifier: MIT */
#pragma once

/* How the kernel writes paths into its tables: proc_pid_mountinfo(5). */

/* Blanks, newlines and backslashes stand as \ooo. Undone in place. */
void octal_unescape(char *text);
