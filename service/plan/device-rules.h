/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which device nodes may be given to an agent at all, whatever the configuration says. Judged twice: by the
 * path, when the configuration is read, and by type and number of the node, when a session is made, since a
 * node has as many names as root gave it.
 */

#include "service/plan/view.h"

/* path: absolute, without "." and "..", below /dev or not. Return: NULL, or why not (a clause). */
const char *device_path_refusal(const char *path);

/* node: resolved; no directory. Return: NULL, or why not (a clause). */
const char *device_refusal(const PlanNode *node);
