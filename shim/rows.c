/* SPDX-License-Identifier: MIT */
#include "shim/rows.h"

#include "dbus/text.h"

enum { ID, STATUS, TITLE, DETAIL, FIX, CELLS };

const RowsForm rows_form_verify = { .id = "   ", .below = 12 };
const RowsForm rows_form_doctor = { .id = "                  ", .below = 8, .tells_good = true };

static bool is_good(char *const *cells)
{
	return streq(cells[STATUS], "pass") || streq(cells[STATUS], "ok");
}

static int print_head(const SandboxContext *context, const RowsForm *form, char *const *cells)
{
	const PrintColumn columns[] = {
		{ form->id, NULL, PRINT_TEXT, false },
		{ "    ", NULL, PRINT_RESULT, false },
		{ "", NULL, PRINT_TEXT, form->tells_good },
	};
	bool beside = form->tells_good && is_good(cells);
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%s%s%s", cells[TITLE], beside && *cells[DETAIL] ? ": " : "",
		     beside ? cells[DETAIL] : "") < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return print_rows(context->out,
			  &(PrintTable){ columns, ELEMENTSOF(columns), 1,
					 (const char *const[]){ cells[ID], cells[STATUS], text } },
			  &context->style);
}

static int print_line(const SandboxContext *context, const RowsForm *form, const char *text)
{
	_cleanup_free_ char *shown = NULL;

	if (!*text)
		return 0;
	shown = text_sentence(text, context->style.utf8);
	if (!shown)
		return -ENOMEM;
	fprintf(context->out, "%*s%s\n", form->below, "", shown);
	return 0;
}

static int print_below(const SandboxContext *context, const RowsForm *form, char *const *cells)
{
	int r = print_line(context, form, cells[DETAIL]);

	return r < 0 ? r : print_line(context, form, cells[FIX]);
}

int rows_print(const SandboxContext *context, const RowsForm *form, char *const *cells)
{
	int r = print_head(context, form, cells);

	/* What is as it should be needs no more words. */
	if (r == 0 && !is_good(cells))
		r = print_below(context, form, cells);
	return r == 0 ? print_result(context->out) : r;
}

/* ---- once more ---- */

typedef struct Repeat {
	const SandboxContext *context;
	const RowsForm *form;
	const ClientTable *rows;
	const char *status;
} Repeat;

static char *const *cells_at(const Repeat *repeat, size_t i)
{
	return repeat->rows->cells + i * CELLS;
}

static bool counts(const Repeat *repeat, size_t i)
{
	return streq(cells_at(repeat, i)[STATUS], repeat->status);
}

static bool says_the_same(const Repeat *repeat, size_t a, size_t b)
{
	char *const *one = cells_at(repeat, a), *const *other = cells_at(repeat, b);

	return streq(one[DETAIL], other[DETAIL]) && streq(one[FIX], other[FIX]);
}

/* Is it the first of its cause? The others stand with it. */
static bool is_first(const Repeat *repeat, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (counts(repeat, k) && says_the_same(repeat, k, i))
			return false;
	return counts(repeat, i);
}

static int print_cause(const Repeat *repeat, size_t first)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < repeat->rows->n_rows; i++)
		if (counts(repeat, i) && says_the_same(repeat, first, i))
			r = print_head(repeat->context, repeat->form, cells_at(repeat, i));
	return r == 0 ? print_below(repeat->context, repeat->form, cells_at(repeat, first)) : r;
}

int rows_repeat(const SandboxContext *context, const RowsForm *form, const ClientTable *rows,
		const char *status, const char *heading)
{
	const Repeat repeat = { context, form, rows, status };
	bool begun = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->n_rows; i++) {
		if (!is_first(&repeat, i))
			continue;
		if (!begun)
			fprintf(context->out, "\n%s:\n", heading);
		begun = true;
		r = print_cause(&repeat, i);
	}
	return r == 0 ? print_result(context->out) : r;
}
