/* SPDX-License-Identifier: MIT */
#pragma once

/* Appending to a plan under construction; for the files of service/plan that each add their part. */

#include "service/plan/mounts.h"

/*
 * Each copies its strings, but for reason, which is a literal. Return: 0, -ENOMEM, -E2BIG above
 * PLAN_MOUNTS_MAX entries.
 */
int plan_add_bind(Plan *plan, PlanNode *source /* fd is taken */, const char *destination, EntryMode mode,
		  const char *origin, const char *reason);
/* Bind what node is, read-write, before the entry that is at index now. Its fd is taken. */
int plan_insert_bind(Plan *plan, size_t index, PlanNode *node, const char *destination, const char *origin,
		     const char *reason);
/* Has the plan an entry of that destination? */
bool plan_has(const Plan *plan, const char *destination);
int plan_add_tmpfs(Plan *plan, const char *destination, mode_t permissions, EntryMode mode,
		   const char *origin, const char *reason);
int plan_add_file(Plan *plan, const char *destination, const void *data, size_t size, const char *origin,
		  const char *reason);
/* The same, to be executed. */
int plan_add_program(Plan *plan, const char *destination, const char *text, const char *origin,
		     const char *reason);
/* An empty read-only file over what is there: it reads as nothing, where /dev/null (nodev) would not open. */
int plan_add_mask(Plan *plan, const char *destination, const char *origin, const char *reason);
/* A device node, by its path. */
int plan_add_device(Plan *plan, const PlanNode *source, const char *destination, const char *origin,
		    const char *reason);
int plan_add_link(Plan *plan, const char *destination, const char *text, const char *origin,
		  const char *reason);
int plan_add_special(Plan *plan, EntryKind kind, const char *destination, EntryMode mode, const char *origin,
		     const char *reason);
int plan_warn(Plan *plan, const char *format, ...) _printf_(2, 3);
/* Return: 0; -EEXIST when the plan has it already: the first value holds; -ENOMEM. */
int plan_set_variable(Plan *plan, const char *name, const char *value, const char *origin);
/* Return: the variable, or NULL. */
const PlanVariable *plan_variable(const Plan *plan, const char *name);

/* The entry that decides what is seen at path: the last one at or above it. Return: NULL before "/" is there.
 */
const Entry *plan_covering(const Plan *plan, const char *path);
/*
 * The read-write or read-only bind that would show the host's at the place of entry, were it not there.
 * Return: NULL where nothing of the host's would be seen, or entry itself is not.
 */
const Entry *plan_under(const Plan *plan, const Entry *entry);
/* Is what the host has at path out of sight, as far as the plan goes by now? */
bool plan_hides(const Plan *plan, const char *path);
