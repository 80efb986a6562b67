/* SPDX-License-Identifier: MIT */
#pragma once

/* How each meaning looks: with 256 colours, with 8, and without. Pure. */

#include "dbus/base.h"
#include "tui/style.h"

typedef struct Look {
	short foreground, background; /* -1: the terminal's own */
	bool bold, dim, underline, reverse;
} Look;

/* colours: how many the terminal has; 0 for none, or when none are wanted. */
Look looks_of(Style style, int colours);
