/* SPDX-License-Identifier: MIT */
#include <locale.h>

#include "tests/unit/tui-fixture.h"
#include "tui/draw.h"

typedef struct Picture {
	Model *model;
	Table *table;
	Canvas canvas;
	DrawPlaces places;
	Screen screen;
	char *text;
} Picture;

static void begin(Picture *picture, const View *view)
{
	*picture = (Picture){ .model = model_new() };
	picture->model->uid = 1000;
	picture->model->link = LINK_UP;
	picture->table = table_new(view->columns, view->n_columns);
	assert_non_null(picture->table);
	picture->screen = (Screen){ .model = picture->model,
				    .view = view,
				    .table = picture->table,
				    .utf8 = true,
				    .details_shown = true };
}

static const char *draw(Picture *picture, size_t width, size_t height)
{
	ViewContext context = { .model = picture->model, .utf8 = true, .now_usec = 60 * USEC_PER_SEC };
	Rows *rows = rows_new(picture->screen.view->n_columns);

	assert_int_equal(picture->screen.view->rows(&context, rows), 0);
	assert_int_equal(table_take(picture->table, rows), 0);
	assert_int_equal(canvas_resize(&picture->canvas, width, height), 0);
	assert_int_equal(draw_screen(&picture->screen, &picture->canvas, &picture->places), 0);
	free(picture->text);
	picture->text = canvas_text(&picture->canvas);
	assert_non_null(picture->text);
	return picture->text;
}

static void end(Picture *picture)
{
	table_free(picture->table);
	canvas_done(&picture->canvas);
	model_free(picture->model);
	free(picture->text);
}

/* ---- cells ---- */

static void what_does_not_fit_is_not_there(void **state)
{
	_cleanup_(canvas_done) Canvas canvas = { 0 };
	_cleanup_free_ char *text = NULL;

	assert_int_equal(canvas_resize(&canvas, 4, 2), 0);
	assert_int_equal(canvas_put(&canvas, 0, 2, "abcdef", STYLE_PLAIN), 4);
	assert_int_equal(canvas_put(&canvas, 1, 9, "abcdef", STYLE_PLAIN), 9);
	assert_int_equal(canvas_put(&canvas, 7, 0, "abcdef", STYLE_PLAIN), 0);
	canvas_mark(&canvas, 1, 3, 100, STYLE_SELECTED);
	canvas_paint(&canvas, 9, 0, 100, STYLE_BAD);
	assert_int_equal(canvas_blank(&canvas, 1, 3, 100, STYLE_PLAIN), 4);
	text = canvas_text(&canvas);
	assert_string_equal(text, "  ab\n\n");
}

static void wide_characters_are_whole(void **state)
{
	_cleanup_(canvas_done) Canvas canvas = { 0 };
	_cleanup_free_ char *text = NULL;

	assert_int_equal(canvas_resize(&canvas, 6, 1), 0);
	(void)canvas_put(&canvas, 0, 0, "\u6f22\u6f22", STYLE_PLAIN);
	assert_true(canvas.cells[1].follows);
	/* Half of one is overwritten: the other half is no character. */
	(void)canvas_put(&canvas, 0, 1, "x", STYLE_PLAIN);
	assert_int_equal(canvas.cells[0].characters[0], ' ');
	(void)canvas_put(&canvas, 0, 2, "y", STYLE_PLAIN);
	assert_int_equal(canvas.cells[3].characters[0], ' ');
	/* None in the last column. */
	(void)canvas_put(&canvas, 0, 5, "\u6f22", STYLE_PLAIN);
	text = canvas_text(&canvas);
	assert_string_equal(text, " xy\n");
}

/* Marks belong to the cell before; more than a cell has room for are left out. */
static void marks_are_in_their_cell(void **state)
{
	_cleanup_(canvas_done) Canvas canvas = { 0 };

	assert_int_equal(canvas_resize(&canvas, 4, 1), 0);
	assert_int_equal(canvas_put(&canvas, 0, 0, "\u0301e\u0301\u0302\u0303\u0304x", STYLE_PLAIN), 2);
	assert_int_equal(canvas.cells[0].characters[0], 'e');
	assert_int_equal(canvas.cells[0].characters[3], 0x303);
	assert_int_equal(canvas.cells[1].characters[0], 'x');
}

/* Whatever comes to the canvas, no control character is in it. */
static void no_command_is_in_a_cell(void **state)
{
	_cleanup_(canvas_done) Canvas canvas = { 0 };

	assert_int_equal(canvas_resize(&canvas, 40, 1), 0);
	(void)canvas_put(&canvas, 0, 0, "\033[2J\x9b\xff\xc2\x9b\u202e\r\n\a", STYLE_PLAIN);
	for (size_t i = 0; i < canvas.width; i++)
		assert_true(canvas.cells[i].characters[0] == ' ' ||
			    (canvas.cells[i].characters[0] > ' ' && canvas.cells[i].characters[0] < 0x7f));
}

/* ---- the screen ---- */

static void sessions_are_drawn(void **state)
{
	Picture picture;
	const char *text;

	begin(&picture, &view_sessions);
	take_ids(picture.model, (const char *const[]){ ID_A, ID_B, NULL });
	text = draw(&picture, 80, 10);
	assert_string_equal(
		text, "1Sessions 2Exposure 3Routes 4Denied 5Allow-IP 6Policy 7Verify 8Doctor 9Help\n"
		      "The agents that run in jails now. Enter shows what one sees and may change.\n"
		      "AGENT   USER  STATE    AGE  NETWORK  DENIED  WORKSPACE     ID\n"
		      "claude  ann   running  <1m                   /src/project  aaaaaaaaaaaaaaaa\n"
		      "claude  ann   running  <1m                   /src/project  bbbbbbbbbbbbbbbb\n"
		      "\n\n\n"
		      "                                                                             1/2\n"
		      "Enter open  x stop  v verify  A all  ? help  / search  f filter  o order  q quit\n");
	assert_int_equal(picture.places.rows, 3);
	assert_int_equal(picture.places.heading, 2);
	assert_int_equal(picture.places.tabs[1].from, 10);
	end(&picture);
}

