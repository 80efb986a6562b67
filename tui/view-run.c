/* SPDX-License-Identifier: MIT */

/* Verify and Doctor: what is checked, as the rows come. */

#include "tui/words.h"

enum { NUMBER, STATUS, TITLE, FOUND, FIX, COLUMNS };

static const Column columns[COLUMNS] = {
	[NUMBER] = { .title = "ID", .key = "id", .weight = 1 },
	[STATUS] = { .title = "RESULT", .key = "status" },
	[TITLE] = { .title = "WHAT IS CHECKED", .key = "title", .least = 16 },
	[FOUND] = { .title = "FOUND", .key = "detail", .least = 12, .weight = 2 },
	[FIX] = { .key = "fix" },
};

static Style status_style(const char *status)
{
	if (streq(status, "fail"))
		return STYLE_BAD;
	return streq(status, "note") || streq(status, "warn") ? STYLE_CAUTION : STYLE_GOOD;
}

static int row(const ModelRun *run, size_t i, Rows *to)
{
	const char *status = words_cell(&run->rows, i, RUN_STATUS);

	(void)rows_add(to, words_cell(&run->rows, i, RUN_ID));
	(void)rows_cell(to, words_cell(&run->rows, i, RUN_ID), STYLE_FAINT);
	(void)rows_cell(to, status, status_style(status));
	(void)rows_cell(to, words_cell(&run->rows, i, RUN_TITLE), STYLE_PLAIN);
	(void)rows_cell(to, words_cell(&run->rows, i, RUN_DETAIL), STYLE_PLAIN);
	return rows_cell(to, words_cell(&run->rows, i, RUN_FIX), STYLE_PLAIN);
}

/* What failed stands first: nobody has to look for it. */
static int run_rows(const ModelRun *run, Rows *to)
{
	int r = 0;

	for (int failed = 1; failed >= 0; failed--)
		for (size_t i = 0; r == 0 && i < run->rows.n_rows; i++)
			if (streq(words_cell(&run->rows, i, RUN_STATUS), "fail") == (failed == 1))
				r = row(run, i, to);
	return r;
}

static size_t count(const ModelRun *run, const char *status)
{
	size_t n = 0;

	for (size_t i = 0; i < run->rows.n_rows; i++)
		n += streq(words_cell(&run->rows, i, RUN_STATUS), status);
	return n;
}

/* "this machine", "the session ID", "a new session of claude" */
static int subject(const ViewContext *context, const ModelRun *run, const char *machine, char **ret)
{
	const ModelSession *session = run->subject ? model_session(context->model, run->subject) : NULL;
	_cleanup_free_ char *name = words_bytes(context, run->subject ?: "");

	if (!name)
		return -ENOMEM;
	if (machine)
		return words_set(ret, "%s", machine);
	if (session)
		return words_session(context, session, ret);
	if (strlen(name) == CS_ID_LENGTH)
		return words_set(ret, "the session %s", name);
	return words_set(ret, "a jail as %s would get it here", name);
}

static int run_headline(const ViewContext *context, const ModelRun *run, const char *machine, char **ret)
{
	size_t failed = count(run, "fail"), warned = count(run, "warn"), noted = count(run, "note");
	_cleanup_free_ char *what = NULL, *beside = NULL, *problem = words_bytes(context, run->problem ?: "");

	if (run->state == RUN_NEVER)
		return 0;
	if (!problem || subject(context, run, machine, &what) < 0)
		return -ENOMEM;
	/* Where no row has come the problem stands in its place. */
	if (run->state == RUN_FAILED && run->rows.n_rows > 0 && *problem)
		return words_set(ret, "The checks of %s could not all be done: %s", what, problem);
	if (run->state == RUN_FAILED)
		return words_set(ret, "The checks of %s could not be done.", what);
	if (run->state == RUN_GOING)
		return words_set(ret, "Checking %s: %zu so far ...", what, run->rows.n_rows);
	if (failed > 0)
		return words_set(ret, "%zu of %zu checks FAILED (the first rows; Enter shows the fix) of %s.",
				 failed, run->rows.n_rows, what);
	if (words_set(&beside, "%s", "") < 0 ||
	    (warned > 0 && words_set(&beside, ", %zu with a warning", warned) < 0) ||
	    (noted > 0 && words_set(&beside, "%s, %zu with a note", beside, noted) < 0))
		return -ENOMEM;
	return words_set(ret, "None of %zu checks failed%s, of %s.", run->rows.n_rows, beside, what);
}

static const char *run_empty(const ModelRun *run, const char *never)
{
	switch (run->state) {
	case RUN_NEVER:
		return never;
	case RUN_GOING:
		return "The first row is awaited ...";
	case RUN_FAILED:
		return run->problem ?: "They could not be done.";
	case RUN_ENDED:
		break;
	}
	return "It had nothing to say.";
}

