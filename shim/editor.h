/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The person's editor on a text of ours. VISUAL and EDITOR may have been planted by an agent (a project's env
 * file that the shell loads), so only their program's name counts, and only where root alone installs
 * programs; it gets no argument but a line's number and the file, and an environment of its own.
 */

#include "dbus/base.h"

/*
 * Let text be edited: a private file in a private directory below /tmp, which is gone afterwards.
 * line: where the editor begins, from 1, if it is known to take "+LINE"; 0: anywhere. environment: the caller's. Return: 0 with *ret_text; -ENOENT (no such editor), -ECANCELED (it failed),
 * -E2BIG, others, all with *reterr.
 */
int editor_run(const char *text, size_t line, char *const *environment, char **ret_text, char **reterr);
