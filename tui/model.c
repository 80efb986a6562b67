/* SPDX-License-Identifier: MIT */
#include "tui/model.h"

#include <assert.h>

/* What the model's own files share. */

static int model_set_text(char **text, const char *value);
static void model_run_done(ModelRun *run);

/* ---- the model's tables: answers, what was denied as it comes, and the rows of Verify and Doctor ---- */

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

Model *model_new(void)
{
	return calloc(1, sizeof(Model));
}

static void table_done(ModelTable *table)
{
	client_table_done(&table->table);
	free(table->problem);
	*table = (ModelTable){ 0 };
}

static ModelSession *session_free(ModelSession *session)
{
	if (!session)
		return NULL;
	client_session_done(&session->session);
	client_details_done(&session->details);
	free(session->details_problem);
	table_done(&session->exposure);
	table_done(&session->environment);
	table_done(&session->routes);
	table_done(&session->ports);
	table_done(&session->denied);
	free(session);
	return NULL;
}

DEFINE_CLEANUP(ModelSession, session_free)

static void model_run_done(ModelRun *run)
{
	free(run->subject);
	free(run->problem);
	client_table_done(&run->rows);
	*run = (ModelRun){ 0 };
}

Model *model_free(Model *model)
{
	if (!model)
		return NULL;
	for (size_t i = 0; i < model->n_sessions; i++)
		session_free(model->sessions[i]);
	free(model->sessions);
	table_done(&model->allow_ip);
	table_done(&model->policy);
	model_run_done(&model->doctor);
	model_run_done(&model->verify);
	free(model->problem);
	free(model->host);
	free(model->version);
	free(model->config_error);
	free(model->sessions_problem);
	free(model->open);
	free(model->compare);
	free(model);
	return NULL;
}

void model_touch(Model *model, unsigned parts)
{
	for (size_t i = 0; i < MODEL_PARTS; i++)
		if (parts & 1u << i)
			model->generation[i]++;
}

uint64_t model_generation(const Model *model, unsigned parts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < MODEL_PARTS; i++)
		if (parts & 1u << i)
			sum += model->generation[i];
	return sum;
}

/* value is copied; NULL: none. Return: 0; -ENOMEM, and nothing has changed. */
static int model_set_text(char **text, const char *value)
{
	char *copy = NULL;

	if (value) {
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
	}
	free(*text);
	*text = copy;
	return 0;
}

int model_set_link(Model *model, ModelLink link, const char *sentence)
{
	model->link = link;
	model_touch(model, MODEL_SERVICE);
	return model_set_text(&model->problem, sentence);
}

/* ---- sessions ---- */

static size_t session_index(const Model *model, const char *id)
{
	size_t i = 0;

	while (i < model->n_sessions && !streq(model->sessions[i]->session.id, id))
		i++;
	return i;
}

ModelSession *model_session(const Model *model, const char *id)
{
	size_t i = session_index(model, id);

	return i < model->n_sessions ? model->sessions[i] : NULL;
}

ModelSession *model_open_session(const Model *model)
{
	return model->open ? model_session(model, model->open) : NULL;
}

static bool is_open(const Model *model, const ModelSession *session)
{
	return model->open && streq(model->open, session->session.id);
}

static void drop_at(Model *model, size_t i)
{
	session_free(model->sessions[i]);
	model->n_sessions--;
	memmove(model->sessions + i, model->sessions + i + 1,
		(model->n_sessions - i) * sizeof(*model->sessions));
}

/* Parts of which the views of one session are made. */
#define OF_SESSION \
	(MODEL_DETAILS | MODEL_EXPOSURE | MODEL_ENVIRONMENT | MODEL_ROUTES | MODEL_PORTS | MODEL_DENIED)

int model_open(Model *model, const char *id)
{
	ModelSession *before = model_open_session(model);
	char *copy = NULL;

	if (id && !model_session(model, id))
		return -ENOENT;
	if (id && model->open && streq(id, model->open))
		return 0;
	if (id && !(copy = strdup(id)))
		return -ENOMEM;
	free(model->open);
	model->open = copy;
	if (before && before->ended)
		drop_at(model, session_index(model, before->session.id));
	model_touch(model, OF_SESSION | MODEL_SESSIONS);
	return 0;
}

int model_compare(Model *model, const char *id)
{
	if (id && !model_session(model, id))
		return -ENOENT;
	model_touch(model, OF_SESSION);
	return model_set_text(&model->compare, id);
}

/* The oldest first; of two that began together, as their ids come. */
static bool comes_before(const ClientSession *a, const ClientSession *b)
{
	if (a->started_usec != b->started_usec)
		return a->started_usec < b->started_usec;
	return strcmp(a->id, b->id) < 0;
}

