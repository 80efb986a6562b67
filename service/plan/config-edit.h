/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The text of the configuration with one allow-ip more or less, and every other byte as it was: the line's
 * end of the file (LF or CRLF), a missing one at the end, the column of the comments. Pure.
 */

#include "dbus/base.h"
#include "service/plan/config.h"

#define CONFIG_EDIT_COMMENT_MAX 200u /* bytes */

/* May this be the comment of a line? Return: 0, or -EINVAL with *ret_problem. */
int config_check_comment(const char *comment, char **ret_problem);

/*
 * Add address (in any spelling that config_parse_address() takes) with comment, after the last allow-ip, or
 * at the end. One that is there gets the comment, "" for none, instead of its own. path is for sentences.
 * Return: 0 with *ret_text; -EALREADY when it stands there just so; -EINVAL, -E2BIG with *ret_problem:
 * address, comment, or a text that does not parse, now or afterwards; -ENOMEM.
 */
int config_edit_add(const char *path, const char *text, size_t size, const char *address, const char *comment,
		    char **ret_text, size_t *ret_size, char **ret_problem);
/* Take address out of every line that has it. Return: as above; -ENOENT with *ret_problem when none has. */
int config_edit_remove(const char *path, const char *text, size_t size, const char *address, char **ret_text,
		       size_t *ret_size, char **ret_problem);
