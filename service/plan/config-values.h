/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the configuration share among themselves: single values, before they are in a Config. */

#include "service/plan/config.h"

/* Longest line of the file and longest single value, in bytes: a path of PATH_MAX without its NUL. */
#define CONFIG_LINE_MAX 8192u
#define CONFIG_TEXT_MAX 4095u
/* A whole line of which every byte is displayed as \xNN; a path and a line number. */
#define CONFIG_COMMENT_MAX (4 * CONFIG_LINE_MAX)
#define CONFIG_ORIGIN_MAX 8192u

/*
 * Bytes of a file or variable as text that is safe in a sentence, on a terminal and as a D-Bus string: valid
 * UTF-8 without control characters, everything else as \xNN. The caller frees. Return: NULL without memory.
 */
char *config_display(const char *bytes);

/*
 * Check one value of key and make it canonical. text has no white space at its ends. Return: 0; -EINVAL with
 * a *ret_problem that names value and fix, but no place; -ENOMEM.
 */
int config_value_parse(ConfigKey key, const char *text, char **ret_text, char **ret_problem);

/* A flag: bare it means 1. */
bool config_key_is_flag(ConfigKey key);
/* A list that takes several values on one line of the file, split at spaces and commas. */
bool config_key_is_split(ConfigKey key);
/* The known key that was probably meant by name, or NULL. */
const char *config_key_suggestion(const char *name);

/* The first value of key with this text (any text for NULL), or NULL. */
ConfigValue *config_find(const Config *config, ConfigKey key, const char *text);
/* Append copies. Return: 0; -E2BIG above CONFIG_VALUES_MAX; -ENOMEM. */
int config_append(Config *config, ConfigKey key, const char *text, const char *comment, const char *origin);
/* value is one of config's. */
void config_remove(Config *config, ConfigValue *value);
/* Return: 0, or -EINVAL with *ret_problem when a port is to cross in both directions. */
int config_check_ports(const Config *config, char **ret_problem);
