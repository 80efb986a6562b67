/* SPDX-License-Identifier: MIT */
#include "shim/rows.h"

#include "dbus/text.h"

enum { ID, STATUS, TITLE, DETAIL, FIX };

/* Below the title. */
#define DETAIL_INDENT 12

static int print_below(const SandboxContext *context, const char *text)
{
	_cleanup_free_ char *shown = NULL;

	if (!*text)
		return 0;
	shown = text_sentence(text, context->style.utf8);
	if (!shown)
		return -ENOMEM;
	fprintf(context->out, "%*s%s\n", DETAIL_INDENT, "", shown);
	return 0;
}

int rows_print(const SandboxContext *context, char *const *cells, size_t n_columns)
{
	static const PrintColumn columns[] = {
		{ "   ", NULL, PRINT_TEXT, false },
		{ "    ", NULL, PRINT_RESULT, false },
		{ "", NULL, PRINT_TEXT, false },
	};
	const char *const shown[] = { cells[ID], cells[STATUS], cells[TITLE] };
	bool good = streq(cells[STATUS], "pass") || streq(cells[STATUS], "ok");
	int r;

	r = print_rows(context->out, &(PrintTable){ columns, ELEMENTSOF(columns), 1, shown },
		       &context->style);
	/* What is as it should be needs no more words. */
	if (r == 0 && !good)
		r = print_below(context, cells[DETAIL]);
	if (r == 0 && !good && n_columns > FIX)
		r = print_below(context, cells[FIX]);
	return r == 0 ? print_result(context->out) : r;
}
