/* SPDX-License-Identifier: MIT */
#pragma once

/* Opening an address that is refused: how far, for whom, and what that means. Pure. */

#include "tui/view.h"

/*
 * The choice between one session, for an hour or to its end, and everybody, always; each asks before it is
 * done. session may be NULL: then everybody is the only choice. reason: why it is refused now, or "".
 * Return: 0 or -ENOMEM.
 */
int allowing_choose(const ViewContext *context, const ModelSession *session, const char *address,
		    const char *reason, Effect *ret);

/*
 * Does session reach address now? Its routes decide where they are known, else allow-ip. Return: 1 with *ret
 * (how, and until when), 0 for no or unknown, -ENOMEM.
 */
int allowing_now(const ViewContext *context, const ModelSession *session, const char *address, char **ret);

/*
 * "ADDRESS [[#] COMMENT]" as it is typed. Return: 0 with both to be freed; -ENOENT when nothing is typed yet;
 * -ENOMEM.
 */
int allowing_parse(const char *typed, char **ret_address, char **ret_comment);

/* For EFFECT_PROMPT: could what is typed be an allow-ip? */
bool allowing_check(const ViewContext *context, const char *typed, Effect *ret_call, char **ret_problem);

/* What whoever opens it may not have meant: a sentence with a space before it, or "". Borrowed. */
const char *allowing_warning(const char *address);
