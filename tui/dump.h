/* SPDX-License-Identifier: MIT */
#pragma once

/* A view without a screen, for programs, screen readers and tests: the same model, the same rows. No curses.
 */

#include "dbus/print.h"
#include "tui/view.h"

typedef struct DumpOptions {
	const View *view;
	const char *session; /* id or its beginning; NULL: the newest, where the view is about one */
	const char *host;    /* valid (client_remote_is_valid()), or NULL */
	bool json;
	FILE *out, *err;
	PrintStyle style; /* of out */
} DumpOptions;

/*
 * Ask the service, wait for its answers without a limit, and print. Return: an exit status: 0; CS_EXIT_FOUND
 * for no such session, and for checks of which one failed; CS_EXIT_REFUSED when it could not be told. What
 * went wrong is said in one line on err.
 */
int dump_run(const DumpOptions *options);

/* What context has, as lines (the sentence above the table first) or JSON. Return: 0 or -ENOMEM, or the error
 * of the stream. */
int dump_print(FILE *out, const View *view, const ViewContext *context, bool json, const PrintStyle *style);
