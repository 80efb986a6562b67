/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An agent that starts `claude` in its own jail means the agent, not a second jail. The marker that the plan
 * puts into every jail (CS_MARKER_PATH, CS_MARKER_FORMAT) says so; no variable does, since anybody can set
 * those.
 */

#include "dbus/base.h"

/*
 * How calls within each other are told apart from a program that is no agent but starts us again: in the
 * environment of what is executed, "PID DEPTH" of the call. Whoever sets it can only have calls refused.
 */
#define NESTED_VARIABLE "CLAUDE_SANDBOX_NESTED"
#define NESTED_DEPTH_MAX 16u

/* value: of that variable, or NULL. Return: the depth of this call, from 1; -ELOOP. */
int nested_depth(const char *value, pid_t pid);

/*
 * Without a marker: 0. With one, the agent that it names is executed in our place and this does not return;
 * otherwise: a negative errno with *reterr a sentence.
 */
int nested_exec(const char *agent, char *const *arguments, char *const *environment, char **reterr);

/*
 * Take a marker's text apart. Return: 0 with both to be freed; -EBADMSG; -ENOMEM.
 */
int nested_parse(const char *text, size_t size, char **ret_profile, char **ret_program);
