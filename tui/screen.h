/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Everything that is on the screen, in words: what tui/app decides and tui/draw lays out. Pure.
 */

#include "tui/format.h"
#include "tui/line-editor.h"
#include "tui/view.h"

typedef enum DialogKind {
	DIALOG_NONE,
	DIALOG_SHOW,    /* lines, scrolled */
	DIALOG_TELL,    /* a sentence too long for a line; any key ends it */
	DIALOG_CONFIRM, /* y or n */
	DIALOG_CHOOSE,  /* a key for each choice */
	DIALOG_PROMPT,  /* a line that is typed, in a window, with what is said about it */
	DIALOG_LINE,    /* a line that is typed at the bottom: search, filter */
} DialogKind;

typedef struct Dialog {
	DialogKind kind;
	char *title;
	char *text;    /* bytes, lines; the question */
	char *problem; /* PROMPT: what is wrong with what is typed; "" for nothing, NULL: not known yet */
	LineEditor line;
	bool unchecked; /* PROMPT: the service has not said yet whether what is typed can be done */
	bool entered;   /* PROMPT: it is taken as soon as the service says so */
	bool seen;      /* CONFIRM: its last line has been on the screen; it can be answered */
	size_t top;
	const Effect *choices; /* CHOOSE */
	size_t n_choices;
} Dialog;

typedef struct Screen {
	const Model *model;
	const View *view;
	Table *table;
	const char *headline; /* bytes; NULL: the view's sentence */
	const char *empty;    /* why there is no row */
	const char *details;  /* of the selected row: lines of bytes; NULL for none */
	bool details_shown;
	const char *message; /* NULL: none */
	Style message_style;
	Dialog dialog;
	bool utf8;
	bool mouse;
} Screen;
