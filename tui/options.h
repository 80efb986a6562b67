/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of claude-sandbox-tui. Pure. */

#include "dbus/base.h"

typedef struct Options {
	const char *host;    /* of -H, valid, or NULL; borrowed, as the others */
	const char *dump;    /* name of a view to print, or NULL */
	const char *view;    /* the first view, or NULL */
	const char *session; /* id or its beginning, or NULL */
	bool json, utc, help, version;
} Options;

/* Return: 0; -EINVAL with *ret_problem, a sentence; -ENOMEM. */
int options_parse(int argc, char *const *argv, Options *ret, char **ret_problem);

void options_help(FILE *out);
