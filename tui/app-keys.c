/* SPDX-License-Identifier: MIT */

/* Keys and the mouse: what the program does with them itself. All else is the view's. */

#include "base/clock.h"
#include "tui/app-state.h"

#define DOUBLE_CLICK_USEC (400 * USEC_PER_MSEC)

static void search(App *app, bool backward)
{
	Table *table = app_view(app)->table;

	if (!table_search_text(table))
		app_open_line(app, false);
	else if (!table_search_next(table, backward))
		app_tell(app, STYLE_CAUTION, "no row holds what is searched for");
}

static void go_back(App *app)
{
	Table *table = app_view(app)->table;

	if (table_search_text(table))
		(void)table_search(table, NULL);
	else if (table_filter_text(table))
		(void)table_filter(table, NULL);
	else if (app->message)
		app_tell(app, STYLE_PLAIN, NULL);
	else
		app_go(app, app->before != app->current ? app->before : 0);
}

static void go_to_help(App *app)
{
	for (size_t i = 0; i < app->n_views; i++)
		if (app->views[i].view == &view_help)
			app_go(app, i == app->current ? app->before : i);
}

static void other_session(App *app, bool next)
{
	const Model *model = app->model;
	size_t i = 0;

	if (model->n_sessions == 0)
		return;
	while (i < model->n_sessions && model->open && !streq(model->sessions[i]->session.id, model->open))
		i++;
	i = i == model->n_sessions ? 0 : (i + (next ? 1 : model->n_sessions - 1)) % model->n_sessions;
	(void)model_open(app->model, model->sessions[i]->session.id);
	if (model->open)
		(void)table_select_key(app->views[0].table, model->open);
	app_update_wants(app);
}

/* The row as text: everything that is known of it, nothing cut. */
static void show_row(App *app)
{
	AppView *view = app_view(app);
	ViewContext context = app_context(app, app->current);
	const char *key = table_selected_key(view->table);
	_cleanup_free_ char *text = NULL;

	if (!key || !view->view->details || view->view->details(&context, key, &text) < 0 || !text)
		app_tell(app, STYLE_CAUTION, "there is no row to show");
	else
		app_show(app, view->view->title, text);
}

static bool has_action(const View *view, Command command)
{
	for (const ViewAction *action = view->actions; action && action->command != COMMAND_NONE; action++)
		if (action->command == command)
			return true;
	return false;
}

static void open_row(App *app)
{
	if (has_action(app_view(app)->view, COMMAND_OPEN))
		app_run_action(app, COMMAND_OPEN);
	else
		show_row(app);
}

static void sort(App *app, bool next)
{
	Table *table = app_view(app)->table;

	if (next)
		(void)table_sort_next(table);
	else
		(void)table_sort(table, table_sort_column(table), !table_descending(table));
}

static void quit(App *app)
{
	const char *question = NULL;
	Effect effect = { .kind = EFFECT_QUIT };

	for (size_t i = 0; i < app->n_views && !question; i++) {
		ViewContext context = app_context(app, i);
		const View *view = app->views[i].view;

		question = view->unsaved ? view->unsaved(&context) : NULL;
	}
	/* Without memory for the question nothing is lost without being asked about. */
	if (question && !(effect.question = strdup(question)))
		return;
	app_do(app, &effect);
}

