/* SPDX-License-Identifier: MIT */
#include "tests/unit/tui-fixture.h"

static void sessions_come_and_go(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	uint64_t before;

	take_ids(model, (const char *const[]){ ID_A, ID_B, NULL });
	assert_int_equal(model->sessions_state, MODEL_HERE);
	assert_int_equal(model->n_sessions, 2);
	assert_string_equal(model->sessions[0]->session.id, ID_A);
	before = model_generation(model, MODEL_SESSIONS);
	model_remove_session(model, ID_A);
	assert_int_equal(model->n_sessions, 1);
	assert_true(model_generation(model, MODEL_SESSIONS) > before);
	model_remove_session(model, "nobodynobodynobo");
	take_ids(model, (const char *const[]){ ID_A, NULL });
	assert_int_equal(model->n_sessions, 1);
	assert_null(model_session(model, ID_B));
}

/* Whoever looks at a session when it ends goes on to see what was known of it, until they look at another. */
static void the_open_session_stays(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();

	take_ids(model, (const char *const[]){ ID_A, ID_B, NULL });
	assert_int_equal(model_open(model, "zzzzzzzzzzzzzzzz"), -ENOENT);
	assert_int_equal(model_open(model, ID_A), 0);
	model_remove_session(model, ID_A);
	assert_int_equal(model->n_sessions, 2);
	assert_true(model_open_session(model)->ended);
	assert_string_equal(model_open_session(model)->session.state, "ended");
	assert_int_equal(model_open_session(model)->routes.state, MODEL_FAILED);
	/* What was under way for it no longer counts. */
	assert_int_equal(model_set_state(model, ID_A, "running", -1), 0);
	assert_string_equal(model_open_session(model)->session.state, "ended");
	take_ids(model, (const char *const[]){ ID_B, NULL });
	assert_int_equal(model->n_sessions, 2);
	assert_int_equal(model_open(model, ID_B), 0);
	assert_int_equal(model->n_sessions, 1);
	assert_null(model_session(model, ID_A));
}

static void tables_outlive_a_list(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	ClientTable routes = table_of(ROUTE_COLUMNS, 1, "10.0.0.0/8", "deny", "deny0", "private", "in force");
	ModelSession *session;

	take_ids(model, (const char *const[]){ ID_A, NULL });
	session = model_session(model, ID_A);
	assert_int_equal(model_take_table(model, session, MODEL_ROUTES, &routes), 0);
	assert_null(routes.cells);
	take_ids(model, (const char *const[]){ ID_A, ID_B, NULL });
	session = model_session(model, ID_A);
	assert_int_equal(session->routes.state, MODEL_HERE);
	assert_int_equal(session->routes.table.n_rows, 1);
	/* What was known stays when it cannot be asked for again. */
	session->routes.asked = true;
	assert_int_equal(model_fail_table(model, session, MODEL_ROUTES, "it is silent"), 0);
	assert_int_equal(session->routes.state, MODEL_FAILED);
	assert_string_equal(session->routes.problem, "it is silent");
	assert_int_equal(session->routes.table.n_rows, 1);
	assert_false(session->routes.asked);
}

static void stale_is_what_was_named(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();

	take_ids(model, (const char *const[]){ ID_A, ID_B, NULL });
	model_make_stale(model, model_session(model, ID_A), MODEL_ROUTES | MODEL_DETAILS);
	assert_true(model_session(model, ID_A)->routes.stale);
	assert_true(model_session(model, ID_A)->details_stale);
	assert_false(model_session(model, ID_A)->ports.stale);
	assert_false(model_session(model, ID_B)->routes.stale);
	model_make_stale(model, NULL, MODEL_ROUTES | MODEL_ALLOW_IP);
	assert_true(model_session(model, ID_B)->routes.stale);
	assert_true(model->allow_ip.stale);
	assert_false(model->policy.stale);
}

static ClientTable attempt(const char *time, const char *address, const char *count)
{
	return table_of(DENIED_MAX, 1, time, "tcp", address, "9", "curl (7)", "private network", count);
}

static void denied(Model *model, const char *time, const char *address, const char *count)
{
	ClientTable row = attempt(time, address, count);

	assert_int_equal(model_take_denied(model, ID_A, &row), 0);
	assert_null(row.cells);
}

static void what_was_denied_grows(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	ClientTable row = attempt("1", "10.0.0.1", "1"), odd = table_of(2, 1, "a", "b");
	const ClientTable *table;

	take_ids(model, (const char *const[]){ ID_A, NULL });
	denied(model, "1", "10.0.0.1", "1");
	denied(model, "2", "10.0.0.2", "1");
	table = &model_session(model, ID_A)->denied.table;
	assert_int_equal(table->n_rows, 2);
	assert_string_equal(table->cells[DENIED_ADDRESS], "10.0.0.2");
	denied(model, "3", "10.0.0.1", "5");
	assert_int_equal(table->n_rows, 2);
	assert_string_equal(table->cells[DENIED_ADDRESS], "10.0.0.1");
	assert_string_equal(table->cells[DENIED_COUNT], "5");
	/* Of a session that is not known, or of another form. */
	assert_int_equal(model_take_denied(model, ID_B, &row), 0);
	assert_null(row.cells);
	assert_int_equal(model_take_denied(model, ID_A, &odd), -EBADMSG);
	assert_int_equal(table->n_rows, 2);
}

