/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The program: one event loop on which keys, signals of the system and what the service says come in; after
 * each of them the screen is drawn from the model, if it is another one then.
 */

#include "dbus/base.h"

typedef struct AppOptions {
	const char *host; /* of -H, valid; NULL: this machine */
	const char *view; /* the first view; NULL: sessions */
	bool colour, utf8;
} AppOptions;

/* Until it is quit. Return: 0; a negative errno with *ret_problem where the terminal cannot be had. */
int app_run(const AppOptions *options, char **ret_problem);
