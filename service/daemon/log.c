/* SPDX-License-Identifier: MIT */
#include "service/daemon/log.h"

#include <stdarg.h>

#include "dbus/wire.h"

void log_line(const char *format, ...)
{
	_cleanup_free_ char *line = NULL, *shown = NULL;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (n < 0) {
		line = NULL;
		return;
	}
	shown = wire_text(line, LOG_LINE_MAX);
	if (shown)
		(void)dprintf(STDERR_FILENO, "claude-sandboxd: %s\n", shown);
}
