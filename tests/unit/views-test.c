/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>

#include "tui/view.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define NOW ((uint64_t)1769850000 * USEC_PER_SEC) /* 2026-01-31T09:00:00Z */

typedef struct Fixture {
	Model *model;
	ViewContext context;
	const View *view;
} Fixture;

static ClientTable table_of(size_t n_columns, const char *const *cells)
{
	ClientTable table = { .n_columns = n_columns };
	size_t n = 0;

	while (cells[n])
		n++;
	assert_int_equal(n % n_columns, 0);
	table.n_rows = n / n_columns;
	table.cells = calloc(n + 1, sizeof(*table.cells));
	for (size_t i = 0; i < n; i++)
		table.cells[i] = strdup(cells[i]);
	return table;
}

static ClientSession session_of(const char *id, const char *workspace)
{
	return (ClientSession){ .id = strdup(id),
				.path = strdup("/"),
				.agent = strdup("claude"),
				.user = strdup("ann"),
				.uid = 1000,
				.workspace = strdup(workspace),
				.state = strdup("running") };
}

static void take(Fixture *f, const char *id, ModelPart part, size_t n_columns, const char *const *cells)
{
	ClientTable table = table_of(n_columns, cells);

	assert_int_equal(model_take_table(f->model, id ? model_session(f->model, id) : NULL, part, &table),
			 0);
}

static void use(Fixture *f, const View *view)
{
	if (f->view && f->view->state_done)
		f->view->state_done(f->context.state);
	free(f->context.state);
	f->view = view;
	f->context.state = calloc(1, view->state_size + 1);
}

static void begin(Fixture *f, const View *view)
{
	ClientSessions sessions = { .items = calloc(2, sizeof(ClientSession)), .n = 2 };

	*f = (Fixture){ .model = model_new() };
	f->context = (ViewContext){ .model = f->model, .utf8 = true, .now_usec = NOW };
	sessions.items[0] = session_of(A, "/src/\033[31m");
	sessions.items[1] = session_of(B, "/src");
	assert_int_equal(model_take_sessions(f->model, &sessions), 0);
	assert_int_equal(model_open(f->model, A), 0);
	use(f, view);
}

static void end(Fixture *f)
{
	if (f->view->state_done)
		f->view->state_done(f->context.state);
	free(f->context.state);
	model_free(f->model);
}

/* Each row's cells with '|' between them; columns that are not on the screen left out. */
static void rows_expect(Fixture *f, const char *expected)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	for (size_t i = 0; i < rows_count(rows); i++) {
		for (size_t c = 0; c < f->view->n_columns; c++)
			if (f->view->columns[c].title)
				fprintf(stream, "%s|", rows_cells(rows, i)[c].text);
		putc('\n', stream);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rows_key(rows, i), rows_key(rows, k));
	}
	fclose(stream);
	assert_string_equal(text, expected);
}

static void details_expect(Fixture *f, size_t row, const char *expected)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);
	_cleanup_free_ char *text = NULL;

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	assert_int_equal(f->view->details(&f->context, rows_key(rows, row), &text), 0);
	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void details_of_every_row(Fixture *f)
{
	_cleanup_(rows_freep) Rows *rows = rows_new(f->view->n_columns);

	assert_int_equal(f->view->rows(&f->context, rows), 0);
	for (size_t i = 0; i < rows_count(rows); i++) {
		_cleanup_free_ char *text = NULL;

		assert_int_equal(f->view->details(&f->context, rows_key(rows, i), &text), 0);
		assert_non_null(text);
		assert_null(strchr(text, '\033'));
	}
}

static void headline_expect(Fixture *f, const char *expected)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(f->view->headline(&f->context, &text), 0);
	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
}

static void act(Fixture *f, Command command, const char *key, Effect *ret)
{
	effect_done(ret);
	for (size_t i = 0; f->view->actions[i].command != COMMAND_NONE; i++)
		if (f->view->actions[i].command == command) {
			assert_int_equal(f->view->actions[i].run(&f->context, key, ret), 0);
			return;
		}
	fail();
}

/* As the application goes on after a line was typed. */
static void type(Fixture *f, Effect *effect, const char *typed)
{
	Effect next = { 0 };

	assert_int_equal(effect->kind, EFFECT_PROMPT);
	assert_int_equal(effect->accept(&f->context, typed, &next), 0);
	effect_done(effect);
	*effect = next;
}

