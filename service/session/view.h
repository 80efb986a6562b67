/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * PlanView for real. What the plan will mount is opened here, once, as O_PATH descriptors on exactly the
 * object that was examined; a path that an agent swaps afterwards has no effect.
 */

#include "service/plan/view.h"
#include "service/session/mount-table.h"

typedef struct View {
	uid_t uid;
	char *home;         /* canonical, or NULL */
	char **writable;    /* canonical: the workspace and what else agents are given to write */
	MountTable *mounts; /* read at the first question for aliases, or NULL */
} View;

/*
 * home: of the caller, from passwd; it need not exist. Return: 0, -ENOMEM, or what openat2(2) answers where
 * the kernel or a filter does without: then nothing can be opened as this file needs it.
 */
int view_init(View *view, uid_t uid, const char *home);
void view_done(View *view);
/* From here on links of root's own sessions at and below path are distrusted too. Return: 0 or -ENOMEM. */
int view_add_writable(View *view, const char *path);
/* The table of functions; borrows view. */
PlanView view_functions(View *view);
