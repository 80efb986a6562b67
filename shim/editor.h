/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The person's editor on a text of ours. VISUAL and EDITOR may have been planted by an agent (a project's env
 * file that the shell loads), so only their program's name counts, and only where root alone installs
 * programs; it gets no argument but the file, and an environment of its own.
 */

#include "dbus/base.h"

/*
 * Let text be edited: a private file in a private directory below /tmp, which is gone afterwards.
 * environment: the caller's. Return: 0 with *ret_text; -ENOENT (no such editor), -ECANCELED (it failed),
 * -E2BIG, others, all with *reterr.
 */
int editor_run(const char *text, char *const *environment, char **ret_text, char **reterr);
