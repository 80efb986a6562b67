/* SPDX-License-Identifier: MIT */
#pragma once

#include "dbus/base.h"
#include "dbus/names.h"

/*
 * The errors of the contract and what each means when nobody said more. Pure: no bus library.
 */

/* For lists: index from 0. Return: the full name, NULL at the end. */
const char *error_name_at(size_t index);
/* Is name one of CS_ERROR_*? name may be NULL or anything. */
bool error_is_known(const char *name);
/*
 * The sentence to show for an error: message if it says anything, else the fallback of name, else a general
 * one. Both may be NULL. Return: never NULL and never empty; borrowed from message or static.
 */
const char *error_sentence(const char *name, const char *message);

/*
 * A refusal names cause and fix. Append to *sentence, which ends in the cause, what helps against that
 * negative errno; nothing when the sentence has a fix already (behind a semicolon), or when there is none.
 */
void error_add_fix(char **sentence, int error);
