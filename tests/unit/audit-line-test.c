/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/daemon/audit-line.h"
#include "service/daemon/denied-sum.h"

static void make(AuditEvent *event)
{
	*event = (AuditEvent){ .kind = AUDIT_LAUNCH, .usec = 1764445501000001, .uid = 4294967294 };
	strcpy(event->session, "abcdefghijklmnop");
	assert_int_equal(audit_event_add(event, "user", "alice"), 0);
	assert_int_equal(audit_event_add_bytes(event, "workspace", "/w\"x\\y\nz\xff \xe2\x80\xae"), 0);
	assert_int_equal(audit_event_add(event, "widened", NULL), 0);
	assert_int_equal(audit_event_add(event, "by", ""), 0);
}

static void a_line_is_json_and_comes_back(void **state)
{
	_cleanup_(audit_event_done) AuditEvent event, read = { 0 };
	_cleanup_free_ char *line = NULL;

	make(&event);
	line = audit_line_encode(&event);
	assert_string_equal(line,
			    "{\"time\":1764445501000001,\"event\":\"launch\",\"uid\":4294967294,"
			    "\"session\":\"abcdefghijklmnop\",\"user\":\"alice\","
			    "\"workspace\":\"/w\\\"x\\\\\\\\y\\\\x0az\\\\xff \\\\xe2\\\\x80\\\\xae\"}\n");
	assert_int_equal(audit_line_decode(line, strlen(line) - 1, &read), 0);
	assert_int_equal(read.kind, AUDIT_LAUNCH);
	assert_int_equal(read.usec, event.usec);
	assert_int_equal(read.uid, event.uid);
	assert_string_equal(read.session, event.session);
	assert_int_equal(read.n_details, 2);
	assert_string_equal(audit_event_get(&read, "workspace"), event.details[1].value);
	assert_null(audit_event_get(&read, "by"));
}

/* A loss of power leaves any beginning, and a disk any byte. */
static void a_torn_line_is_none(void **state)
{
	_cleanup_(audit_event_done) AuditEvent event;
	_cleanup_free_ char *line = NULL;
	size_t n;

	make(&event);
	line = audit_line_encode(&event);
	n = strlen(line) - 1;
	for (size_t i = 0; i < n; i++) {
		_cleanup_(audit_event_done) AuditEvent read = { 0 };
		_cleanup_free_ char *copy = malloc(i + 1);

		memcpy(copy, line, i);
		assert_int_equal(audit_line_decode(copy, i, &read), -EBADMSG);
	}
	for (size_t i = 0; i < n; i++)
		for (int byte = 0; byte < 256; byte++) {
			_cleanup_(audit_event_done) AuditEvent read = { 0 };
			char before = line[i];

			line[i] = (char)byte;
			(void)audit_line_decode(line, n, &read);
			line[i] = before;
		}
}

static void what_was_never_written_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"{}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"\"} ",
		"{\"time\":1,\"event\":\"other\",\"uid\":1,\"session\":\"\"}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":4294967296,\"session\":\"\"}",
		"{\"time\":18446744073709551616,\"event\":\"launch\",\"uid\":1,\"session\":\"\"}",
		"{\"time\":,\"event\":\"launch\",\"uid\":1,\"session\":\"\"}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"short\"}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"\",\"Name\":\"x\"}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"\",\"\":\"x\"}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"\",\"a\":1}",
		"{\"time\":1,\"event\":\"launch\",\"uid\":1,\"session\":\"\",\"a\":\"x\\",
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		AuditEvent read = { 0 };

		assert_int_equal(audit_line_decode(lines[i], strlen(lines[i]), &read), -EBADMSG);
	}
}

