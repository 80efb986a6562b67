/* SPDX-License-Identifier: MIT */
#pragma once

/* What a person can do about a check of Verify that fails. One row for each check; clients show it below the row. */

#include "dbus/base.h"

/* id: "01" to "22", or a probe's ("p01"). Return: a static sentence, "" for what has none. */
const char *check_fix(const char *id);
