/* SPDX-License-Identifier: MIT */
#include "tui/model-parts.h"

#include <assert.h>

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

void model_run_done(ModelRun *run)
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

int model_set_text(char **text, const char *value)
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