static const char *const seen_by_a[] = { "/",
					 "bind",
					 "ro",
					 "system",
					 "programs and libraries",
					 "/home",
					 "tmpfs",
					 "private",
					 "homes",
					 "hides keys",
					 "/src/\033[31m",
					 "bind",
					 "rw",
					 "current directory",
					 "the workspace",
					 "/x",
					 "descriptor",
					 "rw",
					 "caller",
					 "standard output",
					 "/x",
					 "descriptor",
					 "rw",
					 "caller",
					 "standard error",
					 NULL };
static const char *const seen_by_b[] = { "/",
					 "bind",
					 "ro",
					 "system",
					 "programs and libraries",
					 "/home",
					 "bind",
					 "rw",
					 "/etc/c.conf:1",
					 "allow-write",
					 "/src",
					 "bind",
					 "rw",
					 "current directory",
					 "the workspace",
					 "/x",
					 "descriptor",
					 "ro",
					 "caller",
					 "standard output",
					 NULL };

static void exposure_is_paths_then_variables(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	begin(&f, &view_exposure);
	rows_expect(&f, "");
	assert_string_equal(view_exposure.empty(&f.context),
			    "Nothing is known: the service does not answer.");
	take(&f, A, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_a);
	take(&f, A, MODEL_ENVIRONMENT, VARIABLE_MAX, (const char *const[]){ "HOME", "account", NULL });
	rows_expect(&f, "|/|ro|bind|system|programs and libraries|\n"
			"|/home|private|tmpfs|homes|hides keys|\n"
			"|/src/\033[31m|rw|bind|current directory|the workspace|\n"
			"|/x|rw|descriptor|caller|standard output|\n"
			"|/x|rw|descriptor|caller|standard error|\n"
			"|HOME||variable|account||\n");
	headline_expect(&f,
			"5 paths: 3 can be changed (rw), 1 read (ro), 0 are hidden, 1 are the jail's own; "
			"1 variables.");
	details_expect(&f, 2,
		       "Path: /src/\\x1b[31m\n"
		       "Mode: rw (can be read and changed, as its permissions allow)\n"
		       "Kind: bind (what lies there outside, with what is mounted below it)\n"
		       "Origin: current directory\n"
		       "Reason: the workspace\n");
	details_of_every_row(&f);

	act(&f, COMMAND_WHY, NULL, &effect);
	type(&f, &effect, "/home/ann/.ssh/");
	assert_int_equal(effect.kind, EFFECT_SHOW);
	assert_non_null(strstr(effect.text, "Path: /home/ann/.ssh\n"));
	assert_non_null(strstr(effect.text, "Decided by: /home\n"));
	act(&f, COMMAND_WHY, NULL, &effect);
	type(&f, &effect, "relative");
	assert_int_equal(effect.kind, EFFECT_TELL);
	effect_done(&effect);
	end(&f);
}

