/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One change of what a session does, for the test that looks which row of Verify notices it. What is expected
 * of the jail stays that of the plan as it is; only what is done is changed. The variable LAB_MUTATION of the
 * caller's environment says which:
 *
 *     GROUP:INDEX:HOW     index: of the entry, variable, route, ... in its list
 *     list:FILE           change nothing, and append a line for each change that can be made
 *     (absent)            nothing
 *
 * A line of the list is GROUP, INDEX, HOW and what it is, with tabs between.
 */

#include "dbus/base.h"
#include "service/session/jail-exec.h"

typedef struct Mutation {
	char *group, *how;
	size_t index;
	char *list; /* the file */
} Mutation;

extern Mutation mutation;

/* Once the request is known. */
void mutation_read(char *const *environment);
bool mutation_is(const char *group);
bool mutation_how(const char *how);
/* This element of the group, in this way? */
bool mutation_hits(const char *group, size_t index, const char *how);
/* A change that can be made; nothing unless a list is made. */
_printf_(4, 5) void mutation_offer(const char *group, size_t index, const char *how, const char *format, ...);

/*
 * mutation-plan.c: a plan of which one entry or one variable is another. What of it is not plan's own is
 * freed by mutation_plan_done(). Return: 0 or a negative errno.
 */
int mutation_plan(const Plan *plan, Plan *ret);
void mutation_plan_done(Plan *changed);
