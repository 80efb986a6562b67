/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "service/session/link-server.h"

#define ROWS 300u

/* A link server on a socket of its own, and what it was told. Only root may connect to one. */
typedef struct Fixture {
	sd_event *event;
	LinkServer *server;
	struct sockaddr_un address;
	unsigned stops, delivered, attempts;
	uint64_t grace;
	uint32_t verifying;
	uint8_t buffer[LINK_PACKET_MAX];
} Fixture;

static void on_stop(void *userdata, uint64_t grace_usec, const char *why)
{
	Fixture *fixture = userdata;

	assert_string_equal(why, "by root");

	fixture->stops++;
	fixture->grace = grace_usec;
}

static int on_table(void *userdata, LinkTable table, LinkRow **ret_rows, uint32_t *ret_n)
{
	LinkRow *rows;

	if (table != LINK_TABLE_WARNINGS)
		return -EINVAL;
	rows = calloc(ROWS, sizeof(LinkRow));
	assert_non_null(rows);
	for (unsigned i = 0; i < ROWS; i++)
		assert_true(asprintf(&rows[i].columns[0], "%04u %0500d", i, 0) > 0);
	*ret_rows = rows;
	*ret_n = ROWS;
	return 0;
}

static int on_reach(void *userdata, const LinkMessage *m, char **ret_problem)
{
	if (m->kind == LINK_ALLOW && streq(m->text, "10.1.2.3") && m->usec == 60 * USEC_PER_SEC)
		return 0;
	if (m->kind == LINK_REACH && strings_count(m->addresses) == 2) {
		*ret_problem = strdup("the second is not reachable");
		return 0;
	}
	*ret_problem = strdup("it is not there; look");
	return -ENOENT;
}

static int on_denied(void *userdata, LinkRow **ret_rows, uint32_t *ret_n, uint64_t *ret_total)
{
	Fixture *fixture = userdata;
	LinkRow *row;

	if (fixture->attempts == 0)
		return 0;
	row = calloc(1, sizeof(LinkRow));
	assert_non_null(row);
	for (size_t i = 0; i < link_table_columns(LINK_TABLE_DENIED); i++)
		assert_true(asprintf(&row->columns[i], "%u", fixture->attempts) > 0);
	*ret_total = fixture->attempts;
	fixture->attempts = 0;
	*ret_rows = row;
	*ret_n = 1;
	return 0;
}

static int on_verify(void *userdata, uint32_t serial, bool probes, char **ret_problem)
{
	Fixture *fixture = userdata;

	if (probes)
		return refuse(ret_problem, -EPERM, "no probes; leave them out");
	fixture->verifying = serial;
	return 0;
}

static void on_delivered(void *userdata)
{
	Fixture *fixture = userdata;

	fixture->delivered++;
}

static int setup(void **state)
{
	static const LinkServerCalls calls = { .stop = on_stop,
					       .table = on_table,
					       .reach = on_reach,
					       .denied = on_denied,
					       .verify = on_verify,
					       .delivered = on_delivered };
	Fixture *fixture = calloc(1, sizeof(*fixture));
	int fd;

	assert_non_null(fixture);
	fixture->address.sun_family = AF_UNIX;
	(void)snprintf(fixture->address.sun_path, sizeof(fixture->address.sun_path), "/tmp/link-test.%d",
		       getpid());
	(void)unlink(fixture->address.sun_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&fixture->address, sizeof(fixture->address)), 0);
	assert_true(sd_event_new(&fixture->event) >= 0);
	assert_true(link_server_new(fixture->event, fd, &calls, fixture, &fixture->server) >= 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	(void)link_server_free(fixture->server);
	(void)sd_event_unref(fixture->event);
	(void)unlink(fixture->address.sun_path);
	free(fixture);
	return 0;
}

/* Let the loop do whatever is ready. */
static void settle(Fixture *fixture)
{
	while (sd_event_run(fixture->event, 0) > 0)
		continue;
}