static void two_sessions_are_compared(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	begin(&f, &view_exposure);
	take(&f, A, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_a);
	take(&f, B, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_b);
	act(&f, COMMAND_DIFF, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_CHOOSE);
	assert_int_equal(effect.n_parts, 1);
	assert_int_equal(effect.parts[0].kind, EFFECT_GO);
	assert_string_equal(effect.parts[0].session, B);
	assert_string_equal(effect.parts[0].title, "the claude session " B " of ann in /src");
	assert_int_equal(model_open(f.model, B), 0);
	rows_expect(&f, "+|/home|rw|bind|/etc/c.conf:1|allow-write|\n"
			"+|/src|rw|bind|current directory|the workspace|\n"
			"~|/x|ro|descriptor|caller|standard output|\n"
			"-|/home|private|tmpfs|homes|hides keys|\n"
			"-|/src/\033[31m|rw|bind|current directory|the workspace|\n"
			"-|/x|rw|descriptor|caller|standard error|\n");
	headline_expect(&f, "Only what differs: + is only here, - is only in the claude session " A
			    " of ann in /src/\\x1b[31m, ~ is in both in another way. = ends it.");
	details_of_every_row(&f);
	details_expect(&f, 2,
		       "Path: /x\nMode: ro (can be read, as its permissions allow, and not changed)\n"
		       "Kind: descriptor (a file outside that the caller handed in, open)\n"
		       "Origin: caller\nReason: standard output\nMode there: rw\nOrigin there: caller\n");
	act(&f, COMMAND_DIFF, NULL, &effect); /* ends it */
	assert_int_equal(effect.kind, EFFECT_REFRESH);
	rows_expect(&f, "|/|ro|bind|system|programs and libraries|\n"
			"|/home|rw|bind|/etc/c.conf:1|allow-write|\n"
			"|/src|rw|bind|current directory|the workspace|\n"
			"|/x|ro|descriptor|caller|standard output|\n");
	model_remove_session(f.model, A);
	act(&f, COMMAND_DIFF, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	effect_done(&effect);
	end(&f);
}

static void routes_and_ports_are_explained(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	begin(&f, &view_routes);
	take(&f, A, MODEL_ROUTES, ROUTE_COLUMNS,
	     (const char *const[]){ "10.0.0.0/8", "deny", "deny0", "private network (RFC 1918)", "in force",
				    "10.0.0.7/32", "allow", "jail0", "allow-ip, x:1", "missing", "default",
				    "internet", "jail0", "the internet", "in force", NULL });
	take(&f, A, MODEL_PORTS, PORT_MAX,
	     (const char *const[]){ "8080", "local", "listening", "/etc/c.conf:3", NULL });
	rows_expect(&f, "10.0.0.0/8|deny|deny0|in force|private network (RFC 1918)|\n"
			"10.0.0.7/32|allow|jail0|missing|allow-ip, x:1|\n"
			"default|internet|jail0|in force|the internet|\n"
			"127.0.0.1:8080|local|lo|listening|/etc/c.conf:3|\n");
	details_of_every_row(&f);
	details_expect(&f, 0,
		       "Destination: 10.0.0.0/8\nVerdict: deny (refused, whatever way is tried)\n"
		       "Reason: private network (RFC 1918)\n"
		       "State: in force (as it was meant, read back from the kernel)\nDevice: deny0\n");

	act(&f, COMMAND_WHY, NULL, &effect);
	type(&f, &effect, "10.0.0.5");
	assert_int_equal(effect.kind, EFFECT_SHOW);
	assert_string_equal(effect.text, "Address: 10.0.0.5\nVerdict: deny (refused, whatever way is tried)\n"
					 "Decided by: 10.0.0.0/8\nReason: private network (RFC 1918)\n"
					 "State: in force\nTo allow it: press a in this view, and type it\n");
	act(&f, COMMAND_WHY, NULL, &effect);
	type(&f, &effect, "fe80::1");
	assert_non_null(strstr(effect.text, "no IPv6"));
	act(&f, COMMAND_WHY, NULL, &effect);
	type(&f, &effect, "printer");
	assert_int_equal(effect.kind, EFFECT_TELL);

	act(&f, COMMAND_ALLOW, "10.0.0.0/8 deny", &effect);
	assert_string_equal(effect.text, ""); /* nobody wants all of it */
	type(&f, &effect, " 10.0.0.5 ");
	assert_int_equal(effect.kind, EFFECT_CHOOSE);
	assert_int_equal(effect.n_parts, 3);
	act(&f, COMMAND_ALLOW, "168.63.129.16/32 deny", &effect);
	assert_string_equal(effect.text, "168.63.129.16");
	effect_done(&effect);
	end(&f);
}

static void a_denied_row_is_allowed(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	begin(&f, &view_denied);
	take(&f, A, MODEL_DENIED, DENIED_MAX,
	     (const char *const[]){ "1769849999000000", "tcp", "10.0.0.5", "80", "curl\033 (7)",
				    "private network (RFC 1918)", "12345", "1769763600000000", "", "", "0",
				    "", "others", "3", NULL });
	take(&f, B, MODEL_DENIED, DENIED_MAX,
	     (const char *const[]){ "1769849998000000", "icmp", "169.254.169.254", "0", "?", "link-local",
				    "1", NULL });
	rows_expect(&f, "08:59:59Z|" A "|tcp|10.0.0.5|80|curl\033 (7)|12k|private network (RFC 1918)|\n"
			"2026-01-30 09:00:00Z|" A "|||||3|others|\n");
	details_of_every_row(&f);
	act(&f, COMMAND_ALLOW, A " tcp 10.0.0.5 80 curl\033 (7)", &effect);
	assert_int_equal(effect.kind, EFFECT_CHOOSE);
	assert_string_equal(effect.title, "Allow 10.0.0.5 (refused now: private network (RFC 1918))");
	assert_int_equal(effect.n_parts, 3);
	assert_string_equal(effect.parts[0].text, "s");
	assert_int_equal(effect.parts[0].call, CALL_ALLOW);
	assert_string_equal(effect.parts[0].session, A);
	assert_string_equal(effect.parts[0].address, "10.0.0.5");
	assert_int_equal(effect.parts[0].seconds, 0);
	assert_string_equal(
		effect.parts[0].question,
		"Let the claude session " A " of ann in /src/\\x1b[31m reach every port of "
		"10.0.0.5, until it ends? All that runs in it may. Other sessions stay as they are.");
	assert_string_equal(effect.parts[1].text, "h");
	assert_int_equal(effect.parts[1].seconds, 3600);
	assert_string_equal(effect.parts[2].text, "a");
	assert_int_equal(effect.parts[2].call, CALL_ADD);
	assert_non_null(strstr(effect.parts[2].question, "the agents of all users"));
	act(&f, COMMAND_ALLOW, A "   0 ", &effect);
	assert_int_equal(effect.kind, EFFECT_TELL); /* a sum has no address */
	act(&f, COMMAND_ALLOW, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);

	act(&f, COMMAND_ALL_SESSIONS, NULL, &effect);
	rows_expect(&f, "08:59:59Z|" A "|tcp|10.0.0.5|80|curl\033 (7)|12k|private network (RFC 1918)|\n"
			"2026-01-30 09:00:00Z|" A "|||||3|others|\n"
			"08:59:58Z|" B "|icmp|169.254.169.254||?|1|link-local|\n");
	act(&f, COMMAND_ALLOW, B " icmp 169.254.169.254 0 ?", &effect);
	assert_non_null(strstr(effect.parts[0].question, "clouds give credentials"));
	effect_done(&effect);
	end(&f);
}

static const char *const allowed[] = { "10.0.0.1", "router", "/etc/c.conf:1",
				       "10.0.0.2", "",       "/etc/c.conf:2",
				       "10.0.0.3", "",       "session " A " until 2026-01-31T10:00:00Z",
				       NULL };

static void changes_wait_until_they_are_saved(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	begin(&f, &view_allow_ip);
	take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX, allowed);
	headline_expect(&f, NULL);
	assert_null(view_allow_ip.unsaved(&f.context));
	act(&f, COMMAND_SAVE, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	act(&f, COMMAND_UNDO, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);

	act(&f, COMMAND_ADD, NULL, &effect);
	type(&f, &effect, "10.9.0.1  #  the printer ");
	assert_int_equal(effect.kind, EFFECT_REFRESH);
	act(&f, COMMAND_EDIT, "file 10.0.0.1", &effect);
	assert_string_equal(effect.text, "router");
	type(&f, &effect, "gate");
	act(&f, COMMAND_REMOVE, "file 10.0.0.2", &effect);
	rows_expect(&f, "~|10.0.0.1|gate|/etc/c.conf:1|\n"
			"-|10.0.0.2||/etc/c.conf:2|\n"
			"|10.0.0.3||session " A " until 2026-01-31T10:00:00Z|\n"
			"+|10.9.0.1|the printer|not saved|\n");
	headline_expect(&f, "3 changes are not saved: s saves, u takes the last one back.");
	assert_non_null(view_allow_ip.unsaved(&f.context));
	details_of_every_row(&f);

	act(&f, COMMAND_SAVE, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_CHAIN);
	assert_int_equal(effect.n_parts, 3);
	assert_int_equal(effect.parts[0].call, CALL_REMOVE); /* what narrows is first */
	assert_string_equal(effect.parts[0].address, "10.0.0.2");
	assert_string_equal(effect.parts[1].address, "10.9.0.1");
	assert_string_equal(effect.parts[1].comment, "the printer");
	assert_string_equal(effect.question, "For the agents of all users, in /etc/claude-sandbox.conf:\n"
					     "Close 10.0.0.2; connections to it end.\nOpen 10.9.0.1.\n"
					     "10.0.0.1 gets the comment 'gate'.\n");
	/* one goes well, the next is refused */
	effect.parts[0].finished(&f.context, &effect.parts[0], NULL);
	effect.parts[1].finished(&f.context, &effect.parts[1], "no");
	headline_expect(&f, "2 changes are not saved: s saves, u takes the last one back.");
	act(&f, COMMAND_UNDO, NULL, &effect);
	headline_expect(&f, "1 change is not saved: s saves, u takes the last one back.");
	/* somebody else adds the same */
	take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
	     (const char *const[]){ "10.9.0.1", "the printer", "/etc/c.conf:1", NULL });
	rows_expect(&f, "|10.9.0.1|the printer|/etc/c.conf:1|\n");
	headline_expect(&f, NULL);
	effect_done(&effect);
	end(&f);
}

