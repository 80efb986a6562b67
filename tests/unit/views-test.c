/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>

#include "tests/unit/views-fixture.h"
#include "tui/dump.h"

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

	fixture_begin(&f, &view_exposure);
	rows_expect(&f, "");
	assert_string_equal(view_exposure.empty(&f.context),
			    "Nothing is known: the service does not answer.");
	fixture_take(&f, A, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_a);
	fixture_take(&f, A, MODEL_ENVIRONMENT, VARIABLE_MAX,
		     (const char *const[]){ "HOME", "account", NULL });
	rows_expect(&f, "|/|ro|bind|system|programs and libraries|\n"
			"|/home|private|tmpfs|homes|hides keys|\n"
			"|/src/\033[31m|rw|bind|current directory|the workspace|\n"
			"|/x|rw|descriptor|caller|standard output|\n"
			"|/x|rw|descriptor|caller|standard error|\n"
			"|HOME||variable|account||\n");
	headline_expect(&f, "claude aaaaaa: 3 paths can be changed (rw), 1 only read (ro), 0 masked, 1 "
			    "private; 1 variables. w: why?");
	details_expect(&f, 2,
		       "Path: /src/\\x1b[31m\n"
		       "Mode: rw (can be read and changed, as its permissions allow)\n"
		       "Kind: bind (what lies there outside, with what is mounted below it)\n"
		       "Origin: current directory\n"
		       "Reason: the workspace\n");
	details_of_every_row(&f);

	fixture_act(&f, COMMAND_WHY, NULL, &effect);
	fixture_type(&f, &effect, "/home/ann/.ssh/");
	assert_int_equal(effect.kind, EFFECT_SHOW);
	assert_non_null(strstr(effect.text, "Path: /home/ann/.ssh\n"));
	assert_non_null(strstr(effect.text, "Decided by: /home\n"));
	fixture_act(&f, COMMAND_WHY, NULL, &effect);
	fixture_type(&f, &effect, "10.9.9.9");
	assert_int_equal(effect.kind, EFFECT_TELL);
	assert_string_equal(effect.text, "a path begins with /; addresses are explained in Routes");
	effect_done(&effect);
	fixture_end(&f);
}

static void two_sessions_are_compared(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	fixture_begin(&f, &view_exposure);
	fixture_take(&f, A, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_a);
	fixture_take(&f, B, MODEL_EXPOSURE, EXPOSED_MAX, seen_by_b);
	assert_int_equal(model_open(f.model, B), 0);
	fixture_act(&f, COMMAND_DIFF, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_CHOOSE);
	assert_int_equal(effect.n_parts, 1);
	assert_int_equal(effect.parts[0].kind, EFFECT_COMPARE);
	assert_string_equal(effect.parts[0].session, A);
	assert_string_equal(effect.parts[0].title, "the claude session " A " of ann in /src/\\x1b[31m");
	assert_int_equal(model_compare(f.model, A), 0);
	rows_expect(&f, "+|/home|rw|bind|/etc/c.conf:1|allow-write|\n"
			"+|/src|rw|bind|current directory|the workspace|\n"
			"~|/x|ro|descriptor|caller|standard output|\n"
			"-|/home|private|tmpfs|homes|hides keys|\n"
			"-|/src/\033[31m|rw|bind|current directory|the workspace|\n"
			"-|/x|rw|descriptor|caller|standard error|\n");
	headline_expect(&f, "claude bbbbbb, only what differs: + here, - there, ~ in both in another way (= "
			    "ends it). There "
			    "is the claude session " A " of ann in /src/\\x1b[31m.");
	details_of_every_row(&f);
	details_expect(&f, 2,
		       "Path: /x\nMode: ro (can be read, as its permissions allow, and not changed)\n"
		       "Kind: descriptor (a file outside that the caller handed in, open)\n"
		       "Origin: caller\nReason: standard output\nMode there: rw\nOrigin there: caller\n");
	fixture_act(&f, COMMAND_DIFF, NULL, &effect); /* ends it */
	assert_int_equal(effect.kind, EFFECT_COMPARE);
	assert_null(effect.session);
	assert_int_equal(model_compare(f.model, NULL), 0);
	rows_expect(&f, "|/|ro|bind|system|programs and libraries|\n"
			"|/home|rw|bind|/etc/c.conf:1|allow-write|\n"
			"|/src|rw|bind|current directory|the workspace|\n"
			"|/x|ro|descriptor|caller|standard output|\n");
	model_remove_session(f.model, A);
	fixture_act(&f, COMMAND_DIFF, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);
	effect_done(&effect);
	fixture_end(&f);
}

