/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"

/*
 * Kill and reap every child that this process still has, and those that its orphans become (it is their
 * subreaper, prctl(2)), until there is none. Bounded by timeout_msec for one that hangs in the kernel.
 * Return: 0 when none is left; -ETIMEDOUT.
 */
int orphans_end(int timeout_msec);