static void what_is_new_is_edited_and_dropped(void **state)
{
	Effect effect = { 0 }, call = { 0 };
	char *problem = NULL;
	Fixture f;

	begin(&f, &view_allow_ip);
	take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX, allowed);
	act(&f, COMMAND_ADD, NULL, &effect);
	assert_false(effect.check(&f.context, "  ", &call, &problem));
	assert_null(problem);
	assert_true(effect.check(&f.context, "10.9.0.1 x", &call, &problem));
	assert_string_equal(call.address, "10.9.0.1");
	assert_string_equal(call.comment, "x");
	effect_done(&call);
	type(&f, &effect, "");
	assert_int_equal(effect.kind, EFFECT_NONE);
	act(&f, COMMAND_ADD, NULL, &effect);
	type(&f, &effect, "10.9.0.1");
	act(&f, COMMAND_EDIT, "file 10.9.0.1", &effect);
	type(&f, &effect, "new");
	headline_expect(&f, "1 change is not saved: s saves, u takes the last one back.");
	act(&f, COMMAND_REMOVE, "file 10.9.0.1", &effect);
	headline_expect(&f, NULL);
	/* the same comment again is no change */
	act(&f, COMMAND_EDIT, "file 10.0.0.1", &effect);
	type(&f, &effect, "router");
	headline_expect(&f, NULL);
	/* a session's own goes at once, after a question */
	act(&f, COMMAND_REMOVE, "session " A " until 2026-01-31T10:00:00Z 10.0.0.3", &effect);
	assert_int_equal(effect.kind, EFFECT_CALL);
	assert_int_equal(effect.call, CALL_REVOKE);
	assert_string_equal(effect.session, A);
	assert_string_equal(effect.address, "10.0.0.3");
	assert_non_null(effect.question);
	act(&f, COMMAND_EDIT, "session " A " 10.0.0.3", &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	effect_done(&effect);
	end(&f);
}

