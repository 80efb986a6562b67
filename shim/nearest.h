/* SPDX-License-Identifier: MIT */
#pragma once

/* Which of several names a person meant. */

#include "dbus/base.h"

/*
 * names ends with NULL. The one that word begins, or the one with the fewest letters left out, added, changed
 * or swapped with their neighbour: at most two, and fewer than half of the word's. Return: borrowed from
 * names, or NULL when none is near or two are equally so.
 */
const char *nearest_name(const char *word, const char *const *names);
