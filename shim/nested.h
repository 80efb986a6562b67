/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An agent that starts `claude` in its own jail means the agent, not a second jail. The marker that the plan
 * puts into every jail (CS_MARKER_PATH, CS_MARKER_FORMAT) says so; no variable does, since anybody can set
 * those.
 */

#include "dbus/base.h"

/*
 * Without a marker: 0. With one, the agent that it names is executed in our place and this does not return;
 * otherwise: a negative errno with *reterr a sentence.
 */
int nested_exec(const char *agent, char *const *arguments, char *const *environment, char **reterr);

/*
 * Take a marker's text apart. Return: 0 with both to be freed; -EBADMSG; -ENOMEM.
 */
int nested_parse(const char *text, size_t size, char **ret_profile, char **ret_program);