static void details_are_bounded(void **state)
{
	_cleanup_(audit_event_done) AuditEvent event = { .kind = AUDIT_EXIT }, read = { 0 };
	_cleanup_free_ char *line = NULL, *text = malloc(10000);

	memset(text, '"', 9999);
	text[9999] = '\0';
	for (size_t i = 0; i < AUDIT_DETAILS_MAX; i++)
		assert_int_equal(audit_event_add(&event, "detail", text), 0);
	assert_int_equal(audit_event_add(&event, "detail", text), -E2BIG);
	line = audit_line_encode(&event);
	assert_true(strlen(line) < AUDIT_LINE_MAX);
	assert_int_equal(audit_line_decode(line, strlen(line) - 1, &read), 0);
	assert_int_equal(read.n_details, AUDIT_DETAILS_MAX);
}

static LinkRow denied(const char *address, const char *program, const char *count)
{
	return (LinkRow){ .columns = { (char *)"1", (char *)"tcp", (char *)address, (char *)"22",
				       (char *)program, (char *)"denied", (char *)count } };
}

static void denials_are_summed_up(void **state)
{
	_cleanup_(denied_sum_done) DeniedSum sum = { 0 };
	LinkRow rows[] = { denied("10.0.0.1", "ssh (12)", "2"), denied("10.0.0.2", "?", "5"),
			   denied("10.0.0.1", "ssh (15)", "3"), denied("10.0.0.3", "x", "many"),
			   denied("10.0.0.3", "x", "-1"),       denied("10.0.0.2", "", "4") };

	denied_sum_add(&sum, rows, ELEMENTSOF(rows));
	assert_int_equal(sum.n, 2);
	assert_int_equal(denied_sum_count(&sum), 8);
	assert_string_equal(sum.items[0].what, "tcp 10.0.0.2:22");
	assert_string_equal(sum.items[1].what, "tcp 10.0.0.1:22 (ssh)");
	assert_false(sum.full);
	for (unsigned i = 0; i < 100; i++) {
		_cleanup_free_ char *address = NULL;
		LinkRow row;

		assert_true(asprintf(&address, "10.1.0.%u\033", i) > 0);
		row = denied(address, "", "18446744073709551615");
		denied_sum_add(&sum, &row, 1);
	}
	assert_int_equal(sum.n, DENIED_SUM_MAX);
	assert_true(sum.full);
	assert_true(denied_sum_count(&sum) == UINT64_MAX);
	assert_null(strchr(sum.items[0].what, 033));
}

/* Each destination once, whoever tries it; what has none, or is a check's, never. */
static void destinations_are_new_once(void **state)
{
	_cleanup_(denied_seen_done) DeniedSeen seen = { 0 };
	LinkRow rows[] = { denied("10.0.0.1", "ssh (12)", "2"),
			   denied("10.0.0.2", "?", "5"),
			   denied("10.0.0.1", "nc (15)", "3"),
			   denied("10.0.0.3", CS_DENIED_CHECKED, "1"),
			   denied("", "", "7"),
			   denied("10.0.0.4\033", "x", "1"),
			   denied("10.0.0.3", "x", "1") };
	const bool new[] = { true, true, false, false, false, false, true };
	_cleanup_free_ char *text = denied_text(&rows[4]);

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		assert_true(denied_seen_add(&seen, &rows[i]) == new[i]);
	rows[0].columns[1] = (char *)"udp";
	assert_true(denied_seen_add(&seen, &rows[0]));
	assert_string_equal(text, "denied");
	for (unsigned i = 0; i < 2 * DENIED_SEEN_MAX; i++) {
		_cleanup_free_ char *address = NULL;
		LinkRow row;

		assert_true(asprintf(&address, "11.0.%u.%u", i / 256, i % 256) > 0);
		row = denied(address, "", "1");
		assert_true(denied_seen_add(&seen, &row) == (i < DENIED_SEEN_MAX - 4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_json_and_comes_back),
		cmocka_unit_test(a_torn_line_is_none),
		cmocka_unit_test(what_was_never_written_is_refused),
		cmocka_unit_test(details_are_bounded),
		cmocka_unit_test(denials_are_summed_up),
		cmocka_unit_test(destinations_are_new_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