static int run_details(const ViewContext *context, const ModelRun *run, const char *key, char **ret)
{
	for (size_t i = 0; key && i < run->rows.n_rows; i++) {
		Words words;

		if (!streq(words_cell(&run->rows, i, RUN_ID), key))
			continue;
		(void)words_begin(&words, context);
		words_text(&words, "Check", words_cell(&run->rows, i, RUN_TITLE));
		words_text(&words, "Result", words_cell(&run->rows, i, RUN_STATUS));
		words_text(&words, "Found", words_cell(&run->rows, i, RUN_DETAIL));
		words_text(&words, "Fix", words_cell(&run->rows, i, RUN_FIX));
		words_text(&words, "Id", key);
		return words_end(&words, true, ret);
	}
	*ret = NULL;
	return 0;
}

/* ---- Verify ---- */

static int verify_rows(const ViewContext *context, Rows *to)
{
	return run_rows(&context->model->verify, to);
}

static int verify_headline(const ViewContext *context, char **ret)
{
	return run_headline(context, &context->model->verify, NULL, ret);
}

static const char *verify_empty(const ViewContext *context)
{
	return run_empty(
		&context->model->verify,
		model_open_session(context->model)
			? "Nothing is checked yet: press r. It checks the jail of the open session from "
			  "inside: that it holds what is said of it. p tries to break out too. "
			  "Nothing is changed in it."
			: "No session is open: press r to check a jail as an agent would get it here. "
			  "p tries to break out of it too.");
}

static int verify_details(const ViewContext *context, const char *key, char **ret)
{
	return run_details(context, &context->model->verify, key, ret);
}

static int choose_agent(bool probes, Effect *ret)
{
	static const struct {
		const char *key, *agent;
	} agents[] = { { "c", "claude" }, { "x", "codex" }, { "p", "pi" }, { "s", "shell" } };

	ret->kind = EFFECT_CHOOSE;
	ret->parts = calloc(ELEMENTSOF(agents), sizeof(*ret->parts));
	if (!ret->parts || words_set(&ret->title, "Check the jail of which agent, in this directory?") < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ELEMENTSOF(agents); i++) {
		Effect *part = &ret->parts[ret->n_parts++];

		part->kind = EFFECT_RUN;
		part->part = MODEL_VERIFY;
		part->probes = probes;
		part->text = strdup(agents[i].key);
		part->title = strdup(agents[i].agent);
		part->view = strdup(agents[i].agent);
		if (!part->text || !part->title || !part->view)
			return -ENOMEM;
	}
	return 0;
}

static int run_verify(const ViewContext *context, bool probes, Effect *ret)
{
	const ModelSession *session = model_open_session(context->model);

	if (!session || session->ended)
		return choose_agent(probes, ret);
	ret->kind = EFFECT_RUN;
	ret->part = MODEL_VERIFY;
	ret->probes = probes;
	ret->session = strdup(session->session.id);
	return ret->session ? 0 : -ENOMEM;
}

static int verify(const ViewContext *context, const char *key, Effect *ret)
{
	return run_verify(context, false, ret);
}

static int verify_with_probes(const ViewContext *context, const char *key, Effect *ret)
{
	return run_verify(context, true, ret);
}

static const ViewAction verify_actions[] = {
	{ COMMAND_RUN, verify },
	{ COMMAND_PROBES, verify_with_probes },
	{ COMMAND_NONE, NULL },
};

const View view_verify = {
	.name = "verify",
	.title = "Verify",
	.about = "Does the jail hold? It is checked from inside, row by row.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_SESSIONS | MODEL_VERIFY,
	.of_session = true,
	.rows = verify_rows,
	.headline = verify_headline,
	.empty = verify_empty,
	.details = verify_details,
	.actions = verify_actions,
};

/* ---- Doctor ---- */

static int doctor_rows(const ViewContext *context, Rows *to)
{
	return run_rows(&context->model->doctor, to);
}

static int doctor_headline(const ViewContext *context, char **ret)
{
	return run_headline(context, &context->model->doctor, "this machine", ret);
}

static const char *doctor_empty(const ViewContext *context)
{
	return run_empty(&context->model->doctor,
			 "Nothing is checked yet: press r. It looks at everything that a session needs here, "
			 "and tries a "
			 "launch step by step. What is wrong is named with what mends it.");
}

static int doctor_details(const ViewContext *context, const char *key, char **ret)
{
	return run_details(context, &context->model->doctor, key, ret);
}

static int doctor(const ViewContext *context, const char *key, Effect *ret)
{
	ret->kind = EFFECT_RUN;
	ret->part = MODEL_DOCTOR;
	return 0;
}

static const ViewAction doctor_actions[] = {
	{ COMMAND_RUN, doctor },
	{ COMMAND_NONE, NULL },
};

const View view_doctor = {
	.name = "doctor",
	.title = "Doctor",
	.about = "Can sessions start here, and as strong as they should? What is wrong, with its fix.",
	.columns = columns,
	.n_columns = COLUMNS,
	.sort_column = SIZE_MAX,
	.wants = MODEL_DOCTOR,
	.rows = doctor_rows,
	.headline = doctor_headline,
	.empty = doctor_empty,
	.details = doctor_details,
	.actions = doctor_actions,
};
