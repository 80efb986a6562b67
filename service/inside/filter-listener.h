/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/* What a call answers that no filter refuses: no call of the kernel's that is tried answers this by itself.
 */
#define FILTER_LET_THROUGH EDOM

/*
 * In a process of an attempt: from now on each call that the filters in force would let through answers
 * FILTER_LET_THROUGH, and the kernel never sees it; what a filter refuses is refused as before. So a refusal
 * can be told from the kernel's own of the same number, and nothing that is tried can happen. Only the end of
 * the process is still its own. Return: 0; a negative errno where the kernel offers no such thing, or
 * somebody has it already: then everything is as it was.
 */
int filter_listener_start(void);