void app_command(App *app, Command command)
{
	Table *table = app_view(app)->table;
	ssize_t page = (ssize_t)MAX_OF(app->places.n_rows, (size_t)1);

	switch (command) {
	case COMMAND_NONE:
		return;
	case COMMAND_UP:
		table_move(table, -1);
		break;
	case COMMAND_DOWN:
		table_move(table, 1);
		break;
	case COMMAND_PAGE_UP:
		table_move(table, -page);
		break;
	case COMMAND_PAGE_DOWN:
		table_move(table, page);
		break;
	case COMMAND_FIRST:
		table_select(table, 0);
		break;
	case COMMAND_LAST:
		table_select(table, SIZE_MAX);
		break;
	case COMMAND_NEXT_VIEW:
		app_go(app, (app->current + 1) % app->n_views);
		break;
	case COMMAND_PREVIOUS_VIEW:
		app_go(app, (app->current + app->n_views - 1) % app->n_views);
		break;
	case COMMAND_NEXT_SESSION:
	case COMMAND_PREVIOUS_SESSION:
		other_session(app, command == COMMAND_NEXT_SESSION);
		break;
	case COMMAND_OPEN:
		open_row(app);
		break;
	case COMMAND_COPY:
		show_row(app);
		break;
	case COMMAND_BACK:
		go_back(app);
		break;
	case COMMAND_HELP:
		go_to_help(app);
		break;
	case COMMAND_QUIT:
		quit(app);
		break;
	case COMMAND_SEARCH:
	case COMMAND_FILTER:
		app_open_line(app, command == COMMAND_FILTER);
		break;
	case COMMAND_SEARCH_NEXT:
	case COMMAND_SEARCH_PREVIOUS:
		search(app, command == COMMAND_SEARCH_PREVIOUS);
		break;
	case COMMAND_SORT:
	case COMMAND_REVERSE:
		sort(app, command == COMMAND_SORT);
		break;
	case COMMAND_DETAILS:
		app->screen.details_shown = !app->screen.details_shown;
		break;
	case COMMAND_REFRESH:
		app_refresh(app);
		break;
	case COMMAND_REDRAW:
		term_forget(app->term);
		break;
	case COMMAND_SUSPEND:
		app_suspend(app);
		break;
	case COMMAND_MOUSE:
		app->mouse_wanted = !app->mouse_wanted;
		app_tell(app, STYLE_MESSAGE,
			 app->mouse_wanted ? "the mouse is taken: it selects rows and views"
					   : "the mouse is the terminal's: it selects text");
		break;
	default:
		if (command >= COMMAND_VIEW_1 && command <= COMMAND_VIEW_9)
			app_go(app, (size_t)(command - COMMAND_VIEW_1));
		else
			app_run_action(app, command);
	}
}

/* ---- the mouse ---- */

static bool is_in(DrawSpan span, size_t x)
{
	return x >= span.from && x < span.to;
}

static void click_row(App *app, size_t y)
{
	Table *table = app_view(app)->table;
	size_t row = app->places.top + y - app->places.rows;
	uint64_t now = clock_usec(CLOCK_MONOTONIC);
	bool again = row == app->click_row && now - app->click_usec < DOUBLE_CLICK_USEC;

	if (row >= table_count(table))
		return;
	table_select(table, row);
	app->click_row = row;
	app->click_usec = again ? 0 : now;
	if (again)
		open_row(app);
}

static void click_heading(App *app, size_t x)
{
	AppView *view = app_view(app);

	for (size_t i = 0; i < view->view->n_columns && i < DRAW_COLUMNS_MOST; i++)
		if (is_in(app->places.columns[i], x))
			(void)table_sort(view->table, i,
					 table_sort_column(view->table) == i &&
						 !table_descending(view->table));
}

static void click(App *app, size_t y, size_t x)
{
	if (y == 0) {
		for (size_t i = 0; i < app->n_views && i < DRAW_TABS_MOST; i++)
			if (is_in(app->places.tabs[i], x))
				app_go(app, i);
	} else if (y == app->places.heading) {
		click_heading(app, x);
	} else if (y >= app->places.rows && y < app->places.rows + app->places.n_rows) {
		click_row(app, y);
	}
}

static void mouse(App *app, const TermInput *input)
{
	Table *table = app_view(app)->table;

	/* A question is answered with a key. */
	if (app->screen.dialog.kind != DIALOG_NONE)
		return;
	if (input->mouse == TERM_MOUSE_PRESS)
		click(app, input->y, input->x);
	else
		table_scroll(table, input->mouse == TERM_MOUSE_UP ? -3 : 3, app->places.n_rows);
}

void app_key(App *app, const TermInput *input)
{
	uint64_t messages = app->message_count;

	if (input->mouse != TERM_MOUSE_NONE) {
		mouse(app, input);
		return;
	}
	if (input->code == KEYCODE_NONE)
		return;
	if (input->code == KEYCODE_CONTROL('z') || input->code == KEYCODE_CONTROL('l')) {
		app_command(app, key_command(input->code, app_view(app)->view->name));
		return;
	}
	if (app->screen.dialog.kind != DIALOG_NONE) {
		app_dialog_key(app, input);
		return;
	}
	/* What is pasted outside of a line was meant for something else. */
	if (input->pasted)
		return;
	app_command(app, key_command(input->code, app_view(app)->view->name));
	/* A message is read when the next key comes, but not while its call is still going. */
	if (app->message && messages == app->message_count && !app->call.going)
		app_tell(app, STYLE_PLAIN, NULL);
}
