/* SPDX-License-Identifier: MIT */
#pragma once

/* Rows of checks on the screen: each when it comes, and those that matter once more at the end. */

#include "dbus/client.h"
#include "shim/sandbox.h"

/* How a list of checks looks. Columns are id, status, title, detail, fix. */
typedef struct RowsForm {
	const char *id;  /* blanks, as many as the widest id has letters */
	int below;       /* cells before what stands below a row */
	bool tells_good; /* what was found stands behind the title of what is well, too */
} RowsForm;

extern const RowsForm rows_form_verify, rows_form_doctor;

/* One row. What is not well has what was found, and the fix, below it. Return: 0, -ENOMEM, or the error of
 * the stream. */
int rows_print(const SandboxContext *context, const RowsForm *form, char *const *cells);

/*
 * Those of that status once more, below a heading; nothing where there is none. Rows of one cause stand
 * together, above what is said of all of them. Return as rows_print().
 */
int rows_repeat(const SandboxContext *context, const RowsForm *form, const ClientTable *rows,
		const char *status, const char *heading);