/* *from is emptied. */
static int add_session(Model *model, ClientSession *from, ModelSession **ret)
{
	_cleanup_(session_freep) ModelSession *session = calloc(1, sizeof(*session));
	ModelSession **grown;
	size_t at;

	if (!session)
		return -ENOMEM;
	grown = reallocarray(model->sessions, model->n_sessions + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	model->sessions = grown;
	session->session = *from;
	*from = (ClientSession){ 0 };
	for (at = model->n_sessions; at > 0 && comes_before(&session->session, &grown[at - 1]->session); at--)
		grown[at] = grown[at - 1];
	model->n_sessions++;
	if (ret)
		*ret = session;
	grown[at] = TAKE_PTR(session);
	return 0;
}

/* What was not known when it ended will not be any more. */
static void end_table(ModelTable *table)
{
	if (table->state != MODEL_UNKNOWN && table->state != MODEL_ASKED)
		return;
	table->state = MODEL_FAILED;
	table->asked = false;
	(void)model_set_text(&table->problem, "The session ended before this was known.");
}

static int end_session(Model *model, size_t i)
{
	ModelSession *session = model->sessions[i];
	char *state;

	if (model->compare && streq(model->compare, session->session.id))
		(void)model_set_text(&model->compare, NULL);
	if (!is_open(model, session)) {
		drop_at(model, i);
		return 0;
	}
	if (session->ended)
		return 0;
	state = strdup("ended");
	if (!state)
		return -ENOMEM;
	free(session->session.state);
	session->session.state = state;
	session->ended = true;
	end_table(&session->exposure);
	end_table(&session->environment);
	end_table(&session->routes);
	end_table(&session->ports);
	end_table(&session->denied);
	model_touch(model, OF_SESSION);
	return 0;
}

static bool holds(const ClientSessions *sessions, const char *id)
{
	for (size_t i = 0; i < sessions->n; i++)
		if (streq(sessions->items[i].id, id))
			return true;
	return false;
}

int model_take_sessions(Model *model, ClientSessions *sessions)
{
	int r = 0;

	for (size_t i = model->n_sessions; i-- > 0;)
		if (!holds(sessions, model->sessions[i]->session.id))
			(void)end_session(model, i);
	for (size_t i = 0; r == 0 && i < sessions->n; i++) {
		ModelSession *known = model_session(model, sessions->items[i].id);

		if (!known) {
			r = add_session(model, &sessions->items[i], NULL);
		} else {
			client_session_done(&known->session);
			known->session = sessions->items[i];
			known->ended = false;
			sessions->items[i] = (ClientSession){ 0 };
		}
	}
	client_sessions_done(sessions);
	if (r < 0)
		return r;
	model->sessions_state = MODEL_HERE;
	model_touch(model, MODEL_SESSIONS | OF_SESSION);
	return model_set_text(&model->sessions_problem, NULL);
}

static int copy_session(const ClientSession *from, ClientSession *ret)
{
	_cleanup_(client_session_done)
		ClientSession copy = { .uid = from->uid, .started_usec = from->started_usec };

	if (asprintf(&copy.path, CS_SESSION_ROOT "/%s", from->id) < 0)
		copy.path = NULL;
	copy.id = strdup(from->id);
	copy.agent = strdup(from->agent);
	copy.user = strdup(from->user);
	copy.workspace = strdup(from->workspace);
	copy.state = strdup(from->state);
	if (!copy.path || !copy.id || !copy.agent || !copy.user || !copy.workspace || !copy.state)
		return -ENOMEM;
	*ret = copy;
	copy = (ClientSession){ 0 };
	return 0;
}

int model_take_details(Model *model, const char *id, ClientDetails *details)
{
	_cleanup_(client_session_done) ClientSession session = { 0 };
	ModelSession *known = model_session(model, id);
	int r;

	if (!streq(id, details->session.id)) {
		client_details_done(details);
		return -EBADMSG;
	}
	r = copy_session(&details->session, &session);
	if (r == 0 && !known)
		r = add_session(model, &session, &known);
	if (r < 0) {
		client_details_done(details);
		return r;
	}
	if (session.id && !known->ended) {
		client_session_done(&known->session);
		known->session = session;
		session = (ClientSession){ 0 };
	}
	client_details_done(&known->details);
	known->details = *details;
	known->denied_count = details->denied;
	*details = (ClientDetails){ 0 };
	known->details_state = MODEL_HERE;
	known->details_asked = known->details_stale = false;
	model_touch(model, MODEL_SESSIONS | MODEL_DETAILS);
	return model_set_text(&known->details_problem, NULL);
}

void model_remove_session(Model *model, const char *id)
{
	size_t i = session_index(model, id);

	if (i < model->n_sessions && end_session(model, i) == 0)
		model_touch(model, MODEL_SESSIONS | MODEL_DENIED);
}

int model_set_state(Model *model, const char *id, const char *state, int32_t exit_status)
{
	ModelSession *session = model_session(model, id);

	if (!session || session->ended)
		return 0;
	session->details_stale = true;
	if (session->details_state == MODEL_HERE)
		session->details.exit_status = exit_status;
	model_touch(model, MODEL_SESSIONS | MODEL_DETAILS);
	return model_set_text(&session->session.state, state);
}
