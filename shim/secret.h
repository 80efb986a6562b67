/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A secret that a person hands over: it comes by a descriptor alone, never as an argument or a variable, and
 * its memory is wiped.
 */

#include "dbus/base.h"

#define SECRET_MOST 2048u /* bytes; below what a terminal holds of one line, 4095 (termios(3)) */

/*
 * From a terminal: one line without echo, prompt before it. Its modes are given back before anything that
 * ends or stops this process does so, what was typed so far is dropped; continued, it asks again. From
 * anything else: all that comes until its end.
 * Return: 0 with *ret, printable ASCII without blanks, to be released with secret_free(); -EINVAL (none, too
 * long, other bytes), -EIO and others, all with *reterr.
 */
int secret_read(int fd, const char *prompt, char **ret, char **reterr);

/* The n bytes as a secret, without one line end behind them. Return as secret_read(). */
int secret_check(const char *bytes, size_t n, char **ret, char **reterr);

/* Wipe and free. Return: NULL. */
char *secret_free(char *secret);
DEFINE_CLEANUP(char, secret_free)
#define _cleanup_secret_ _cleanup_(secret_freep)
