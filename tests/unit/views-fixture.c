/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/views-fixture.h"

static ClientTable table_of(size_t n_columns, const char *const *cells)
{
	ClientTable table = { .n_columns = n_columns };
	size_t n = 0;

	while (cells[n])
		n++;
	assert_int_equal(n % n_columns, 0);
	table.n_rows = n / n_columns;
	table.cells = calloc(n + 1, sizeof(*table.cells));
	for (size_t i = 0; i < n; i++)
		table.cells[i] = strdup(cells[i]);
	return table;
}

static ClientSession session_of(const char *id, const char *workspace)
{
	return (ClientSession){ .id = strdup(id),
				.path = strdup("/"),
				.agent = strdup("claude"),
				.user = strdup("ann"),
				.uid = 1000,
				.workspace = strdup(workspace),
				.state = strdup("running") };
}

void fixture_take(Fixture *f, const char *id, ModelPart part, size_t n_columns, const char *const *cells)
{
	ClientTable table = table_of(n_columns, cells);

	assert_int_equal(model_take_table(f->model, id ? model_session(f->model, id) : NULL, part, &table),
			 0);
}

void fixture_use(Fixture *f, const View *view)
{
	if (f->view && f->view->state_done)
		f->view->state_done(f->context.state);
	free(f->context.state);
	f->view = view;
	f->context.state = calloc(1, view->state_size + 1);
}

void fixture_begin(Fixture *f, const View *view)
{
	ClientSessions sessions = { .items = calloc(2, sizeof(ClientSession)), .n = 2 };

	*f = (Fixture){ .model = model_new() };
	f->context = (ViewContext){ .model = f->model, .utf8 = true, .now_usec = NOW };
	sessions.items[0] = session_of(A, "/src/\033[31m");
	sessions.items[1] = session_of(B, "/src");
	assert_int_equal(model_take_sessions(f->model, &sessions), 0);
	assert_int_equal(model_open(f->model, A), 0);
	fixture_use(f, view);
}

void fixture_end(Fixture *f)
{
	if (f->view->state_done)
		f->view->state_done(f->context.state);
	free(f->context.state);
	model_free(f->model);
}

void rows_expect(Fixture *f, const char *expected)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	for (size_t i = 0; i < rows_count(rows); i++) {
		for (size_t c = 0; c < f->view->n_columns; c++)
			if (f->view->columns[c].title)
				fprintf(stream, "%s|", rows_cells(rows, i)[c].text);
		putc('\n', stream);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rows_key(rows, i), rows_key(rows, k));
	}
	fclose(stream);
	assert_string_equal(text, expected);
}

void details_expect(Fixture *f, size_t row, const char *expected)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);
	_cleanup_free_ char *text = NULL;

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	assert_int_equal(f->view->details(&f->context, rows_key(rows, row), &text), 0);
	assert_non_null(text);
	assert_string_equal(text, expected);
}

void details_of_every_row(Fixture *f)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	for (size_t i = 0; i < rows_count(rows); i++) {
		_cleanup_free_ char *text = NULL;

		assert_int_equal(f->view->details(&f->context, rows_key(rows, i), &text), 0);
		assert_non_null(text);
		assert_null(strchr(text, '\033'));
	}
}

void headline_expect(Fixture *f, const char *expected)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(f->view->headline(&f->context, &text), 0);
	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
}

void fixture_act(Fixture *f, Command command, const char *key, Effect *ret)
{
	effect_done(ret);
	for (size_t i = 0; f->view->actions[i].command != COMMAND_NONE; i++)
		if (f->view->actions[i].command == command) {
			assert_int_equal(f->view->actions[i].run(&f->context, key, ret), 0);
			return;
		}
	fail();
}

void fixture_type(Fixture *f, Effect *effect, const char *typed)
{
	Effect next = { 0 };

	assert_int_equal(effect->kind, EFFECT_PROMPT);
	assert_int_equal(effect->accept(&f->context, typed, &next), 0);
	effect_done(effect);
	*effect = next;
}