static void policy_has_its_meaning(void **state)
{
	Fixture f;

	begin(&f, &view_policy);
	take(&f, NULL, MODEL_POLICY, POLICY_MAX,
	     (const char *const[]){ "egress-jail", "0", "/etc/c.conf:1", "deny-group", "docker", "default",
				    "deny-group", "lxd", "default", "later-key", "", "default", NULL });
	rows_expect(&f,
		    "egress-jail|0|/etc/c.conf:1|1 holds the network too: nothing internal is reached but "
		    "allow-ip|\n"
		    "deny-group|docker|default|a group that no session has|\n"
		    "deny-group|lxd|default|a group that no session has|\nlater-key||default||\n");
	headline_expect(&f, NULL);
	details_of_every_row(&f);
	details_expect(
		&f, 3,
		"Setting: later-key\nValue: none\nOrigin: default\n"
		"To change it: an editor on /etc/claude-sandbox.conf (claude-sandbox.conf(5)); it holds for "
		"sessions that start from then on\n");
	end(&f);
}

static void without_a_session(void **state)
{
	static const View *const views[] = { &view_exposure, &view_routes, &view_denied, &view_allow_ip,
					     &view_policy };
	Fixture f;

	begin(&f, views[0]);
	assert_int_equal(model_open(f.model, NULL), 0);
	model_remove_session(f.model, A);
	model_remove_session(f.model, B);
	for (size_t i = 0; i < ELEMENTSOF(views); i++) {
		Effect effect = { 0 };

		use(&f, views[i]);
		rows_expect(&f, "");
		assert_non_null(f.view->empty(&f.context));
		for (size_t k = 0; f.view->actions && f.view->actions[k].command != COMMAND_NONE; k++) {
			act(&f, f.view->actions[k].command, NULL, &effect);
			assert_int_not_equal(effect.kind, EFFECT_NONE);
			if (effect.kind == EFFECT_PROMPT)
				type(&f, &effect, "10.0.0.1");
		}
		effect_done(&effect);
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exposure_is_paths_then_variables),
		cmocka_unit_test(two_sessions_are_compared),
		cmocka_unit_test(routes_and_ports_are_explained),
		cmocka_unit_test(a_denied_row_is_allowed),
		cmocka_unit_test(changes_wait_until_they_are_saved),
		cmocka_unit_test(what_is_new_is_edited_and_dropped),
		cmocka_unit_test(policy_has_its_meaning),
		cmocka_unit_test(without_a_session),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
