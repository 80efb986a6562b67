/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "tui/app-state.h"

#include <sys/epoll.h>

/*
 * What comes in bursts is drawn so often at most; keys are drawn at once. No timer runs unless something was
 * left undrawn.
 */
#define FRAME_USEC (40 * USEC_PER_MSEC)
#define FILL_SHARE 10 /* a table is made no more often than this times as long as it takes */
#define BURST 200     /* events that are taken before a picture is due */

AppView *app_view(App *app)
{
	return &app->views[app->current];
}

ViewContext app_context(App *app, size_t view)
{
	return (ViewContext){ .model = app->model,
			      .state = app->views[view].state,
			      .utf8 = app->options.utf8,
			      .now_usec = clock_usec(CLOCK_REALTIME) };
}

void app_tell(App *app, Style style, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	free(app->message);
	app->message = copy;
	app->message_count++;
	app->screen.message_style = style;
	app->dirty = true;
}

/* ---- rows ---- */

static uint64_t generation_of(const App *app, const AppView *view)
{
	return model_generation(app->model, view->view->wants | MODEL_SERVICE);
}

static void no_memory(App *app)
{
	app_tell(app, STYLE_BAD, "no memory; close something and press R");
}

/* A table, or a headline, that cannot be made leaves the one before it. */
static void fill(App *app, size_t index)
{
	AppView *view = &app->views[index];
	_cleanup_(rows_freep) Rows *rows = rows_new(view->view->n_columns);
	ViewContext context = app_context(app, index);
	char *headline = NULL;

	view->generation = generation_of(app, view);
	view->filled = true;
	if (!rows || view->view->rows(&context, rows) < 0 || table_take(view->table, TAKE_PTR(rows)) < 0 ||
	    (view->view->headline && view->view->headline(&context, &headline) < 0)) {
		no_memory(app);
		return;
	}
	free(view->headline);
	view->headline = headline;
}

void app_refill(App *app, size_t view)
{
	app->views[view].filled = false;
	app->dirty = true;
}

/*
 * A long table takes a while to be made, and its rows may change all the time: a key does not wait for it,
 * and nearly all the time is left for keys.
 */
void app_fill(App *app)
{
	AppView *view = app_view(app);
	uint64_t now = clock_usec(CLOCK_MONOTONIC), due = view->filled_usec + FILL_SHARE * view->cost_usec;

	app->late_usec = 0;
	if (view->filled && view->generation == generation_of(app, view))
		return;
	if (view->filled && now < due) {
		app->late_usec = due;
		return;
	}
	fill(app, app->current);
	view->filled_usec = clock_usec(CLOCK_MONOTONIC);
	view->cost_usec = view->filled_usec - now;
}

static size_t view_index(const App *app, const View *view)
{
	size_t i = 0;

	while (i < app->n_views && app->views[i].view != view)
		i++;
	return i;
}

void app_follow_selection(App *app)
{
	AppView *view = app_view(app);
	const char *key = table_selected_key(view->table);

	if (view->view != &view_sessions || !key || (app->model->open && streq(app->model->open, key)))
		return;
	/* The row of a session that has gone with this is made again below. */
	if (model_open(app->model, key) == 0)
		app_fill(app);
	feed_want(app->feed, view->view->wants);
}

void app_update_wants(App *app)
{
	feed_want(app->feed, app_view(app)->view->wants);
}

void app_go(App *app, size_t view)
{
	if (view >= app->n_views || view == app->current)
		return;
	app->before = app->current;
	app->current = view;
	app_tell(app, STYLE_PLAIN, NULL);
	/* Whichever session was open stays so. */
	if (app_view(app)->view == &view_sessions && app->model->open) {
		app_fill(app);
		(void)table_select_key(app_view(app)->table, app->model->open);
	}
	app_update_wants(app);
}

/* A view of one session without one would be empty: whoever begins with it, or comes to it, sees the
 * newest. */
static void open_any(App *app)
{
	const Model *model = app->model;

	if (model->open || model->n_sessions == 0 || app_view(app)->view == &view_sessions)
		return;
	if (model_open(app->model, model->sessions[model->n_sessions - 1]->session.id) == 0)
		app_update_wants(app);
}

/* ---- the picture ---- */

static void make_details(App *app)
{
	AppView *view = app_view(app);
	ViewContext context = app_context(app, app->current);
	const char *key = table_selected_key(view->table);
	char *details = NULL;

	if (!view->view->details || !key || view->view->details(&context, key, &details) < 0)
		details = NULL;
	free(app->details);
	app->details = details;
}