static void routes_and_ports_are_explained(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	fixture_begin(&f, &view_routes);
	fixture_take(&f, A, MODEL_ROUTES, ROUTE_COLUMNS,
		     (const char *const[]){ "10.0.0.0/8", "deny", "deny0", "private network (RFC 1918)",
					    "in force", "10.0.0.7/32", "allow", "jail0", "allow-ip, x:1",
					    "missing", "default", "internet", "jail0", "the internet",
					    "in force", NULL });
	fixture_take(&f, A, MODEL_PORTS, PORT_MAX,
		     (const char *const[]){ "8080", "local", "listening", "/etc/c.conf:3", NULL });
	rows_expect(&f, "10.0.0.0/8|deny|deny0|in force|private network (RFC 1918)|\n"
			"10.0.0.7/32|allow|jail0|missing|allow-ip, x:1|\n"
			"default|internet|jail0|in force|the internet|\n"
			"127.0.0.1:8080|local|lo|listening|/etc/c.conf:3|\n");
	headline_expect(
		&f, "claude aaaaaa: 1 networks are refused; the internet and what says 'allow' are reached; "
		    "1 ports cross. w: why?");
	details_of_every_row(&f);
	details_expect(&f, 0,
		       "Destination: 10.0.0.0/8\nVerdict: deny (refused, whatever way is tried)\n"
		       "Reason: private network (RFC 1918)\n"
		       "State: in force (as it was meant, read back from the kernel)\nDevice: deny0\n");

	fixture_act(&f, COMMAND_WHY, NULL, &effect);
	fixture_type(&f, &effect, "10.0.0.5");
	assert_int_equal(effect.kind, EFFECT_SHOW);
	assert_string_equal(effect.text, "Address: 10.0.0.5\nVerdict: deny (refused, whatever way is tried)\n"
					 "Decided by: 10.0.0.0/8\nReason: private network (RFC 1918)\n"
					 "State: in force\nTo allow it: press a in this view, and type it\n");
	fixture_act(&f, COMMAND_WHY, NULL, &effect);
	fixture_type(&f, &effect, "fe80::1");
	assert_non_null(strstr(effect.text, "no IPv6"));
	fixture_act(&f, COMMAND_WHY, NULL, &effect);
	fixture_type(&f, &effect, "printer");
	assert_int_equal(effect.kind, EFFECT_TELL);

	fixture_act(&f, COMMAND_ALLOW, "10.0.0.0/8 deny", &effect);
	assert_string_equal(effect.text, ""); /* nobody wants all of it */
	fixture_type(&f, &effect, " 10.0.0.5 ");
	assert_int_equal(effect.kind, EFFECT_CHOOSE);
	assert_int_equal(effect.n_parts, 3);
	fixture_act(&f, COMMAND_ALLOW, "168.63.129.16/32 deny", &effect);
	assert_string_equal(effect.text, "168.63.129.16");
	effect_done(&effect);
	fixture_end(&f);
}

static void a_denied_row_is_allowed(void **state)
{
	Fixture f;
	Effect effect = { 0 };

	fixture_begin(&f, &view_denied);
	fixture_take(&f, A, MODEL_DENIED, DENIED_MAX, (const char *const[]){ NULL });
	assert_string_equal(view_denied.empty(&f.context),
			    "Nothing was refused in this session. A: all sessions.");
	fixture_take(&f, A, MODEL_DENIED, DENIED_MAX,
		     (const char *const[]){ "1769849999000000", "tcp", "10.0.0.5", "80", "curl\033 (7)",
					    "private network (RFC 1918)", "12345", "1769763600000000", "", "",
					    "0", "", "others", "3", NULL });
	fixture_take(&f, B, MODEL_DENIED, DENIED_MAX,
		     (const char *const[]){ "1769849998000000", "icmp", "169.254.169.254", "0", "?",
					    "link-local", "1", NULL });
	rows_expect(&f, "08:59:59Z|" A "|tcp|10.0.0.5|80|curl\033 (7)|12k|private network (RFC 1918)|\n"
			"2026-01-30 09:00:00Z|" A "|||||3|others|\n");
	details_of_every_row(&f);
	fixture_act(&f, COMMAND_ALLOW, A " tcp 10.0.0.5 80 curl\033 (7) private network (RFC 1918)", &effect);
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
	fixture_act(&f, COMMAND_ALLOW, A "   0  others", &effect);
	assert_int_equal(effect.kind, EFFECT_TELL); /* a sum has no address */
	fixture_act(&f, COMMAND_ALLOW, NULL, &effect);
	assert_int_equal(effect.kind, EFFECT_TELL);

	fixture_act(&f, COMMAND_ALL_SESSIONS, NULL, &effect);
	rows_expect(&f, "08:59:59Z|" A "|tcp|10.0.0.5|80|curl\033 (7)|12k|private network (RFC 1918)|\n"
			"2026-01-30 09:00:00Z|" A "|||||3|others|\n"
			"08:59:58Z|" B "|icmp|169.254.169.254||?|1|link-local|\n");
	fixture_act(&f, COMMAND_ALLOW, B " icmp 169.254.169.254 0 ? link-local", &effect);
	assert_non_null(strstr(effect.parts[0].question, "clouds give credentials"));
	effect_done(&effect);
	fixture_end(&f);
}

