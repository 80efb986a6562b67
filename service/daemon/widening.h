/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a request asks for beyond the configuration, in words for a person who decides about it. Made from the
 * same list that the configuration of the session is made from, so that what is named is what runs. Pure.
 */

#include "dbus/base.h"

/* More is no question that a person can answer: the request is refused, never the question shortened. */
#define WIDENING_WORDS_MAX 1536u

/*
 * widenings: the sentences of config_add_environment(), which are escaped, or NULL. Return: 0, *ret is NULL
 * when nothing is asked for; -E2BIG; -ENOMEM.
 */
int widening_words(char *const *widenings, char **ret);
