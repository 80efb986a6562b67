/* SPDX-License-Identifier: MIT */
#include "tui/dump.h"

#include <inttypes.h>
#include <time.h>

#include "tui/feed.h"
#include "tui/words.h"

/* ---- printing ---- */

typedef struct Cells {
	char **cells;
	size_t n;
} Cells;

static void cells_done(Cells *cells)
{
	for (size_t i = 0; cells->cells && i < cells->n; i++)
		free(cells->cells[i]);
	free(cells->cells);
}

/* A program gets the whole number, a person what the screen has room for. NULL: no memory. */
static char *cell_text(const Column *column, const Cell *cell, bool json)
{
	char *text = NULL;

	if (!json || !column->number)
		return strdup(cell->text);
	return asprintf(&text, "%" PRIu64, cell->order) < 0 ? NULL : text;
}

static int cells_make(const Table *table, const View *view, bool json, Cells *ret)
{
	size_t n_rows = table_count(table);

	ret->cells = calloc(n_rows * view->n_columns + 1, sizeof(*ret->cells));
	if (!ret->cells)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++) {
		for (size_t c = 0; c < view->n_columns; c++, ret->n++) {
			const Cell *cell = &table_cells(table, i)[c];

			/* What is not there is null. */
			if (json && (view->columns[c].number || view->columns[c].flag) && !*cell->text)
				continue;
			ret->cells[ret->n] = cell_text(&view->columns[c], cell, json);
			if (!ret->cells[ret->n])
				return -ENOMEM;
		}
	}
	return 0;
}

/* Columns without a title and a cell would leave a gap. */
static bool is_blank(const Column *column, const Table *table, size_t c)
{
	bool blank = column->title && !*column->title;

	for (size_t i = 0; blank && i < table_count(table); i++)
		blank = !*table_cells(table, i)[c].text;
	return blank;
}

static int print_rows_of(FILE *out, const View *view, const ViewContext *context, const Table *table,
			 bool json, const PrintStyle *style)
{
	_cleanup_free_ PrintColumn *columns = calloc(view->n_columns, sizeof(*columns));
	_cleanup_(cells_done) Cells cells = { 0 };
	const char *nothing = view->empty ? view->empty(context) : NULL;
	PrintTable printed;

	if (!columns || cells_make(table, view, json, &cells) < 0)
		return -ENOMEM;
	for (size_t c = 0; c < view->n_columns; c++) {
		const Column *column = &view->columns[c];

		columns[c] = (PrintColumn){ is_blank(column, table, c) ? NULL : column->title, column->key,
					    column->number ? PRINT_NUMBER
					    : column->flag ? PRINT_FLAG
							   : PRINT_TEXT,
					    column->least > 0 };
	}
	printed = (PrintTable){ columns, view->n_columns, table_count(table),
				(const char *const *)cells.cells };
	return json ? print_json(out, &printed, style)
		    : print_table(out, &printed, style, nothing ?: "nothing");
}

int dump_print(FILE *out, const View *view, const ViewContext *context, bool json, const PrintStyle *style)
{
	_cleanup_(table_freep) Table *table = table_new(view->columns, view->n_columns);
	_cleanup_(rows_freep) Rows *rows = rows_new(view->n_columns);
	_cleanup_free_ char *headline = NULL;
	int r;

	if (!table || !rows)
		return -ENOMEM;
	r = view->rows(context, rows);
	if (r == 0)
		r = table_take(table, TAKE_PTR(rows));
	if (r == 0)
		r = table_sort(table, view->sort_column, view->descending);
	if (r == 0 && view->headline && !json)
		r = view->headline(context, &headline);
	if (r < 0)
		return r;
	if (!json && table_count(table) > 0) {
		_cleanup_free_ char *line = format_line(headline ?: view->about,
							FORMAT_SENTENCE | (style->utf8 ? FORMAT_UTF8 : 0));

		if (!line)
			return -ENOMEM;
		fprintf(out, "%s\n\n", line);
	}
	return print_rows_of(out, view, context, table, json, style);
}