/* The pane of the one row that was refused, as it is after something has changed. */
static void denied_says(Fixture *f, const char *allowed)
{
	_cleanup_free_ char *expected = NULL;

	assert_true(asprintf(&expected,
			     "Address: 10.0.0.5\nPort: 80\nProtocol: tcp\nRefused because: private network\n"
			     "%s%s%sProgram: curl\nAttempts: 2\nLast: 2026-01-31 08:59:59Z\n"
			     "In: the claude session " A " of ann in /src/\\x1b[31m\n%s",
			     allowed ? "Allowed now: " : "", allowed ?: "", allowed ? "\n" : "",
			     allowed ? ""
				     : "To allow it: press a; you are told what that opens before it is "
				       "done\n") > 0);
	details_expect(f, 0, expected);
}

static void a_denied_row_says_that_it_is_allowed_now(void **state)
{
	static const char *const refused[] = { "10.0.0.0/8", "deny",     "jail0",    "private network",
					       "in force",   "default",  "internet", "jail0",
					       "",           "in force", NULL };
	static const char *const opened[] = { "10.0.0.0/8", "deny",        "jail0", "private network",
					      "in force",   "10.0.0.5/32", "allow", "jail0",
					      "allow-ip",   "in force",    NULL };
	Effect effect = { 0 };
	Fixture f;

	fixture_begin(&f, &view_denied);
	fixture_take(&f, A, MODEL_DENIED, DENIED_MAX,
		     (const char *const[]){ "1769849999000000", "tcp", "10.0.0.5", "80", "curl",
					    "private network", "2", NULL });
	denied_says(&f, NULL);
	fixture_take(
		&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		(const char *const[]){ "10.0.0.6", "", "/etc/c.conf:1", "10.0.0.5", "", "session " B, NULL });
	denied_says(&f, NULL); /* another address, and another session */
	fixture_take(
		&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		(const char *const[]){ "10.0.0.5", "", "session " A " until 2026-01-31T10:00:00Z", NULL });
	denied_says(&f, "in this session, until 2026-01-31T10:00:00Z");
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		     (const char *const[]){ "10.0.0.0/24", "", "/etc/c.conf:1", NULL });
	denied_says(&f, NULL); /* it may be the machine's own address */
	fixture_take(
		&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		(const char *const[]){ "10.0.0.5", "", "session " A " until 2026-01-31T10:00:00Z", NULL });
	/* The routes know better, where they are known. */
	fixture_take(&f, A, MODEL_ROUTES, ROUTE_COLUMNS, refused);
	denied_says(&f, NULL);
	fixture_take(&f, A, MODEL_ROUTES, ROUTE_COLUMNS, opened);
	denied_says(&f, "in this session, until 2026-01-31T10:00:00Z");
	fixture_act(&f, COMMAND_ALLOW, A " tcp 10.0.0.5 80 curl private network", &effect);
	assert_string_equal(effect.title, "Allow 10.0.0.5");
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		     (const char *const[]){ "10.0.0.5", "", "session " A, "10.0.0.5", "",
					    "session " A " until 2026-01-31T10:00:00Z", NULL });
	denied_says(&f, "in this session, until it ends");
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX,
		     (const char *const[]){ "10.0.0.5", "", "session " A, "10.0.0.0/24", "", "/etc/c.conf:1",
					    NULL });
	denied_says(&f, "for the agents of all users, by allow-ip 10.0.0.0/24 (/etc/c.conf:1)");
	fixture_take(&f, NULL, MODEL_ALLOW_IP, ALLOWED_MAX, (const char *const[]){ NULL });
	denied_says(&f, "in this session, by its route 10.0.0.5/32");
	effect_done(&effect);
	fixture_end(&f);
}