/* How to get out is to be seen at every size that has a line for it. */
static void every_size_is_drawn(void **state)
{
	const View *view;

	for (size_t i = 0; (view = view_at(i)); i++) {
		for (size_t height = 1; height <= 30; height++) {
			for (size_t width = 1; width <= 120; width += width < 10 ? 1 : 7) {
				Picture picture;
				const char *text;

				begin(&picture, view);
				take_ids(picture.model, (const char *const[]){ ID_A, ID_B, NULL });
				picture.screen.details = "May change: /src\nA line without a name\n";
				picture.screen.message = "a message";
				text = draw(&picture, width, height);
				if (width >= 16 && height >= 3)
					assert_non_null(strstr(text, "q quit"));
				assert_true(picture.places.rows + picture.places.n_rows <= height);
				end(&picture);
			}
		}
	}
}

static void every_window_is_drawn_at_every_size(void **state)
{
	Effect choices[] = { { .title = (char *)"for this session", .text = (char *)"s" },
			     { .title = (char *)"always", .text = (char *)"a" } };

	for (DialogKind kind = DIALOG_SHOW; kind <= DIALOG_LINE; kind++) {
		for (size_t height = 1; height <= 26; height += height < 8 ? 1 : 6) {
			for (size_t width = 1; width <= 100; width += width < 12 ? 1 : 17) {
				Picture picture;

				begin(&picture, &view_sessions);
				picture.screen.dialog =
					(Dialog){ .kind = kind,
						  .title = (char *)"Title",
						  .text = (char *)"Words that go on and on and on and on.\n"
								  "Name: another line",
						  .problem = (char *)"it is wrong",
						  .choices = choices,
						  .n_choices = ELEMENTSOF(choices) };
				assert_int_equal(
					line_editor_set(&picture.screen.dialog.line, "what is typed \u6f22"),
					0);
				(void)draw(&picture, width, height);
				assert_true(!picture.places.has_cursor || picture.places.cursor_y < height);
				line_editor_done(&picture.screen.dialog.line);
				end(&picture);
			}
		}
	}
}

static void a_question_says_how_to_answer(void **state)
{
	Picture picture;
	const char *text;

	begin(&picture, &view_sessions);
	picture.screen.dialog =
		(Dialog){ .kind = DIALOG_CONFIRM, .title = (char *)"Stop", .text = (char *)"Stop it?" };
	text = draw(&picture, 60, 12);
	assert_non_null(strstr(text, "Stop it?"));
	assert_non_null(strstr(text, "y yes  n no"));
	end(&picture);
}

static void a_banner_says_what_is_wrong(void **state)
{
	Picture picture;
	const char *text;

	begin(&picture, &view_sessions);
	take_ids(picture.model, (const char *const[]){ ID_A, NULL });
	assert_int_equal(model_set_link(picture.model, LINK_NO_SERVICE, "the service has gone; press R"), 0);
	text = draw(&picture, 80, 24);
	assert_non_null(strstr(text, "the service has gone; press R"));
	/* What was known is still there. */
	assert_non_null(strstr(text, ID_A));
	end(&picture);
}

static void strangers_names_are_escaped(void **state)
{
	Picture picture;
	ClientSessions sessions = { .items = calloc(1, sizeof(ClientSession)), .n = 1 };
	const char *text;

	begin(&picture, &view_sessions);
	sessions.items[0] = session_of(ID_A, 1, "running");
	free(sessions.items[0].workspace);
	sessions.items[0].workspace = copy("/src/\033]0;owned\007\xff");
	assert_int_equal(model_take_sessions(picture.model, &sessions), 0);
	text = draw(&picture, 120, 10);
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "\\x1b]0;owned\\x07\\xff"));
	end(&picture);
}

/* A table of ten thousand rows is drawn as fast as one that fits. */
static void long_tables_are_cut(void **state)
{
	Picture picture;

	begin(&picture, &view_denied);
	take_ids(picture.model, (const char *const[]){ ID_A, NULL });
	for (unsigned i = 0; i < 1000; i++) {
		_cleanup_free_ char *port = NULL;
		ClientTable row;

		assert_true(asprintf(&port, "%u", i) > 0);
		row = table_of(DENIED_MAX, 1, "5", "tcp", "10.0.0.1", port, "curl (7)", "private network",
			       "1");
		assert_int_equal(model_take_denied(picture.model, ID_A, &row), 0);
	}
	(void)draw(&picture, 80, 24);
	assert_int_equal(table_count(picture.table), 1000);
	table_select(picture.table, 999);
	assert_non_null(strstr(draw(&picture, 80, 24), "1000/1000"));
	end(&picture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_is_not_there),
		cmocka_unit_test(wide_characters_are_whole),
		cmocka_unit_test(marks_are_in_their_cell),
		cmocka_unit_test(no_command_is_in_a_cell),
		cmocka_unit_test(sessions_are_drawn),
		cmocka_unit_test(every_size_is_drawn),
		cmocka_unit_test(every_window_is_drawn_at_every_size),
		cmocka_unit_test(a_question_says_how_to_answer),
		cmocka_unit_test(a_banner_says_what_is_wrong),
		cmocka_unit_test(strangers_names_are_escaped),
		cmocka_unit_test(long_tables_are_cut),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