/* ---- asking ---- */

typedef struct Dump {
	const DumpOptions *options;
	sd_event *event;
	Model *model;
	Feed *feed;
	sd_event_source *look; /* behind the callback in which something came */
	bool chosen, running;
	int status;
} Dump;

static void finish(Dump *dump, int status)
{
	dump->status = status;
	(void)sd_event_exit(dump->event, 0);
}

static void dump_refuse(Dump *dump, int status, const char *sentence)
{
	print_complaint_of(dump->options->err, "claude-sandbox-tui", sentence);
	finish(dump, status);
}

/* Of several sessions nobody has named one: that is said beside what is printed. Return: 0 or -ENOMEM. */
static int tell_newest(const Dump *dump, const ModelSession *session, size_t n)
{
	const ViewContext context = { .model = dump->model, .utf8 = dump->options->style.utf8 };
	_cleanup_free_ char *who = NULL, *text = NULL;
	int r = words_session(&context, session, &who);

	if (r == 0)
		r = words_set(&text, "of %zu sessions the newest is shown, %s; --session ID shows another", n,
			      who);
	if (r == 0)
		print_complaint_of(dump->options->err, "claude-sandbox-tui", text);
	return r;
}

/* The session that is meant becomes the open one. Return: is there one, or none needed? */
static bool choose(Dump *dump)
{
	const DumpOptions *options = dump->options;
	const ModelSession *found = NULL;
	size_t n = 0;

	if (!options->view->of_session && !options->session)
		return true;
	for (size_t i = 0; i < dump->model->n_sessions; i++) {
		const ModelSession *session = dump->model->sessions[i];

		if (!options->session || starts_with(session->session.id, options->session)) {
			found = session; /* the newest comes last */
			n++;
		}
	}
	if (n == 0) {
		dump_refuse(dump, CS_EXIT_FOUND,
			    options->session ? "no session has that id; '--dump sessions' lists them"
					     : "there is no session; start an agent in a project");
		return false;
	}
	if (n > 1 && options->session) {
		dump_refuse(dump, CS_EXIT_FOUND, "more than one session's id begins so; give more of it");
		return false;
	}
	if (model_open(dump->model, found->session.id) < 0 || (n > 1 && tell_newest(dump, found, n) < 0)) {
		dump_refuse(dump, CS_EXIT_REFUSED, "no memory; close something");
		return false;
	}
	return true;
}

static bool is_settled(const ModelTable *table)
{
	return !table->asked && (table->state == MODEL_HERE || table->state == MODEL_FAILED);
}

/* Every table that the view wants has come, or will not. *ret_problem: why one will not; borrowed. */
static bool all_settled(const Dump *dump, const char **ret_problem)
{
	unsigned wants = dump->options->view->wants;
	ModelSession *open = model_open_session(dump->model);

	for (unsigned part = 1; part < 1u << MODEL_PARTS; part <<= 1) {
		bool every = part == MODEL_DENIED && !dump->options->view->of_session;

		if (!(wants & part))
			continue;
		for (size_t i = 0; every && i < dump->model->n_sessions; i++)
			if (!is_settled(&dump->model->sessions[i]->denied))
				return false;
		for (size_t i = 0; part == MODEL_DETAILS && i < dump->model->n_sessions; i++)
			if (dump->model->sessions[i]->details_state != MODEL_HERE &&
			    dump->model->sessions[i]->details_state != MODEL_FAILED)
				return false;
		if (!every) {
			const ModelTable *table = model_table(dump->model, open, part);

			if (!table)
				continue;
			if (!is_settled(table))
				return false;
			if (table->state == MODEL_FAILED)
				*ret_problem = table->problem ?: "the service does not say it; try again";
		}
	}
	return true;
}