/* A row of this machine's own is no reason to hide why the others did not come. */
static void doctor_says_why_rows_are_missing(void **state)
{
	static const char *const cells[RUN_MAX] = { "entry.path", "ok", "agents on PATH", "fine", "" };
	ClientTable row = { .n_columns = RUN_MAX, .n_rows = 1, .cells = calloc(RUN_MAX, sizeof(char *)) };
	Fixture f;

	assert_non_null(row.cells);
	for (size_t i = 0; i < RUN_MAX; i++)
		row.cells[i] = strdup(cells[i]);
	fixture_begin(&f, &view_doctor);
	assert_non_null(strstr(view_doctor.empty(&f.context), "press r"));
	assert_int_equal(model_begin_run(f.model, MODEL_DOCTOR, "", false, NOW), 0);
	assert_int_equal(model_take_run_row(f.model, MODEL_DOCTOR, &row), 0);
	assert_int_equal(model_end_run(f.model, MODEL_DOCTOR, false, "it broke"), 0);
	headline_expect(&f, "The checks of this machine could not all be done: it broke");
	fixture_end(&f);
}

static void policy_has_its_meaning(void **state)
{
	Fixture f;

	fixture_begin(&f, &view_policy);
	fixture_take(&f, NULL, MODEL_POLICY, POLICY_MAX,
		     (const char *const[]){ "egress-jail", "0", "/etc/c.conf:1", "deny-group", "docker",
					    "default", "deny-group", "lxd", "default", "later-key", "",
					    "default", NULL });
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
	fixture_end(&f);
}

static void a_view_is_printed(void **state)
{
	const PrintStyle style = { .utf8 = true };
	_cleanup_free_ char *text = NULL, *json = NULL;
	size_t size;
	FILE *stream;
	Fixture f;

	fixture_begin(&f, &view_denied);
	fixture_take(&f, A, MODEL_DENIED, DENIED_MAX,
		     (const char *const[]){ "1769763600000000", "", "", "0", "", "others", "3",
					    "1769849999000000", "tcp", "10.0.0.5", "80", "curl\033 (7)",
					    "private", "12345", NULL });
	stream = open_memstream(&text, &size);
	assert_int_equal(dump_print(stream, f.view, &f.context, false, &style), 0);
	fclose(stream);
	assert_string_equal(
		text, "What claude aaaaaa tried to reach and may not. a: allow; A: all sessions."
		      "\n\n"
		      "LAST                  SESSION           PROTO  ADDRESS   PORT  PROGRAM       COUNT  "
		      "REASON\n"
		      "08:59:59Z             " A "  tcp    10.0.0.5    80  curl\\x1b (7)    12k  private\n"
		      "2026-01-30 09:00:00Z  " A "                                           3  others\n");
	stream = open_memstream(&json, &size);
	assert_int_equal(dump_print(stream, f.view, &f.context, true, &style), 0);
	fclose(stream);
	assert_non_null(strstr(json, "\"last_usec\": 1769849999000000,"));
	assert_non_null(strstr(json, "\"count\": 12345,"));
	assert_non_null(strstr(json, "\"port\": null,"));
	assert_non_null(strstr(json, "\"program\": \"curl\\u001b (7)\","));
	fixture_end(&f);
}

static void without_a_session(void **state)
{
	static const View *const views[] = { &view_exposure, &view_routes, &view_denied, &view_allow_ip,
					     &view_policy };
	Fixture f;

	fixture_begin(&f, views[0]);
	assert_int_equal(model_open(f.model, NULL), 0);
	model_remove_session(f.model, A);
	model_remove_session(f.model, B);
	for (size_t i = 0; i < ELEMENTSOF(views); i++) {
		Effect effect = { 0 };

		fixture_use(&f, views[i]);
		rows_expect(&f, "");
		assert_non_null(f.view->empty(&f.context));
		for (size_t k = 0; f.view->actions && f.view->actions[k].command != COMMAND_NONE; k++) {
			fixture_act(&f, f.view->actions[k].command, NULL, &effect);
			assert_int_not_equal(effect.kind, EFFECT_NONE);
			if (effect.kind == EFFECT_PROMPT)
				fixture_type(&f, &effect, "10.0.0.1");
		}
		effect_done(&effect);
	}
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exposure_is_paths_then_variables),
		cmocka_unit_test(two_sessions_are_compared),
		cmocka_unit_test(routes_and_ports_are_explained),
		cmocka_unit_test(a_denied_row_is_allowed),
		cmocka_unit_test(a_denied_row_says_that_it_is_allowed_now),
		cmocka_unit_test(doctor_says_why_rows_are_missing),
		cmocka_unit_test(a_view_is_printed),
		cmocka_unit_test(policy_has_its_meaning),
		cmocka_unit_test(without_a_session),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