static int connect_to(Fixture *fixture)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&fixture->address, sizeof(fixture->address)), 0);
	settle(fixture);
	return fd;
}

static LinkMessage expect(Fixture *fixture, int fd, LinkKind kind)
{
	LinkMessage m = LINK_MESSAGE_INIT;
	ssize_t n;

	settle(fixture);
	n = packet_receive(fd, fixture->buffer, sizeof(fixture->buffer));
	assert_true(n > 0);
	assert_int_equal(link_decode(fixture->buffer, (size_t)n, &m), 0);
	assert_int_equal(m.kind, kind);
	return m;
}

static void expect_result(Fixture *fixture, int fd, int result)
{
	LinkMessage m = expect(fixture, fd, LINK_DONE);

	assert_int_equal(m.result, result);
	link_message_done(&m);
}

static void expect_end(Fixture *fixture, int fd)
{
	ssize_t n;

	settle(fixture);
	n = packet_receive(fd, fixture->buffer, sizeof(fixture->buffer));
	assert_true(n == 0 || n == -ECONNRESET);
}

static void expect_silence(Fixture *fixture, int fd)
{
	settle(fixture);
	assert_int_equal(packet_receive(fd, fixture->buffer, sizeof(fixture->buffer)), -EAGAIN);
}

static void say(int fd, const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(link_encode(m, &data, &size, NULL), 0);
	assert_int_equal(packet_send(fd, data, size), 0);
}

static void only_root_is_greeted(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);

	if (geteuid() == 0) {
		LinkMessage m = expect(fixture, fd, LINK_HELLO);

		assert_int_equal(m.state, SESSION_STARTING);
		link_message_done(&m);
	} else
		expect_end(fixture, fd);
}

static void news_wait_for_a_service(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = FD_NONE;
	LinkMessage m;

	link_server_set_status(fixture->server,
			       &(LinkStatus){ .state = SESSION_RUNNING, .leader = 4711, .jailed = true });
	link_server_started(fixture->server);
	fd = connect_to(fixture);
	m = expect(fixture, fd, LINK_HELLO);
	assert_int_equal(m.state, SESSION_RUNNING);
	assert_int_equal(m.leader, 4711);
	assert_true(m.jailed);
	(void)expect(fixture, fd, LINK_STARTED);
	expect_silence(fixture, fd);
	link_server_set_status(fixture->server, &(LinkStatus){ .state = SESSION_STOPPED, .leader = 4711 });
	m = expect(fixture, fd, LINK_STATE);
	assert_int_equal(m.state, SESSION_STOPPED);
	assert_int_equal(fixture->delivered, 0);
}

static void a_newer_service_replaces_an_older_one(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int old = connect_to(fixture), new = FD_NONE;
	LinkMessage m;

	(void)expect(fixture, old, LINK_HELLO);
	new = connect_to(fixture);
	expect_end(fixture, old);
	(void)expect(fixture, new, LINK_HELLO);
	assert_int_equal(link_server_exited(fixture->server, 7 << 8, NULL, 42), 0);
	m = expect(fixture, new, LINK_EXITED);
	assert_int_equal(m.exit_status, 7 << 8);
	assert_int_equal(m.denied, 42);
	link_message_done(&m);
	assert_int_equal(fixture->delivered, 1);
}

static void the_last_word_waits_too(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = FD_NONE;
	LinkMessage m;

	assert_int_equal(link_server_failed(fixture->server, "an.Error", "cause; fix"), 0);
	settle(fixture);
	assert_int_equal(fixture->delivered, 0);
	fd = connect_to(fixture);
	(void)expect(fixture, fd, LINK_HELLO);
	m = expect(fixture, fd, LINK_FAILED);
	assert_string_equal(m.error, "an.Error");
	assert_string_equal(m.text, "cause; fix");
	link_message_done(&m);
	assert_int_equal(fixture->delivered, 1);
}

