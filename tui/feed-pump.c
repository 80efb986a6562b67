/* SPDX-License-Identifier: MIT */

/* What the feed asks by itself: the list of sessions, and the parts of them that somebody looks at. */

#include "tui/feed-state.h"

#define LEAVE_USEC (5 * 60 * USEC_PER_SEC) /* as long as the service shows everybody's sessions */

static char *sentence_of(Question *question, sd_bus_message *reply)
{
	return feed_sentence(question->feed, -sd_bus_message_get_errno(reply),
			     sd_bus_message_get_error(reply));
}

/* ---- the manager ---- */

/* *sentence is taken. */
static void fail_list(Feed *feed, char *sentence)
{
	free(feed->model->sessions_problem);
	feed->model->sessions_problem = sentence;
	feed->model->sessions_state = MODEL_FAILED;
	model_touch(feed->model, MODEL_SESSIONS);
}

static void take_list(Question *question, sd_bus_message *reply)
{
	ClientSessions sessions = { 0 };
	Feed *feed = question->feed;
	int r;

	feed->listing = false;
	if (sd_bus_message_is_method_error(reply, NULL)) {
		fail_list(feed, sentence_of(question, reply));
		return;
	}
	r = client_read_sessions(reply, &sessions);
	if (r >= 0)
		r = model_take_sessions(feed->model, &sessions);
	if (r < 0)
		fail_list(feed, feed_sentence(feed, r, NULL));
}

static void ask_list(Feed *feed)
{
	_cleanup_(question_freep) Question *question = question_new(feed, NULL, take_list);
	_cleanup_message_ sd_bus_message *m = NULL;

	if (!question || feed_message(feed, NULL, CS_MEMBER_LIST_SESSIONS, &m) < 0 ||
	    feed_ask(feed, m, &question) < 0)
		return;
	feed->listing = true;
	feed->stale_list = false;
	if (feed->model->sessions_state == MODEL_UNKNOWN)
		feed->model->sessions_state = MODEL_ASKED;
}

static void set_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (copy) {
		free(*text);
		*text = copy;
	}
}

static void take_properties(Question *question, sd_bus_message *reply)
{
	Model *model = question->feed->model;

	if (sd_bus_message_is_method_error(reply, NULL) ||
	    sd_bus_message_enter_container(reply, 'a', "{sv}") <= 0)
		return;
	while (sd_bus_message_enter_container(reply, 'e', "sv") > 0) {
		const char *name, *value;
		char **text = NULL;

		if (sd_bus_message_read_basic(reply, 's', &name) <= 0)
			return;
		if (streq(name, CS_PROPERTY_VERSION))
			text = &model->version;
		else if (streq(name, CS_PROPERTY_CONFIG_ERROR))
			text = &model->config_error;
		if (!text) {
			if (sd_bus_message_skip(reply, "v") < 0)
				return;
		} else if (sd_bus_message_read(reply, "v", "s", &value) > 0) {
			set_text(text, value);
		} else {
			return;
		}
		if (sd_bus_message_exit_container(reply) < 0)
			return;
	}
	model_touch(model, MODEL_SERVICE);
}