/* Ages are told in minutes: while some are on the screen, it is drawn once in each. */
static int on_minute(sd_event_source *source, uint64_t usec, void *userdata)
{
	App *app = userdata;

	app_refill(app, view_index(app, &view_sessions));
	return 0;
}

static void arm_minute(App *app)
{
	bool wanted = app_view(app)->view == &view_sessions && app->model->n_sessions > 0;
	uint64_t now = clock_usec(CLOCK_REALTIME), next = (now / (60 * USEC_PER_SEC) + 1) * 60 * USEC_PER_SEC;

	if (app->minute && !wanted) {
		(void)sd_event_source_set_enabled(app->minute, SD_EVENT_OFF);
	} else if (wanted && !app->minute) {
		(void)sd_event_add_time(app->event, &app->minute, CLOCK_REALTIME, next, USEC_PER_SEC,
					on_minute, app);
	} else if (wanted) {
		(void)sd_event_source_set_time(app->minute, next);
		(void)sd_event_source_set_enabled(app->minute, SD_EVENT_ONESHOT);
	}
}

void app_draw(App *app)
{
	AppView *view;
	ViewContext context;
	size_t width, height;

	term_size(app->term, &width, &height);
	if ((width != app->canvas.width || height != app->canvas.height) &&
	    canvas_resize(&app->canvas, width, height) < 0) {
		/* Without memory it is tried again, and not at once. */
		app->drawn_usec = clock_usec(CLOCK_MONOTONIC);
		app->urgent = false;
		return;
	}
	open_any(app);
	app_fill(app);
	app_follow_selection(app);
	make_details(app);
	view = app_view(app);
	context = app_context(app, app->current);
	app->screen.view = view->view;
	app->screen.table = view->table;
	app->screen.headline = view->headline;
	app->screen.details = app->details;
	app->screen.message = app->message;
	app->screen.empty = view->view->empty ? view->view->empty(&context) : NULL;
	(void)draw_screen(&app->screen, &app->canvas, &app->places);
	app->screen.dialog.seen |=
		app->places.lines > 0 && app->screen.dialog.top + app->places.page >= app->places.lines;
	/* While a text is shown to be copied, the mouse is the terminal's. */
	term_mouse(app->term, app->mouse_wanted && app->screen.dialog.kind != DIALOG_SHOW);
	term_show(app->term, &app->canvas, app->places.has_cursor ? app->places.cursor_y : SIZE_MAX,
		  app->places.cursor_x);
	arm_minute(app);
	app->drawn_usec = clock_usec(CLOCK_MONOTONIC);
	app->urgent = false;
	app->dirty = app->late_usec > 0;
}

static int on_frame(sd_event_source *source, uint64_t usec, void *userdata)
{
	App *app = userdata;

	app->urgent = true;
	return 0;
}

static void arm_frame(App *app, uint64_t due)
{
	if (app->frame) {
		(void)sd_event_source_set_time(app->frame, due);
		(void)sd_event_source_set_enabled(app->frame, SD_EVENT_ONESHOT);
	} else {
		(void)sd_event_add_time(app->event, &app->frame, CLOCK_MONOTONIC, due, 1, on_frame, app);
	}
}

/* Draw now, or, where that was a moment ago, a moment later. What a picture leaves undone is another one's.
 */
static void draw_in_time(App *app)
{
	uint64_t now = clock_usec(CLOCK_MONOTONIC);

	if (app->connecting && !feed_is_connecting(app->feed)) {
		app->connecting = false;
		app_return_to_screen(app);
	}
	if (app_is_away(app))
		return;
	if (app->dirty && (app->urgent || now >= MAX_OF(app->drawn_usec + FRAME_USEC, app->late_usec)))
		app_draw(app);
	if (app->dirty)
		arm_frame(app, MAX_OF(app->drawn_usec + FRAME_USEC, app->late_usec));
	else if (app->frame)
		(void)sd_event_source_set_enabled(app->frame, SD_EVENT_OFF);
}

/* ---- what comes in ---- */

static void on_changed(void *userdata)
{
	App *app = userdata;

	app->dirty = true;
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	App *app = userdata;
	TermInput input;

	/* Nobody is at the terminal any more. */
	if (revents & (EPOLLHUP | EPOLLERR)) {
		app->ended = true;
		return 0;
	}
	while (!app->ended && term_input(app->term, &input)) {
		/* A key is about what would be seen: several may come before the next picture. */
		app_fill(app);
		app_follow_selection(app);
		app_key(app, &input);
		app->dirty = app->urgent = true;
	}
	return 0;
}