static void a_stop_is_answered(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);
	LinkMessage m;

	(void)expect(fixture, fd, LINK_HELLO);
	say(fd, &(LinkMessage){ .kind = LINK_STOP, .serial = 5, .usec = 1234567, .text = (char *)"by root" });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.serial, 5);
	assert_int_equal(m.result, 0);
	link_message_done(&m);
	assert_int_equal(fixture->stops, 1);
	assert_true(fixture->grace == 1234567);
}

static void addresses_are_opened_or_the_cause_is_told(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);
	char *addresses[] = { (char *)"10.1.2.3", (char *)"10.1.2.4", NULL };
	LinkMessage m;

	(void)expect(fixture, fd, LINK_HELLO);
	say(fd,
	    &(LinkMessage){
		    .kind = LINK_ALLOW, .serial = 5, .text = (char *)"10.1.2.3", .usec = 60 * USEC_PER_SEC });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.serial, 5);
	assert_int_equal(m.result, 0);
	assert_string_equal(m.text, "");
	link_message_done(&m);
	say(fd, &(LinkMessage){ .kind = LINK_REACH, .serial = 7, .addresses = addresses });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.result, 0);
	assert_string_equal(m.text, "the second is not reachable");
	link_message_done(&m);
	say(fd, &(LinkMessage){ .kind = LINK_REVOKE, .serial = 6, .text = (char *)"10.1.2.3" });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.result, -ENOENT);
	assert_string_equal(m.text, "it is not there; look");
	link_message_done(&m);
}

static void denied_attempts_are_told_to_whoever_is_there(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = FD_NONE;
	LinkMessage m;

	fixture->attempts = 3;
	link_server_denied(fixture->server);
	assert_int_equal(fixture->attempts, 3);
	fd = connect_to(fixture);
	(void)expect(fixture, fd, LINK_HELLO);
	m = expect(fixture, fd, LINK_DENIED);
	assert_int_equal(m.n_rows, 1);
	assert_string_equal(m.rows[0].columns[6], "3");
	link_message_done(&m);
	/* Nothing to tell is not told. */
	link_server_denied(fixture->server);
	fixture->attempts = 4;
	link_server_denied(fixture->server);
	m = expect(fixture, fd, LINK_DENIED);
	assert_string_equal(m.rows[0].columns[6], "4");
	link_message_done(&m);
}

static Row row_of(const char *id)
{
	Row row;

	assert_int_equal(row_make(id, ROW_PASS, "title", "detail", NULL, &row), 0);
	return row;
}

static void say_row(Fixture *fixture, uint32_t serial, const char *id)
{
	_cleanup_(row_done) Row row = row_of(id);

	link_server_row(fixture->server, serial, &row);
}

/* The first row comes at once, what follows together, and the answer behind all of them. */
static void checks_are_answered_row_by_row(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);
	LinkMessage m;

	(void)expect(fixture, fd, LINK_HELLO);
	say(fd, &(LinkMessage){ .kind = LINK_VERIFY, .serial = 7, .probes = true });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.result, -EPERM);
	assert_string_equal(m.text, "no probes; leave them out");
	link_message_done(&m);

	say(fd, &(LinkMessage){ .kind = LINK_VERIFY, .serial = 8 });
	settle(fixture);
	assert_int_equal(fixture->verifying, 8);
	/* One at a time. */
	say(fd, &(LinkMessage){ .kind = LINK_VERIFY, .serial = 9 });
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.serial, 9);
	assert_int_equal(m.result, -EBUSY);
	link_message_done(&m);

	say_row(fixture, 8, "01");
	m = expect(fixture, fd, LINK_ROWS);
	assert_int_equal(m.serial, 8);
	assert_int_equal(m.n_rows, 1);
	assert_string_equal(m.rows[0].columns[0], "01");
	assert_string_equal(m.rows[0].columns[1], "pass");
	link_message_done(&m);
	say_row(fixture, 8, "02");
	say_row(fixture, 8, "03");
	say_row(fixture, 6, "04"); /* of a run that nobody waits for */
	link_server_verified(fixture->server, 6, 0, NULL);
	link_server_verified(fixture->server, 8, LINK_CHECK_FAILED, "text");
	m = expect(fixture, fd, LINK_ROWS);
	assert_int_equal(m.n_rows, 2);
	assert_string_equal(m.rows[1].columns[0], "03");
	link_message_done(&m);
	m = expect(fixture, fd, LINK_DONE);
	assert_int_equal(m.serial, 8);
	assert_int_equal(m.result, LINK_CHECK_FAILED);
	assert_string_equal(m.text, "text");
	link_message_done(&m);

	/* And the next one. */
	say(fd, &(LinkMessage){ .kind = LINK_VERIFY, .serial = 10 });
	settle(fixture);
	assert_int_equal(fixture->verifying, 10);
}

