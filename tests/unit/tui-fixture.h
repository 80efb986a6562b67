/* SPDX-License-Identifier: MIT */
#pragma once

/* Parts of a model, made in one line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tui/model.h"

#define ID_A "aaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbb"

static inline char *copy(const char *text)
{
	char *to = strdup(text);

	assert_non_null(to);
	return to;
}

/* n_rows * n_columns texts follow. */
static inline ClientTable table_of(size_t n_columns, size_t n_rows, ...)
{
	ClientTable table = { .n_columns = n_columns, .n_rows = n_rows };
	va_list cells;

	table.cells = calloc(n_columns * n_rows + 1, sizeof(*table.cells));
	assert_non_null(table.cells);
	va_start(cells, n_rows);
	for (size_t i = 0; i < n_columns * n_rows; i++)
		table.cells[i] = copy(va_arg(cells, const char *));
	va_end(cells);
	return table;
}

static inline ClientSession session_of(const char *id, uint64_t started_usec, const char *state)
{
	return (ClientSession){ .id = copy(id),
				.path = copy(CS_SESSION_ROOT "/x"),
				.agent = copy("claude"),
				.user = copy("ann"),
				.uid = 1000,
				.workspace = copy("/src/project"),
				.started_usec = started_usec,
				.state = copy(state) };
}

/* What the service lists becomes these, NULL-terminated ids. */
static inline void take_ids(Model *model, const char *const *ids)
{
	ClientSessions sessions = { 0 };

	while (ids[sessions.n])
		sessions.n++;
	sessions.items = calloc(sessions.n + 1, sizeof(*sessions.items));
	assert_non_null(sessions.items);
	for (size_t i = 0; i < sessions.n; i++)
		sessions.items[i] = session_of(ids[i], 1000 + i, "running");
	assert_int_equal(model_take_sessions(model, &sessions), 0);
	assert_int_equal(sessions.n, 0);
}