void app_leave_screen(App *app)
{
	term_leave(app->term);
	(void)sd_event_source_set_enabled(app->input, SD_EVENT_OFF);
}

void app_return_to_screen(App *app)
{
	term_return(app->term);
	(void)sd_event_source_set_enabled(app->input, SD_EVENT_ON);
	app->dirty = app->urgent = true;
}

bool app_is_away(const App *app)
{
	return app->connecting || app->call.agent.pid > 0;
}

void app_refresh(App *app)
{
	app_tell(app, STYLE_PLAIN, NULL);
	if (app->model->host && app->model->link == LINK_NO_BUS) {
		app->connecting = true;
		app_leave_screen(app);
	}
	feed_refresh(app->feed);
}

/* ---- beginning and end ---- */

static int make_views(App *app)
{
	for (size_t i = 0; view_at(i) && i < APP_VIEWS_MOST; i++) {
		const View *view = view_at(i);
		AppView *to = &app->views[i];

		to->view = view;
		to->table = table_new(view->columns, view->n_columns);
		to->state = calloc(1, view->state_size + 1);
		app->n_views++;
		if (!to->table || !to->state ||
		    table_sort(to->table, view->sort_column, view->descending) < 0)
			return -ENOMEM;
		if (app->options.view && streq(view->name, app->options.view))
			app->current = app->before = i;
	}
	return 0;
}

static void app_done(App *app)
{
	app_call_done(&app->call);
	feed_free(app->feed);
	term_free(app->term);
	for (size_t i = 0; i < app->n_views; i++) {
		AppView *view = &app->views[i];

		if (view->view->state_done && view->state)
			view->view->state_done(view->state);
		free(view->state);
		free(view->headline);
		table_free(view->table);
	}
	app_close_dialog(app);
	effect_done(&app->pending);
	canvas_done(&app->canvas);
	free(app->message);
	free(app->details);
	sd_event_source_disable_unref(app->frame);
	sd_event_source_disable_unref(app->minute);
	sd_event_source_disable_unref(app->input);
	model_free(app->model);
	sd_event_unref(app->event);
}

/* ssh may ask something on the terminal: the screen is taken when it has logged in. */
static int wait_for_host(App *app, char **ret_problem)
{
	int r = 0;

	while (r >= 0 && !app->ended && feed_is_connecting(app->feed))
		r = sd_event_run(app->event, UINT64_MAX);
	if (r < 0 || app->ended || app->model->link != LINK_NO_BUS)
		return r < 0 ? r : 0;
	return refuse(ret_problem, -EHOSTUNREACH, "%s",
		      app->model->problem ?: "the other machine does not answer");
}

static int prepare(App *app, char **ret_problem)
{
	FeedOptions feed = { .changed = on_changed, .userdata = app };
	int r;

	app->model = model_new();
	if (!app->model)
		return -ENOMEM;
	app->model->uid = (uint32_t)getuid();
	if (app->options.host && !(app->model->host = strdup(app->options.host)))
		return -ENOMEM;
	r = make_views(app);
	if (r >= 0)
		r = sd_event_new(&app->event);
	if (r >= 0)
		r = app_take_signals(app);
	if (r < 0)
		return r;
	feed.event = app->event;
	feed.model = app->model;
	r = feed_new(&feed, &app->feed);
	if (r >= 0 && app->options.host)
		r = wait_for_host(app, ret_problem);
	if (r >= 0 && !app->ended)
		r = term_new(app->options.colour, &app->term, ret_problem);
	if (r >= 0 && app->term)
		r = sd_event_add_io(app->event, &app->input, STDIN_FILENO, EPOLLIN, on_input, app);
	return r < 0 ? r : 0;
}

static int loop(App *app)
{
	int r = 0;

	app_update_wants(app);
	app->dirty = app->urgent = true;
	while (r >= 0 && !app->ended) {
		draw_in_time(app);
		r = sd_event_run(app->event, UINT64_MAX);
		for (size_t i = 0; r > 0 && i < BURST && !app->ended && !app->urgent; i++)
			r = sd_event_run(app->event, 0);
	}
	return r < 0 ? r : 0;
}

int app_run(const AppOptions *options, char **ret_problem)
{
	_cleanup_(app_done) App app = {
		.options = *options,
		.screen = { .utf8 = options->utf8, .details_shown = true, .mouse = true },
		.mouse_wanted = true,
		.call = { .agent = TEXT_AGENT_INIT },
	};
	int r;

	r = prepare(&app, ret_problem);
	app.screen.model = app.model;
	return r < 0 || app.ended ? r : loop(&app);
}