/* Rows of a session that was made to check come before its last word, whoever hears it. */
static void rows_come_before_the_last_word(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = FD_NONE;
	LinkMessage m;

	say_row(fixture, 0, "01");
	say_row(fixture, 0, "02");
	assert_int_equal(link_server_exited(fixture->server, 0, NULL, 0), 0);
	fd = connect_to(fixture);
	(void)expect(fixture, fd, LINK_HELLO);
	m = expect(fixture, fd, LINK_ROWS);
	assert_int_equal(m.serial, 0);
	assert_int_equal(m.n_rows, 2);
	link_message_done(&m);
	m = expect(fixture, fd, LINK_EXITED);
	link_message_done(&m);
}

/* Many long rows need several packets, and none is lost. */
static void rows_that_are_too_many_for_a_packet(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *detail = malloc(ROW_DETAIL_MAX + 1);
	_cleanup_close_ int fd = FD_NONE;
	unsigned n = 0;
	LinkMessage m;

	assert_non_null(detail);
	memset(detail, 'x', ROW_DETAIL_MAX);
	detail[ROW_DETAIL_MAX] = 0;
	for (unsigned i = 0; i < 60; i++) {
		_cleanup_(row_done) Row row = { 0 };

		assert_int_equal(row_make("p01", ROW_FAIL, "title", detail, NULL, &row), 0);
		link_server_row(fixture->server, 0, &row);
	}
	assert_int_equal(link_server_exited(fixture->server, 0, NULL, 0), 0);
	fd = connect_to(fixture);
	(void)expect(fixture, fd, LINK_HELLO);
	while (n < 60) {
		m = expect(fixture, fd, LINK_ROWS);
		n += m.n_rows;
		link_message_done(&m);
	}
	assert_int_equal(n, 60);
	m = expect(fixture, fd, LINK_EXITED);
	link_message_done(&m);
}

static void long_tables_come_in_pages(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);
	unsigned pages = 0;
	LinkMessage m;

	(void)expect(fixture, fd, LINK_HELLO);
	for (uint32_t first = 0; first < ROWS; pages++) {
		say(fd, &(LinkMessage){ .kind = LINK_TABLE_GET, .serial = pages, .first = first });
		m = expect(fixture, fd, LINK_TABLE);
		assert_int_equal(m.serial, pages);
		assert_int_equal(m.first, first);
		assert_int_equal(m.total, ROWS);
		assert_true(m.n_rows > 0);
		assert_int_equal(strtoul(m.rows[0].columns[0], NULL, 10), first);
		first += m.n_rows;
		link_message_done(&m);
	}
	assert_true(pages > 1);
	say(fd, &(LinkMessage){ .kind = LINK_TABLE_GET, .serial = 7, .first = ROWS + 1 });
	expect_result(fixture, fd, -ERANGE);
	say(fd, &(LinkMessage){ .kind = LINK_TABLE_GET, .serial = 8, .table = LINK_TABLE_ROUTES });
	expect_result(fixture, fd, -EINVAL);
}

