/* SPDX-License-Identifier: MIT */

/* What a person asks for: the calls that change something, Verify and Doctor. */

#include <inttypes.h>

#include "base/clock.h"
#include "dbus/client-doctor.h"
#include "dbus/client-verify.h"
#include "dbus/doctor-rows.h"
#include "tui/feed-state.h"

extern char **environ;

#define OPTION_CHECK "check"

static void answer(const Question *question, sd_bus_message *reply, char *const *unconfirmed)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	_cleanup_free_ char *sentence =
		error ? feed_sentence(question->feed, -sd_bus_message_get_errno(reply), error) : NULL;
	FeedAnswer to = {
		.error = error ? sentence ?: "no memory; close something and try again" : NULL,
		.needs_password = error && !question->interactive && client_needs_password(error),
		.unconfirmed = unconfirmed,
	};

	question->done(&to, question->userdata);
}

static void strings_done(char ***strings)
{
	for (char **s = *strings; s && *s; s++)
		free(*s);
	free(*strings);
	*strings = NULL;
}

static void take_call(Question *question, sd_bus_message *reply)
{
	_cleanup_(strings_done) char **unconfirmed = NULL;
	Feed *feed = question->feed;

	if (!sd_bus_message_is_method_error(reply, NULL)) {
		if (question->call == CALL_ADD || question->call == CALL_REMOVE)
			(void)sd_bus_message_read_strv(reply, &unconfirmed);
		if (question->call == CALL_LIST_ALL)
			feed_take_all(feed, reply);
		else if (question->call != CALL_STOP)
			model_make_stale(feed->model, NULL, MODEL_ROUTES | MODEL_ALLOW_IP);
	}
	answer(question, reply, unconfirmed);
}

static void take_check(Question *question, sd_bus_message *reply)
{
	answer(question, reply, NULL);
}

static int make_call(Feed *feed, const Effect *effect, sd_bus_message **ret)
{
	int r = -EINVAL;

	switch (effect->call) {
	case CALL_STOP:
		r = feed_message(feed, NULL, CS_MEMBER_STOP_SESSION, ret);
		return r < 0 ? r : sd_bus_message_append(*ret, "sa{sv}", effect->session, 0);
	case CALL_LIST_ALL:
		return feed_message(feed, NULL, CS_MEMBER_LIST_ALL_SESSIONS, ret);
	case CALL_ALLOW:
		r = feed_message(feed, effect->session, CS_MEMBER_ALLOW_IP, ret);
		return r < 0 ? r
			     : sd_bus_message_append(*ret, "sta{sv}", effect->address, effect->seconds, 0);
	case CALL_REVOKE:
		r = feed_message(feed, effect->session, CS_MEMBER_REVOKE_IP, ret);
		return r < 0 ? r : sd_bus_message_append(*ret, "s", effect->address);
	case CALL_ADD:
		r = feed_message(feed, NULL, CS_MEMBER_ADD_ALLOW_IP, ret);
		return r < 0 ? r
			     : sd_bus_message_append(*ret, "ssa{sv}", effect->address, effect->comment ?: "",
						     0);
	case CALL_REMOVE:
		r = feed_message(feed, NULL, CS_MEMBER_REMOVE_ALLOW_IP, ret);
		return r < 0 ? r : sd_bus_message_append(*ret, "s", effect->address);
	case CALL_MAX:
		break;
	}
	return r;
}

int feed_call(Feed *feed, const Effect *effect, bool interactive, FeedDone done, void *userdata)
{
	_cleanup_(question_freep) Question *question = question_new(feed, effect->session, take_call);
	_cleanup_message_ sd_bus_message *m = NULL;
	int r;

	if (!question)
		return -ENOMEM;
	question->call = effect->call;
	question->interactive = interactive;
	question->done = done;
	question->userdata = userdata;
	r = make_call(feed, effect, &m);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, interactive);
	return r < 0 ? r : feed_ask(feed, m, &question);
}

