/* SPDX-License-Identifier: MIT */

/* The model's tables: answers, what was denied as it comes, and the rows of Verify and Doctor. */

#include "tui/model-parts.h"

#include <assert.h>

ModelTable *model_table(Model *model, ModelSession *session, ModelPart part)
{
	switch (part) {
	case MODEL_ALLOW_IP:
		return &model->allow_ip;
	case MODEL_POLICY:
		return &model->policy;
	case MODEL_EXPOSURE:
		return session ? &session->exposure : NULL;
	case MODEL_ENVIRONMENT:
		return session ? &session->environment : NULL;
	case MODEL_ROUTES:
		return session ? &session->routes : NULL;
	case MODEL_PORTS:
		return session ? &session->ports : NULL;
	case MODEL_DENIED:
		return session ? &session->denied : NULL;
	default:
		return NULL;
	}
}

int model_take_table(Model *model, ModelSession *session, ModelPart part, ClientTable *table)
{
	ModelTable *to = model_table(model, session, part);

	assert(to);
	client_table_done(&to->table);
	to->table = *table;
	*table = (ClientTable){ 0 };
	to->state = MODEL_HERE;
	to->asked = false;
	model_touch(model, part);
	return model_set_text(&to->problem, NULL);
}

int model_fail_table(Model *model, ModelSession *session, ModelPart part, const char *sentence)
{
	ModelTable *to = model_table(model, session, part);

	assert(to);
	to->state = MODEL_FAILED;
	to->asked = false;
	model_touch(model, part);
	return model_set_text(&to->problem, sentence);
}

static void make_stale(Model *model, ModelSession *session, unsigned parts)
{
	for (size_t i = 0; i < MODEL_PARTS; i++) {
		ModelTable *table =
			parts & 1u << i ? model_table(model, session, (ModelPart)(1u << i)) : NULL;

		if (table)
			table->stale = true;
	}
	if (session && parts & MODEL_DETAILS)
		session->details_stale = true;
}

void model_make_stale(Model *model, ModelSession *session, unsigned parts)
{
	make_stale(model, session, parts);
	for (size_t i = 0; !session && i < model->n_sessions; i++)
		make_stale(model, model->sessions[i], parts);
}

/* ---- denied ---- */

static bool is_same_attempt(char *const *a, char *const *b)
{
	return streq(a[DENIED_ADDRESS], b[DENIED_ADDRESS]) && streq(a[DENIED_PORT], b[DENIED_PORT]) &&
	       streq(a[DENIED_PROTOCOL], b[DENIED_PROTOCOL]) && streq(a[DENIED_PROGRAM], b[DENIED_PROGRAM]) &&
	       streq(a[DENIED_REASON], b[DENIED_REASON]);
}

/* The latest stands first, as in the service's answer. */
static void move_to_front(ClientTable *table, size_t row, char **cells)
{
	memmove(table->cells + DENIED_MAX, table->cells, row * DENIED_MAX * sizeof(*table->cells));
	memcpy(table->cells, cells, DENIED_MAX * sizeof(*table->cells));
}

static int make_room(ClientTable *table)
{
	char **grown;

	if (table->n_rows == MODEL_DENIED_MOST) {
		table->n_rows--;
		for (size_t i = 0; i < DENIED_MAX; i++)
			free(table->cells[table->n_rows * DENIED_MAX + i]);
		return 0;
	}
	grown = reallocarray(table->cells, table->n_rows + 1, DENIED_MAX * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	table->cells = grown;
	table->n_columns = DENIED_MAX;
	return 0;
}

int model_take_denied(Model *model, const char *id, ClientTable *row)
{
	ModelSession *session = model_session(model, id);
	ClientTable *table;
	size_t at = 0;
	int r = 0;

	if (!session || row->n_rows != 1 || row->n_columns != DENIED_MAX) {
		client_table_done(row);
		return session ? -EBADMSG : 0;
	}
	table = &session->denied.table;
	while (at < table->n_rows && !is_same_attempt(table->cells + at * DENIED_MAX, row->cells))
		at++;
	if (at < table->n_rows) {
		for (size_t i = 0; i < DENIED_MAX; i++)
			free(table->cells[at * DENIED_MAX + i]);
	} else {
		r = make_room(table);
		if (r < 0) {
			client_table_done(row);
			return r;
		}
		at = table->n_rows++;
	}
	move_to_front(table, at, row->cells);
	free(row->cells);
	*row = (ClientTable){ 0 };
	model_touch(model, MODEL_DENIED);
	return 0;
}

/* ---- runs ---- */

static ModelRun *run_of(Model *model, ModelPart part)
{
	assert(part == MODEL_DOCTOR || part == MODEL_VERIFY);
	return part == MODEL_DOCTOR ? &model->doctor : &model->verify;
}

int model_begin_run(Model *model, ModelPart part, const char *subject, bool probes, uint64_t now_usec)
{
	ModelRun *run = run_of(model, part);
	char *copy = strdup(subject);

	if (!copy)
		return -ENOMEM;
	model_run_done(run);
	run->state = RUN_GOING;
	run->subject = copy;
	run->probes = probes;
	run->started_usec = now_usec;
	run->rows.n_columns = RUN_MAX;
	model_touch(model, part);
	return 0;
}

int model_take_run_row(Model *model, ModelPart part, ClientTable *row)
{
	ModelRun *run = run_of(model, part);
	ClientTable *table = &run->rows;
	size_t at = 0;

	if (row->n_rows != 1 || row->n_columns != RUN_MAX) {
		client_table_done(row);
		return -EBADMSG;
	}
	while (at < table->n_rows && !streq(table->cells[at * RUN_MAX + RUN_ID], row->cells[RUN_ID]))
		at++;
	if (at < table->n_rows) {
		for (size_t i = 0; i < RUN_MAX; i++)
			free(table->cells[at * RUN_MAX + i]);
	} else {
		char **grown = reallocarray(table->cells, table->n_rows + 1, RUN_MAX * sizeof(*grown));

		if (!grown || table->n_rows >= MODEL_RUN_MOST) {
			table->cells = grown ?: table->cells;
			client_table_done(row);
			return grown ? -E2BIG : -ENOMEM;
		}
		table->cells = grown;
		table->n_rows++;
	}
	memcpy(table->cells + at * RUN_MAX, row->cells, RUN_MAX * sizeof(*table->cells));
	free(row->cells);
	*row = (ClientTable){ 0 };
	model_touch(model, part);
	return 0;
}

int model_end_run(Model *model, ModelPart part, bool passed, const char *problem)
{
	ModelRun *run = run_of(model, part);

	run->state = problem ? RUN_FAILED : RUN_ENDED;
	run->passed = passed && !problem;
	model_touch(model, part);
	return model_set_text(&run->problem, problem);
}
