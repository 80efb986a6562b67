/* SPDX-License-Identifier: MIT */
#pragma once

/* Appending to a plan under construction; for the files of service/plan that each add their part. */

#include "service/plan/mounts.h"

/* Each takes copies of its strings. Return: 0, -ENOMEM, -E2BIG above PLAN_MOUNTS_MAX. */
int plan_add_bind(Plan *plan, PlanNode *source /* fd is taken */, const char *destination, EntryMode mode,
		  const char *origin, const char *reason);
int plan_add_tmpfs(Plan *plan, const char *destination, mode_t permissions, EntryMode mode,
		   const char *origin, const char *reason);
int plan_add_file(Plan *plan, const char *destination, const void *data, size_t size, const char *origin,
		  const char *reason);
int plan_add_link(Plan *plan, const char *destination, const char *text, const char *origin,
		  const char *reason);
int plan_add_special(Plan *plan, EntryKind kind, const char *destination, EntryMode mode, const char *origin,
		     const char *reason);
int plan_warn(Plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));
int plan_set_variable(Plan *plan, const char *name, const char *value, const char *origin);