int feed_check(Feed *feed, const Effect *effect, FeedDone done, void *userdata)
{
	_cleanup_(question_freep) Question *question = question_new(feed, NULL, take_check);
	_cleanup_message_ sd_bus_message *m = NULL;
	Question *asked = question;
	int r;

	feed_drop_check(feed);
	if (!question)
		return -ENOMEM;
	question->done = done;
	question->userdata = userdata;
	r = feed_message(feed, NULL, CS_MEMBER_ADD_ALLOW_IP, &m);
	if (r >= 0)
		r = sd_bus_message_append(m, "ssa{sv}", effect->address, effect->comment ?: "", 1,
					  OPTION_CHECK, "b", 1);
	if (r >= 0)
		r = feed_ask(feed, m, &question);
	if (r < 0)
		return r;
	feed->check = asked;
	return 0;
}

/* ---- Verify and Doctor ---- */

static ModelPart part_at(size_t i)
{
	return i == 0 ? MODEL_DOCTOR : MODEL_VERIFY;
}

static char **run_word(Feed *feed, ModelPart part)
{
	return &feed->runs[part == MODEL_DOCTOR ? 0 : 1];
}

static void end_run(Feed *feed, ModelPart part, bool passed, const char *problem)
{
	char **word = run_word(feed, part);

	free(*word);
	*word = NULL;
	(void)model_end_run(feed->model, part, passed, problem);
}

void feed_end_runs(Feed *feed, const char *sentence)
{
	for (size_t i = 0; i < ELEMENTSOF(feed->runs); i++)
		if (feed->runs[i])
			end_run(feed, part_at(i), false, sentence);
}

void feed_take_row(Feed *feed, sd_bus_message *m)
{
	ClientTable row = { 0 };
	const char *word;

	if (sd_bus_message_read_basic(m, 's', &word) <= 0)
		return;
	for (size_t i = 0; i < ELEMENTSOF(feed->runs); i++) {
		if (!feed->runs[i] || !streq(feed->runs[i], word))
			continue;
		if (client_read_row(m, "sssss", &row) >= 0)
			(void)model_take_run_row(feed->model, part_at(i), &row);
		return;
	}
}

static const ClientTable *known_rows(const Feed *feed, ModelPart part)
{
	return &(part == MODEL_DOCTOR ? &feed->model->doctor : &feed->model->verify)->rows;
}

/* A row of the answer that came by no signal. */
static void take_missed_row(Feed *feed, ModelPart part, const ClientTable *rows, size_t i)
{
	const ClientTable *known = known_rows(feed, part);
	char *const *cells = rows->cells + i * rows->n_columns;
	ClientTable row = { .n_columns = RUN_MAX, .n_rows = 1 };

	for (size_t k = 0; k < known->n_rows; k++)
		if (streq(known->cells[k * RUN_MAX + RUN_ID], cells[RUN_ID]))
			return;
	row.cells = calloc(RUN_MAX, sizeof(*row.cells));
	for (size_t c = 0; row.cells && c < RUN_MAX; c++) {
		row.cells[c] = strdup(c < rows->n_columns ? cells[c] : "");
		if (!row.cells[c]) {
			client_table_done(&row);
			return;
		}
	}
	if (row.cells)
		(void)model_take_run_row(feed->model, part, &row);
}

/* Doctor has passed when nothing failed. */
static bool has_failure(const ClientTable *rows)
{
	for (size_t i = 0; i < rows->n_rows; i++)
		if (streq(rows->cells[i * rows->n_columns + RUN_STATUS], "fail"))
			return true;
	return false;
}

/* What an agent's name starts for whoever looks: the service cannot know that. Return: 0 or -ENOMEM. */
static int take_path(Feed *feed)
{
	_cleanup_(client_table_done) ClientTable rows = { 0 };
	int r = doctor_rows_path(&rows, environ);

	for (size_t i = 0; r >= 0 && i < rows.n_rows; i++)
		take_missed_row(feed, MODEL_DOCTOR, &rows, i);
	return r < 0 ? r : 0;
}

