/* SPDX-License-Identifier: MIT */
#pragma once

/* Paths as text: nothing here asks the kernel. */

#include <stdbool.h>
#include <string.h>

/* Is path equal to directory or below it? Both absolute, without a slash at the end but for "/". */
static inline bool path_is_within(const char *path, const char *directory)
{
	size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	return strncmp(path, directory, n) == 0 && (path[n] == '/' || (n > 0 && path[n] == '\0'));
}
