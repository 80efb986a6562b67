/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which files do command lines in an agent's settings name? An agent may have written the text, so what comes
 * out is a question and no answer: mounts-named.c decides what of it is shown.
 *
 * One reader serves JSON and TOML: it looks for a key of the list, takes the text or the list of texts that is
 * its value, and builds no tree of the rest. What it does not understand names nothing.
 */

#include "dbus/base.h"

#define NAMED_WORDS_MAX 256u /* of one text */

/*
 * Add to paths each absolute path in the values of keys (NULL-terminated) of text, none twice. "~", "$HOME" and
 * "${HOME}" at the start of a word are home. Return: 0 or -ENOMEM.
 */
int named_programs_find(const char *text, size_t size, const char *const *keys, const char *home,
			char ***paths);