/* Nobody answers: a row of its own, and what can be seen without. Return: 0 or -ENOMEM. */
static int take_failure(Feed *feed, int error, const sd_bus_error *e)
{
	_cleanup_free_ char *sentence = feed_sentence(feed, error, e);
	_cleanup_(client_table_done) ClientTable rows = { 0 };
	int r = -ENOMEM;

	if (sentence)
		r = doctor_rows_add_sentence(&rows, client_doctor_row(error, e), "fail", sentence);
	if (r >= 0)
		r = doctor_rows_installed(&rows);
	for (size_t i = 0; r >= 0 && i < rows.n_rows; i++)
		take_missed_row(feed, MODEL_DOCTOR, &rows, i);
	return r < 0 ? r : 0;
}

/* The run could not be done. Doctor says why in rows, unless it is of another machine, whose files are not
 * here. */
static void fail_run(Feed *feed, ModelPart part, int error, const sd_bus_error *e)
{
	_cleanup_free_ char *sentence = feed_sentence(feed, error, e);

	if (part == MODEL_DOCTOR && !feed->model->host && take_failure(feed, error, e) >= 0)
		end_run(feed, part, false, NULL);
	else
		end_run(feed, part, false, sentence ?: "no memory");
}

static void take_run(Question *question, sd_bus_message *reply)
{
	_cleanup_(client_table_done) ClientTable rows = { 0 };
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	Feed *feed = question->feed;
	int passed = true, r = 0;

	if (error) {
		_cleanup_free_ char *sentence = feed_sentence(feed, -sd_bus_message_get_errno(reply), error);

		end_run(feed, question->part, false, sentence ?: "no memory");
		return;
	}
	if (question->part == MODEL_VERIFY)
		r = sd_bus_message_read_basic(reply, 'b', &passed) > 0 ? 0 : -EBADMSG;
	if (r >= 0)
		r = client_read_rows(reply, "sssss", &rows);
	if (r < 0) {
		_cleanup_free_ char *sentence = feed_sentence(feed, r, NULL);

		end_run(feed, question->part, false, sentence ?: "no memory");
		return;
	}
	for (size_t i = 0; i < rows.n_rows; i++)
		take_missed_row(feed, question->part, &rows, i);
	end_run(feed, question->part,
		passed && !has_failure(&rows) && !has_failure(known_rows(feed, question->part)), NULL);
}

static int make_run(Feed *feed, const Effect *effect, const char *word, sd_bus_message **ret)
{
	_cleanup_free_ char *directory = getcwd(NULL, 0);

	if (!feed->bus)
		return -ENOTCONN;
	/* To another machine this one's directories and variables say nothing. */
	if (effect->part == MODEL_DOCTOR)
		return client_doctor_message(
			feed->bus,
			&(ClientDoctor){ .call = word,
					 .directory = feed->model->host ? NULL : directory,
					 .environment = feed->model->host ? NULL : environ },
			ret);
	return client_verify_message(feed->bus,
				     &(ClientVerify){ .agent = effect->view,
						      .environment = environ,
						      .directory = directory,
						      .session = effect->session,
						      .probes = effect->probes,
						      .call = word },
				     ret);
}

int feed_run(Feed *feed, const Effect *effect)
{
	_cleanup_(question_freep) Question *question = question_new(feed, effect->session, take_run);
	_cleanup_message_ sd_bus_message *m = NULL;
	static const sd_bus_error no_bus = SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_NO_SERVER, "");
	char **word = run_word(feed, effect->part);
	int r;

	if (*word)
		return -EBUSY;
	if (!question || asprintf(word, "tui-%" PRIu64, ++feed->n_runs) < 0) {
		*word = NULL;
		return -ENOMEM;
	}
	question->part = effect->part;
	r = model_begin_run(feed->model, effect->part, effect->session ?: effect->view ?: "", effect->probes,
			    clock_usec(CLOCK_REALTIME));
	/* As the command does, which looks at nothing here for another machine. */
	if (r >= 0 && effect->part == MODEL_DOCTOR && !feed->model->host)
		r = take_path(feed);
	if (r >= 0)
		r = make_run(feed, effect, *word, &m);
	if (r >= 0)
		r = feed_ask(feed, m, &question);
	if (r == -ENOTCONN && !feed->bus)
		fail_run(feed, effect->part, -ECONNREFUSED, &no_bus);
	else if (r < 0)
		fail_run(feed, effect->part, r, NULL);
	feed_changed(feed);
	return 0;
}
