/* SPDX-License-Identifier: MIT */
#pragma once

/* Where sessions keep what they must remember for a user. No agent sees it. */

#include "service/plan/view.h"

/* Below the home. */
#define STATE_DIRECTORY ".local/state/claude-sandbox"

/* The directory at path when it is the user's. Return: 0, -ENOENT for anything else, -ENOMEM. */
int own_directory_open(const PlanView *view, const char *path, uid_t uid, PlanNode *ret);
/*
 * Open it; make: with what is missing on the way (0700). Every directory on the way must be the user's.
 * Return: 0 with *ret (its descriptor O_PATH); -ENOENT for a directory that is missing or another's; another
 * negative errno.
 */
int state_directory_open(const PlanView *view, const char *home, uid_t uid, bool make, PlanNode *ret);