static void what_only_a_session_says_ends_the_connection(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture), again = FD_NONE;

	(void)expect(fixture, fd, LINK_HELLO);
	say(fd, &(LinkMessage){ .kind = LINK_STARTED });
	expect_end(fixture, fd);
	again = connect_to(fixture);
	(void)expect(fixture, again, LINK_HELLO);
	assert_int_equal(packet_send(again, "garbage", 7), 0);
	expect_end(fixture, again);
}

/* A service that asks and does not read gets no more than its share of memory, and all of its answers later.
 */
static void questions_wait_behind_answers(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture);
	unsigned asked = 0, answered = 0;
	LinkMessage m;

	(void)expect(fixture, fd, LINK_HELLO);
	for (;;) {
		LinkMessage question = { .kind = LINK_TABLE_GET, .serial = asked };
		_cleanup_free_ uint8_t *data = NULL;
		size_t size = 0;

		assert_int_equal(link_encode(&question, &data, &size, NULL), 0);
		if (asked >= 1000 || packet_send(fd, data, size) < 0)
			break;
		asked++;
		settle(fixture);
	}
	assert_true(asked > LINK_WAITING_MAX);
	while (answered < asked) {
		m = expect(fixture, fd, LINK_TABLE);
		assert_int_equal(m.serial, answered);
		link_message_done(&m);
		answered++;
	}
	expect_silence(fixture, fd);
}

static void a_service_that_goes_is_not_the_end(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = connect_to(fixture), again = FD_NONE;

	(void)expect(fixture, fd, LINK_HELLO);
	fd = close_fd(fd);
	settle(fixture);
	link_server_set_status(fixture->server, &(LinkStatus){ .state = SESSION_RUNNING });
	again = connect_to(fixture);
	assert_int_equal(expect(fixture, again, LINK_HELLO).state, SESSION_RUNNING);
	expect_silence(fixture, again);
}

/* No descriptor for the connection: it waits, and the loop sleeps meanwhile. */
static void a_connection_that_cannot_be_taken_waits(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct rlimit before, none;
	unsigned turns = 0;

	assert_int_equal(connect(fd, (struct sockaddr *)&fixture->address, sizeof(fixture->address)), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (turns < 100 && sd_event_run(fixture->event, 0) > 0)
		turns++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_in_range(turns, 1, 3);

	/* The next event is the second attempt. */
	assert_true(sd_event_run(fixture->event, 10 * USEC_PER_SEC) > 0);
	(void)expect(fixture, fd, LINK_HELLO);
}

#define LINK_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LINK_TEST(only_root_is_greeted),
		LINK_TEST(news_wait_for_a_service),
		LINK_TEST(a_newer_service_replaces_an_older_one),
		LINK_TEST(the_last_word_waits_too),
		LINK_TEST(a_stop_is_answered),
		LINK_TEST(addresses_are_opened_or_the_cause_is_told),
		LINK_TEST(denied_attempts_are_told_to_whoever_is_there),
		LINK_TEST(checks_are_answered_row_by_row),
		LINK_TEST(rows_come_before_the_last_word),
		LINK_TEST(rows_that_are_too_many_for_a_packet),
		LINK_TEST(long_tables_come_in_pages),
		LINK_TEST(what_only_a_session_says_ends_the_connection),
		LINK_TEST(questions_wait_behind_answers),
		LINK_TEST(a_service_that_goes_is_not_the_end),
		LINK_TEST(a_connection_that_cannot_be_taken_waits),
	};

	const struct CMUnitTest refused[] = { LINK_TEST(only_root_is_greeted) };

	/* The others need a peer that is root. */
	if (geteuid() != 0)
		return cmocka_run_group_tests(refused, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
