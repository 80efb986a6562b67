/* SPDX-License-Identifier: MIT */
#include "service/link/process-state.h"

#include <fcntl.h>

#include "dbus/base.h"

bool process_is_stopped(pid_t pid)
{
	_cleanup_close_ int fd = FD_NONE;
	char path[64], text[512];
	const char *end;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : FD_NONE;
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name is in brackets, and may have some of its own. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}
