/* SPDX-License-Identifier: MIT */
#pragma once

/* One line that a person types. Pure. */

#include "tui/keys.h"

#define LINE_EDITOR_MOST 4096u /* bytes */

typedef struct LineEditor {
	char *text; /* UTF-8 */
	size_t n, size;
	size_t cursor; /* in bytes */
} LineEditor;

/* text may be NULL; the cursor is behind it. Return: 0, -ENOMEM. */
int line_editor_set(LineEditor *editor, const char *text);
void line_editor_done(LineEditor *editor);
/*
 * A key: a character is put in, others move and delete as readline(3) has them. Return: 1 when the text
 * changed, 0 when not; -ENOMEM; -ENOKEY when the key means nothing here.
 */
int line_editor_key(LineEditor *editor, KeyCode code);
/* Never NULL. */
const char *line_editor_text(const LineEditor *editor);