static int get_all(Feed *feed, Question **question, const char *interface)
{
	_cleanup_message_ sd_bus_message *m = NULL;
	_cleanup_free_ char *path = NULL;
	const char *session = (*question)->session;
	int r;

	if (asprintf(&path, "%s%s%s", session ? CS_SESSION_ROOT : CS_MANAGER_PATH, session ? "/" : "",
		     session ?: "") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = sd_bus_message_new_method_call(feed->bus, &m, CS_BUS_NAME, path, PROPERTIES_INTERFACE, "GetAll");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", interface);
	return r < 0 ? r : feed_ask(feed, m, question);
}

static void ask_properties(Feed *feed)
{
	_cleanup_(question_freep) Question *question = question_new(feed, NULL, take_properties);

	if (question)
		(void)get_all(feed, &question, CS_MANAGER_INTERFACE);
}

/* ---- tables ---- */

static const struct {
	ModelPart part;
	const char *member, *row;
} tables[] = {
	{ MODEL_ALLOW_IP, CS_MEMBER_LIST_ALLOW_IP, "sss" },
	{ MODEL_POLICY, CS_MEMBER_GET_POLICY, "sss" },
	{ MODEL_EXPOSURE, CS_MEMBER_LIST_EXPOSURE, "ayssss" },
	{ MODEL_ENVIRONMENT, CS_MEMBER_LIST_ENVIRONMENT, "ss" },
	{ MODEL_ROUTES, CS_MEMBER_LIST_ROUTES, "sssss" },
	{ MODEL_PORTS, CS_MEMBER_LIST_PORTS, "qsss" },
	{ MODEL_DENIED, CS_MEMBER_LIST_DENIED, CLIENT_DENIED_ROW },
};

static const char *row_of(ModelPart part)
{
	size_t i = 0;

	while (tables[i].part != part)
		i++;
	return tables[i].row;
}

static void take_table(Question *question, sd_bus_message *reply)
{
	Model *model = question->feed->model;
	ModelSession *session = question->session ? model_session(model, question->session) : NULL;
	ClientTable table = { 0 };
	int r;

	if (question->session && !session)
		return;
	if (sd_bus_message_is_method_error(reply, NULL)) {
		_cleanup_free_ char *sentence = sentence_of(question, reply);

		(void)model_fail_table(model, session, question->part, sentence);
		return;
	}
	r = client_read_rows(reply, row_of(question->part), &table);
	if (r >= 0) {
		(void)model_take_table(model, session, question->part, &table);
	} else {
		_cleanup_free_ char *sentence = feed_sentence(question->feed, r, NULL);

		(void)model_fail_table(model, session, question->part, sentence);
	}
}

static void ask_table(Feed *feed, ModelSession *session, size_t i)
{
	ModelTable *table = model_table(feed->model, session, tables[i].part);
	const char *id = session ? session->session.id : NULL;
	_cleanup_(question_freep) Question *question = NULL;
	_cleanup_message_ sd_bus_message *m = NULL;

	if (!table || table->asked || (table->state != MODEL_UNKNOWN && !table->stale))
		return;
	if (feed->n_asked >= FEED_AT_ONCE)
		return;
	question = question_new(feed, id, take_table);
	if (!question || feed_message(feed, id, tables[i].member, &m) < 0)
		return;
	question->part = tables[i].part;
	question->counted = true;
	if (feed_ask(feed, m, &question) < 0)
		return;
	table->asked = true;
	table->stale = false;
	if (table->state == MODEL_UNKNOWN)
		table->state = MODEL_ASKED;
}

static void ask_tables(Feed *feed, ModelSession *session, unsigned parts)
{
	for (size_t i = 0; i < ELEMENTSOF(tables); i++)
		if (parts & tables[i].part)
			ask_table(feed, session, i);
}

/* *sentence is taken; what was known stays. session: NULL where it is not known. */
static void fail_details(Model *model, ModelSession *session, char *sentence)
{
	if (session) {
		if (session->details_state != MODEL_HERE)
			session->details_state = MODEL_FAILED;
		free(session->details_problem);
		session->details_problem = TAKE_PTR(sentence);
		model_touch(model, MODEL_SESSIONS | MODEL_DETAILS);
	}
	free(sentence);
}

static void take_details(Question *question, sd_bus_message *reply)
{
	Model *model = question->feed->model;
	ModelSession *session = model_session(model, question->session);
	ClientDetails details = { 0 };
	int r;

	if (session)
		session->details_asked = false;
	/* One that has ended in between. */
	if (sd_bus_message_is_method_error(reply, NULL)) {
		fail_details(model, session, sentence_of(question, reply));
		return;
	}
	r = client_read_details(reply, &details);
	if (r >= 0)
		r = model_take_details(model, question->session, &details);
	if (r < 0)
		fail_details(model, session, feed_sentence(question->feed, r, NULL));
}

void feed_ask_details(Feed *feed, const char *id)
{
	_cleanup_(question_freep) Question *question = question_new(feed, id, take_details);
	ModelSession *session = model_session(feed->model, id);

	if (!question)
		return;
	question->counted = true;
	if (get_all(feed, &question, CS_SESSION_INTERFACE) < 0 || !session)
		return;
	session->details_asked = true;
	session->details_stale = false;
	if (session->details_state == MODEL_UNKNOWN)
		session->details_state = MODEL_ASKED;
}

/* Parts that concern a session: the open one has all that is wanted, the one beside it what is compared. */
static unsigned parts_of(const Feed *feed, const ModelSession *session)
{
	const Model *model = feed->model;
	unsigned parts = MODEL_DENIED;

	if (model->open && streq(model->open, session->session.id))
		parts |= MODEL_EXPOSURE | MODEL_ENVIRONMENT | MODEL_ROUTES | MODEL_PORTS;
	if (model->compare && streq(model->compare, session->session.id))
		parts |= MODEL_EXPOSURE | MODEL_ENVIRONMENT;
	return parts & feed->wants;
}

void feed_pump(Feed *feed)
{
	Model *model = feed->model;

	if (!feed->bus || model->link != LINK_UP)
		return;
	if (!feed->listing && feed->stale_list) {
		ask_list(feed);
		ask_properties(feed);
	}
	ask_tables(feed, NULL, feed->wants & (MODEL_ALLOW_IP | MODEL_POLICY));
	/* What is looked at comes before what only counts. */
	for (size_t i = 0; i < model->n_sessions; i++)
		if (!model->sessions[i]->ended)
			ask_tables(feed, model->sessions[i], parts_of(feed, model->sessions[i]));
	for (size_t i = 0; i < model->n_sessions && feed->n_asked < FEED_AT_ONCE; i++) {
		const ModelSession *session = model->sessions[i];

		if (!session->ended && !session->details_asked &&
		    (session->details_state == MODEL_UNKNOWN || session->details_stale))
			feed_ask_details(feed, session->session.id);
	}
}

/* ---- everybody's ---- */

static int on_leave_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	Feed *feed = userdata;

	feed->leave = sd_event_source_disable_unref(feed->leave);
	feed->model->all = false;
	feed->stale_list = true;
	feed_pump(feed);
	feed_changed(feed);
	return 0;
}

void feed_take_all(Feed *feed, sd_bus_message *reply)
{
	ClientSessions sessions = { 0 };

	if (client_read_sessions(reply, &sessions) < 0 || model_take_sessions(feed->model, &sessions) < 0)
		return;
	feed->model->all = true;
	model_touch(feed->model, MODEL_SESSIONS);
	feed->leave = sd_event_source_disable_unref(feed->leave);
	(void)sd_event_add_time_relative(feed->options.event, &feed->leave, CLOCK_MONOTONIC, LEAVE_USEC,
					 USEC_PER_SEC, on_leave_over, feed);
}
