/* SPDX-License-Identifier: MIT */
#pragma once

#include "service/plan/mounts.h"

/* Return: the value of the first NAME=VALUE in environment, or NULL. */
const char *environment_value(char *const *environment, const char *name);

/*
 * Set the plan's PATH, once its mounts are there. What the person has before the agent's own places stays
 * before them, so that the same command is the same program inside and outside:
 *
 *   1. the caller's directories that the agent sees and cannot write, in the caller's order; an active virtual
 *      environment keeps its place though it can be written, since half of one is worse than none
 *   2. the system's
 *   3. those that the agent can write, in the caller's order; ~/.local/bin and the virtual environment's
 *
 * So a program that an agent plants stands in for no other. A directory of the caller's that is hidden is named
 * in one warning. Return: 0 or -ENOMEM.
 */
int search_path_make(Plan *plan, const SessionRequest *request, const PlanView *view);
