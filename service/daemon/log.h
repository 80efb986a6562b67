/* SPDX-License-Identifier: MIT */
#pragma once

/* One line on stderr, which dbus-daemon or systemd keeps. Bytes of strangers are escaped by this. */

#include "dbus/base.h"

#define LOG_LINE_MAX 2048u

_printf_(1, 2) void log_line(const char *format, ...);