static void print(Dump *dump)
{
	const DumpOptions *options = dump->options;
	_cleanup_free_ void *state = calloc(1, options->view->state_size + 1);
	struct timespec now;
	ViewContext context;
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	context = (ViewContext){
		.model = dump->model,
		.state = state,
		.utf8 = options->style.utf8,
		.now_usec = (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC,
	};
	r = state ? dump_print(options->out, options->view, &context, options->json, &options->style)
		  : -ENOMEM;
	if (r == 0)
		finish(dump, dump->status);
	else
		dump_refuse(dump, CS_EXIT_REFUSED,
			    r == -ENOMEM ? "no memory; close something" : strerror(-r));
}

/* Verify or Doctor: begun once, and waited for. Return: has it ended? */
static bool run(Dump *dump, ModelPart part)
{
	const ModelRun *going = part == MODEL_VERIFY ? &dump->model->verify : &dump->model->doctor;
	Effect effect = { .kind = EFFECT_RUN, .part = part, .session = dump->model->open };
	int r;

	if (!dump->running) {
		dump->running = true;
		r = feed_run(dump->feed, &effect);
		if (r < 0)
			dump_refuse(dump, CS_EXIT_REFUSED, strerror(-r));
		return false;
	}
	if (going->state == RUN_FAILED)
		dump_refuse(dump, CS_EXIT_REFUSED,
			    going->problem ?: "the checks could not be run; try again");
	if (going->state == RUN_ENDED)
		dump->status = going->passed ? 0 : CS_EXIT_FOUND;
	return going->state == RUN_ENDED;
}

static int on_look(sd_event_source *source, void *userdata)
{
	Dump *dump = userdata;
	unsigned wants = dump->options->view->wants;
	const char *problem = NULL;

	dump->look = sd_event_source_disable_unref(dump->look);
	if (dump->model->link == LINK_NO_BUS || dump->model->link == LINK_NO_SERVICE) {
		dump_refuse(dump, CS_EXIT_REFUSED,
			    dump->model->problem ?: "the service does not answer; try again");
		return 0;
	}
	if (dump->model->link != LINK_UP)
		return 0;
	if (dump->model->sessions_state == MODEL_FAILED) {
		dump_refuse(dump, CS_EXIT_REFUSED, dump->model->sessions_problem);
		return 0;
	}
	if (dump->model->sessions_state != MODEL_HERE)
		return 0;
	if (!dump->chosen) {
		if (!choose(dump))
			return 0;
		dump->chosen = true;
		feed_want(dump->feed, wants | MODEL_SESSIONS);
	}
	if ((wants & MODEL_VERIFY && !run(dump, MODEL_VERIFY)) ||
	    (wants & MODEL_DOCTOR && !run(dump, MODEL_DOCTOR)))
		return 0;
	if (!all_settled(dump, &problem))
		return 0;
	if (problem)
		dump_refuse(dump, CS_EXIT_REFUSED, problem);
	else
		print(dump);
	return 0;
}

static void look(void *userdata)
{
	Dump *dump = userdata;

	if (!dump->look && sd_event_add_defer(dump->event, &dump->look, on_look, dump) < 0)
		dump_refuse(dump, CS_EXIT_REFUSED, "no memory; close something");
}

int dump_run(const DumpOptions *options)
{
	_cleanup_(model_freep) Model *model = model_new();
	Dump dump = { .options = options, .model = model };
	int r;

	r = model ? sd_event_new(&dump.event) : -ENOMEM;
	if (r >= 0 && options->host && !(model->host = strdup(options->host)))
		r = -ENOMEM;
	if (r >= 0 && options->view->wants == 0) {
		print(&dump);
	} else if (r >= 0) {
		r = feed_new(
			&(FeedOptions){
				.event = dump.event, .model = model, .changed = look, .userdata = &dump },
			&dump.feed);
		if (r >= 0) {
			feed_want(dump.feed, MODEL_SESSIONS);
			look(&dump); /* it may have failed already */
			r = sd_event_loop(dump.event);
		}
	}
	if (r < 0) {
		print_complaint_of(options->err, "claude-sandbox-tui", strerror(-r));
		dump.status = CS_EXIT_REFUSED;
	}
	sd_event_source_disable_unref(dump.look);
	feed_free(dump.feed);
	sd_event_unref(dump.event);
	return dump.status;
}