static void what_was_denied_is_bounded(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	const ClientTable *table;

	take_ids(model, (const char *const[]){ ID_A, NULL });
	table = &model_session(model, ID_A)->denied.table;
	for (unsigned i = 0; i < 2 * MODEL_DENIED_MOST; i++) {
		_cleanup_free_ char *address = NULL;

		assert_true(asprintf(&address, "10.0.%u.%u", i / 256, i % 256) > 0);
		denied(model, "1", address, "1");
	}
	assert_int_equal(table->n_rows, MODEL_DENIED_MOST);
	/* The earliest are those that gave way. */
	assert_string_equal(table->cells[DENIED_ADDRESS], "10.0.8.3");
}

static void take_row(Model *model, const char *id, const char *status, const char *fix)
{
	ClientTable row = table_of(RUN_MAX, 1, id, status, "title", "detail", fix);

	assert_int_equal(model_take_run_row(model, MODEL_DOCTOR, &row), 0);
}

static void runs_have_rows(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	ClientTable odd = table_of(4, 1, "01", "pass", "a", "b");

	assert_int_equal(model_begin_run(model, MODEL_DOCTOR, "", false, 7), 0);
	assert_int_equal(model->doctor.state, RUN_GOING);
	take_row(model, "user.root", "ok", "");
	take_row(model, "device.tun", "fail", "make it");
	take_row(model, "device.tun", "ok", "");
	assert_int_equal(model_take_run_row(model, MODEL_DOCTOR, &odd), -EBADMSG);
	assert_int_equal(model->doctor.rows.n_rows, 2);
	assert_string_equal(model->doctor.rows.cells[RUN_MAX + RUN_STATUS], "ok");
	assert_int_equal(model_end_run(model, MODEL_DOCTOR, true, NULL), 0);
	assert_true(model->doctor.passed);
	assert_int_equal(model_end_run(model, MODEL_DOCTOR, true, "it broke"), 0);
	assert_int_equal(model->doctor.state, RUN_FAILED);
	assert_false(model->doctor.passed);
	/* The rows of the one before are gone with the next. */
	assert_int_equal(model_begin_run(model, MODEL_DOCTOR, "", false, 8), 0);
	assert_int_equal(model->doctor.rows.n_rows, 0);
	assert_null(model->doctor.problem);
}

static void rows_of_a_run_are_bounded(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	int r = 0;

	assert_int_equal(model_begin_run(model, MODEL_VERIFY, ID_A, true, 7), 0);
	for (unsigned i = 0; i < MODEL_RUN_MOST + 10; i++) {
		_cleanup_free_ char *id = NULL;
		ClientTable row;

		assert_true(asprintf(&id, "p%u", i) > 0);
		row = table_of(RUN_MAX, 1, id, "pass", "", "", "");
		r = model_take_run_row(model, MODEL_VERIFY, &row);
		assert_null(row.cells);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(model->verify.rows.n_rows, MODEL_RUN_MOST);
}

static void what_goes_is_not_compared_with(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();

	take_ids(model, (const char *const[]){ ID_A, ID_B, NULL });
	assert_int_equal(model_open(model, ID_A), 0);
	assert_int_equal(model_compare(model, ID_B), 0);
	model_remove_session(model, ID_B);
	assert_null(model->compare);
	assert_int_equal(model_compare(model, ID_B), -ENOENT);
	assert_int_equal(model_compare(model, NULL), 0);
}

static void details_bring_a_session(void **state)
{
	_cleanup_(model_freep) Model *model = model_new();
	ClientDetails details = { .session = session_of(ID_A, 5, "running"), .jailed = true, .denied = 12 };

	/* The signal of a new session comes before any list with it. */
	assert_int_equal(model_take_details(model, ID_A, &details), 0);
	assert_null(details.session.id);
	assert_int_equal(model->n_sessions, 1);
	assert_int_equal(model->sessions[0]->denied_count, 12);
	assert_true(model->sessions[0]->details.jailed);
	/* One that speaks of another is not believed. */
	details = (ClientDetails){ .session = session_of(ID_B, 5, "running") };
	assert_int_equal(model_take_details(model, ID_A, &details), -EBADMSG);
	assert_int_equal(model->n_sessions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_come_and_go),
		cmocka_unit_test(the_open_session_stays),
		cmocka_unit_test(tables_outlive_a_list),
		cmocka_unit_test(stale_is_what_was_named),
		cmocka_unit_test(what_was_denied_grows),
		cmocka_unit_test(what_was_denied_is_bounded),
		cmocka_unit_test(runs_have_rows),
		cmocka_unit_test(rows_of_a_run_are_bounded),
		cmocka_unit_test(what_goes_is_not_compared_with),
		cmocka_unit_test(details_bring_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
