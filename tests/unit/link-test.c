/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "service/link/lifeline.h"
#include "service/link/link.h"
#include "service/link/report.h"

static void pack_integers_round_trip(void **state)
{
	_cleanup_(pack_done) PackWriter w = { 0 };
	PackReader r;

	pack_init(&w, 64);
	pack_u8(&w, 0xfe);
	pack_u32(&w, 0x01020304);
	pack_u64(&w, UINT64_MAX - 1);
	pack_i32(&w, -7);
	assert_int_equal(w.error, 0);
	assert_int_equal(w.data[1], 0x04); /* little-endian on every machine */

	unpack_init(&r, w.data, w.size);
	assert_int_equal(unpack_u8(&r), 0xfe);
	assert_int_equal(unpack_u32(&r), 0x01020304);
	assert_true(unpack_u64(&r) == UINT64_MAX - 1);
	assert_int_equal(unpack_i32(&r), -7);
	assert_int_equal(unpack_finish(&r), 0);
}

static void pack_strings_round_trip(void **state)
{
	char *const in[] = { (char *)"", (char *)"\xff\xfe", (char *)"two\nlines", NULL };
	_cleanup_(strings_freep) char **out = NULL;
	_cleanup_(pack_done) PackWriter w = { 0 };
	PackReader r;

	pack_init(&w, 1024);
	pack_strings(&w, in);
	unpack_init(&r, w.data, w.size);
	out = unpack_strings(&r, 3, 16);
	assert_int_equal(unpack_finish(&r), 0);
	assert_int_equal(strings_count(out), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(out[i], in[i]);
}

static void pack_limit_is_kept(void **state)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	pack_init(&w, 7);
	pack_u32(&w, 1);
	pack_u32(&w, 2);
	assert_int_equal(w.error, -EMSGSIZE);
	pack_u8(&w, 3); /* sticky */
	assert_int_equal(w.size, 4);
}

static void unpack_refuses(void **state)
{
	static const uint8_t huge_count[] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	static const uint8_t with_nul[] = { 2, 0, 0, 0, 'a', 0 };
	static const uint8_t shorter[] = { 5, 0, 0, 0, 'a' };
	PackReader r;

	unpack_init(&r, huge_count, sizeof(huge_count));
	assert_null(unpack_strings(&r, UINT32_MAX, 10));
	assert_int_equal(r.error, -EBADMSG);

	unpack_init(&r, with_nul, sizeof(with_nul));
	assert_null(unpack_string(&r, 10));
	assert_int_equal(unpack_finish(&r), -EBADMSG);

	unpack_init(&r, shorter, sizeof(shorter));
	assert_null(unpack_string(&r, 10));
	assert_int_equal(unpack_finish(&r), -EBADMSG);

	unpack_init(&r, shorter, sizeof(shorter)); /* above what the caller takes */
	assert_null(unpack_string(&r, 4));
	assert_int_equal(r.error, -EBADMSG);

	unpack_init(&r, shorter, sizeof(shorter)); /* something left over */
	assert_int_equal(unpack_u32(&r), 5);
	assert_int_equal(unpack_finish(&r), -EBADMSG);

	unpack_init(&r, shorter, sizeof(shorter));
	assert_int_equal(unpack_enum(&r, 5), 0);
	assert_int_equal(r.error, -EBADMSG);
}

static LinkMessage link_round_trip(const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	LinkMessage out = LINK_MESSAGE_INIT;
	size_t size;

	assert_int_equal(link_encode(m, &data, &size, NULL), 0);
	assert_int_equal(link_decode(data, size, &out), 0);
	assert_int_equal(out.kind, m->kind);
	/* Every shorter packet and one with a byte more is refused. */
	for (size_t n = 0; n < size; n++) {
		LinkMessage none = LINK_MESSAGE_INIT;

		assert_int_equal(link_decode(data, n, &none), -EBADMSG);
	}
	return out;
}

static void link_kinds_round_trip(void **state)
{
	char *addresses[] = { (char *)"10.0.0.0/24", (char *)"255.255.255.255/32", NULL };
	LinkRow attempt = { { (char *)"1", (char *)"tcp", (char *)"10.0.0.1", (char *)"22", (char *)"ssh",
			      (char *)"private network", (char *)"3" } };
	LinkRow check = { { (char *)"02", (char *)"pass", (char *)"NoNewPrivs", (char *)"set", (char *)"" } };
	const LinkMessage messages[] = {
		{ .kind = LINK_VERIFY, .serial = 15 },
		{ .kind = LINK_VERIFY, .serial = 16, .probes = true },
		{ .kind = LINK_ROWS,
		  .serial = 16,
		  .table = LINK_TABLE_CHECKS,
		  .total = 1,
		  .n_rows = 1,
		  .rows = &check },
		{ .kind = LINK_ROWS, .table = LINK_TABLE_CHECKS },
		{ .kind = LINK_HELLO,
		  .version = LINK_VERSION,
		  .state = SESSION_RUNNING,
		  .leader = 4711,
		  .jailed = true },
		{ .kind = LINK_STATE,
		  .state = SESSION_ENDING,
		  .leader = 1,
		  .exit_status = 0x0f,
		  .denied = 1ull << 40 },
		{ .kind = LINK_STARTED },
		{ .kind = LINK_FAILED, .error = (char *)"org.example", .text = (char *)"cause; fix" },
		{ .kind = LINK_EXITED, .exit_status = 7 << 8 },
		{ .kind = LINK_EXITED, .exit_status = 9, .text = (char *)"cause; fix" },
		{ .kind = LINK_STOP, .serial = 9, .usec = 5 * USEC_PER_SEC },
		{ .kind = LINK_STOP, .serial = 9, .usec = 5 * USEC_PER_SEC, .text = (char *)"by root" },
		{ .kind = LINK_TABLE_GET, .serial = 10, .table = LINK_TABLE_ROUTES, .first = 3 },
		{ .kind = LINK_DONE, .serial = 11, .result = -EPERM },
		{ .kind = LINK_DONE, .serial = 12, .result = -EPERM, .text = (char *)"cause; fix" },
		{ .kind = LINK_REACH, .serial = 12 },
		{ .kind = LINK_REACH, .serial = 12, .addresses = addresses },
		{ .kind = LINK_ALLOW, .serial = 13, .text = (char *)"10.0.0.0/24", .usec = 7 },
		{ .kind = LINK_REVOKE, .serial = 14, .text = (char *)"10.0.0.1" },
		{ .kind = LINK_DENIED,
		  .table = LINK_TABLE_DENIED,
		  .total = 1,
		  .n_rows = 1,
		  .rows = &attempt },
	};

	for (size_t i = 0; i < ELEMENTSOF(messages); i++) {
		_cleanup_(link_message_done) LinkMessage out = link_round_trip(&messages[i]);

		assert_int_equal(out.serial, messages[i].serial);
		assert_int_equal(out.leader, messages[i].leader);
		assert_int_equal(out.jailed, messages[i].jailed);
		assert_int_equal(out.exit_status, messages[i].exit_status);
		assert_int_equal(out.denied, messages[i].denied);
		assert_int_equal(out.result, messages[i].result);
		assert_int_equal(out.first, messages[i].first);
		assert_true(out.usec == messages[i].usec);
		if (messages[i].text)
			assert_string_equal(out.text, messages[i].text);
		if (messages[i].error)
			assert_string_equal(out.error, messages[i].error);
		assert_int_equal(strings_count(out.addresses), strings_count(messages[i].addresses));
		for (size_t n = 0; messages[i].addresses && messages[i].addresses[n]; n++)
			assert_string_equal(out.addresses[n], messages[i].addresses[n]);
		assert_int_equal(out.probes, messages[i].probes);
		assert_int_equal(out.n_rows, messages[i].n_rows);
		for (uint32_t row = 0; row < out.n_rows; row++)
			for (size_t c = 0; c < link_table_columns(messages[i].table); c++)
				assert_string_equal(out.rows[row].columns[c],
						    messages[i].rows[row].columns[c]);
	}
}

static void link_table_goes_in_pages(void **state)
{
	enum { ROWS = 64 };
	_cleanup_free_ LinkRow *rows = calloc(ROWS, sizeof(LinkRow));
	_cleanup_free_ char *text = malloc(4001);
	uint32_t first = 0, pages = 0;

	assert_non_null(rows);
	assert_non_null(text);
	memset(text, 'x', 4000);
	text[4000] = 0;
	for (size_t i = 0; i < ROWS; i++)
		rows[i].columns[0] = text;

	while (first < ROWS) {
		_cleanup_(link_message_done) LinkMessage out = LINK_MESSAGE_INIT;
		_cleanup_free_ uint8_t *data = NULL;
		LinkMessage page = { .kind = LINK_TABLE,
				     .serial = 1,
				     .table = LINK_TABLE_WARNINGS,
				     .first = first,
				     .total = ROWS,
				     .n_rows = ROWS - first,
				     .rows = rows + first };
		uint32_t taken = 0;
		size_t size;

		assert_int_equal(link_encode(&page, &data, &size, &taken), 0);
		assert_true(size <= LINK_PACKET_MAX);
		assert_true(taken > 0);
		assert_int_equal(link_decode(data, size, &out), 0);
		assert_int_equal(out.n_rows, taken);
		assert_string_equal(out.rows[taken - 1].columns[0], text);
		first += taken;
		pages++;
	}
	assert_in_range(pages, 4, 6);
}

/* Of another version as much as can be read, however it goes on. */
static void link_greets_in_another_version(void **state)
{
	const LinkMessage hello = { .kind = LINK_HELLO,
				    .version = LINK_VERSION + 1,
				    .state = SESSION_STOPPED,
				    .leader = 4711,
				    .jailed = true,
				    .denied = 5 };
	_cleanup_free_ uint8_t *data = NULL, *longer = NULL;
	LinkMessage m = LINK_MESSAGE_INIT;
	size_t size = 0;

	assert_int_equal(link_encode(&hello, &data, &size, NULL), 0);
	longer = calloc(1, size + 9);
	assert_non_null(longer);
	memcpy(longer, data, size);
	assert_int_equal(link_decode(longer, size + 9, &m), 0);
	assert_int_equal(m.version, LINK_VERSION + 1);
	assert_true(m.state == SESSION_STOPPED && m.leader == 4711 && m.jailed && m.denied == 5);
	/* With nothing of it that makes sense, it runs. */
	memset(longer + 8, 0xff, size - 8);
	for (size_t n = 8; n < size + 9; n++) {
		assert_int_equal(link_decode(longer, n, &m), 0);
		assert_true(m.kind == LINK_HELLO && m.version == LINK_VERSION + 1);
		assert_true(m.state == SESSION_RUNNING && m.leader == 0 && m.denied == 0);
	}
	assert_int_equal(link_decode(longer, 7, &m), -EBADMSG);
}

/* Whoever negates it must not overflow. */
static void results_are_numbers_of_errors(void **state)
{
	LinkMessage m = { .kind = LINK_DONE, .serial = 1, .result = -4095 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	assert_int_equal(link_encode(&m, &data, &size, NULL), 0);
	assert_int_equal(link_decode(data, size, &m), 0);
	link_message_done(&m);
	/* INT32_MIN, behind kind and serial. */
	memcpy(data + 8, (const uint8_t[]){ 0, 0, 0, 0x80 }, 4);
	assert_int_equal(link_decode(data, size, &m), -EBADMSG);
}

static void link_encoder_makes_nothing_that_the_decoder_refuses(void **state)
{
	_cleanup_free_ char *text = malloc(LINK_TEXT_MAX + 2);
	_cleanup_free_ uint8_t *data = NULL;
	LinkRow row = { 0 };
	size_t size;

	assert_non_null(text);
	memset(text, 'x', LINK_TEXT_MAX + 1);
	text[LINK_TEXT_MAX + 1] = 0;
	row.columns[0] = text;

	const LinkMessage bad[] = {
		{ .kind = LINK_KIND_MAX },
		{ .kind = LINK_STATE, .state = SESSION_STATE_MAX },
		{ .kind = LINK_FAILED, .text = text },
		{ .kind = LINK_DONE, .result = 1 },
		{ .kind = LINK_DONE, .result = INT32_MIN },
		{ .kind = LINK_DONE, .result = -4096 },
		{ .kind = LINK_TABLE_GET, .table = LINK_TABLE_MAX },
		{ .kind = LINK_TABLE, .table = LINK_TABLE_WARNINGS, .total = 1, .n_rows = 1, .rows = &row },
		{ .kind = LINK_TABLE, .table = LINK_TABLE_WARNINGS, .total = 0, .n_rows = 1, .rows = &row },
		{ .kind = LINK_TABLE, .table = LINK_TABLE_WARNINGS, .total = LINK_ROWS_MAX + 1 },
		{ .kind = LINK_DENIED, .table = LINK_TABLE_WARNINGS },
		{ .kind = LINK_DENIED, .table = LINK_TABLE_DENIED, .total = 1 },
		{ .kind = LINK_DENIED, .table = LINK_TABLE_CHECKS },
		{ .kind = LINK_ROWS, .table = LINK_TABLE_DENIED },
		{ .kind = LINK_ROWS, .table = LINK_TABLE_CHECKS, .total = 1 },
		{ .kind = LINK_TABLE_GET, .table = LINK_TABLE_CHECKS },
		{ .kind = LINK_TABLE, .table = LINK_TABLE_CHECKS },
	};
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(link_encode(&bad[i], &data, &size, NULL), -EINVAL);
}

static void lifeline_round_trip_and_refusals(void **state)
{
	const LifelineMessage good[] = {
		{ LIFELINE_WARNING, 0, (char *)"no resolver" },
		{ LIFELINE_STARTED, 0, NULL },
		{ LIFELINE_STOPPED, SIGTSTP, NULL },
		{ LIFELINE_CONTINUED, 0, NULL },
		{ LIFELINE_EXITED, 255 << 8, NULL },
		{ LIFELINE_EXITED, SIGTERM, NULL },
		{ LIFELINE_SIGNAL, SIGUSR1, NULL },
		{ LIFELINE_RESUME, 0, NULL },
		{ LIFELINE_KEY, SIGINT, NULL },
		{ LIFELINE_RESUME_BEHIND, 0, NULL },
	};
	const LifelineMessage bad[] = {
		{ LIFELINE_KIND_MAX, 0, NULL },      { LIFELINE_STARTED, 0, (char *)"text" },
		{ LIFELINE_SIGNAL, 0, NULL },        { LIFELINE_SIGNAL, NSIG, NULL },
		{ LIFELINE_EXITED, -1, NULL },       { LIFELINE_EXITED, 0x137f, NULL },
		{ LIFELINE_RESUME, 1, NULL },        { LIFELINE_KEY, 0, NULL },
		{ LIFELINE_RESUME_BEHIND, 1, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		_cleanup_(lifeline_message_done) LifelineMessage out = { .kind = LIFELINE_KIND_MAX };
		_cleanup_free_ uint8_t *data = NULL;
		size_t size;

		assert_int_equal(lifeline_encode(&good[i], &data, &size), 0);
		assert_int_equal(lifeline_decode(data, size, &out), 0);
		assert_int_equal(out.kind, good[i].kind);
		assert_int_equal(out.number, good[i].number);
		assert_string_equal(out.text, good[i].text ?: "");
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(lifeline_message_done) LifelineMessage out = { .kind = LIFELINE_KIND_MAX };
		_cleanup_(pack_done) PackWriter w = { 0 };
		_cleanup_free_ uint8_t *data = NULL;
		size_t size;

		assert_int_equal(lifeline_encode(&bad[i], &data, &size), -EINVAL);
		pack_init(&w, 1024);
		pack_u32(&w, (uint32_t)bad[i].kind);
		pack_i32(&w, bad[i].number);
		pack_string(&w, bad[i].text);
		assert_int_equal(lifeline_decode(w.data, w.size, &out), -EBADMSG);
	}
}

static void report_round_trip_and_refusals(void **state)
{
	const Report good[] = {
		{ REPORT_EXECUTED, 0, 0 },      { REPORT_FAILED, INIT_STAGE_EXECUTE, ENOENT },
		{ REPORT_STOPPED, 0, SIGSTOP }, { REPORT_EXITED, 0, SIGKILL },
		{ REPORT_SIGNAL, 0, SIGTERM },  { REPORT_HANGUP, 0, 0 },
		{ REPORT_KEY, 0, SIGINT },      { REPORT_RESUME_BEHIND, 0, 0 },
	};
	const Report bad[] = {
		{ REPORT_KIND_MAX, 0, 0 },
		{ REPORT_EXECUTED, INIT_STAGE_FORK, 0 },
		{ REPORT_FAILED, INIT_STAGE_MAX, 1 },
		{ REPORT_FAILED, 0, -1 },
		{ REPORT_STOPPED, 0, 0 },
		{ REPORT_EXITED, 0, 0x137f },
		{ REPORT_SIGNAL, 0, 1 << 20 },
		{ REPORT_KEY, 0, 0 },
		{ REPORT_RESUME_BEHIND, 0, 1 },
	};
	uint8_t data[REPORT_SIZE];
	Report out;

	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		report_encode(&good[i], data);
		assert_int_equal(report_decode(data, sizeof(data), &out), 0);
		assert_memory_equal(&out, &good[i], sizeof(out));
		assert_int_equal(report_decode(data, sizeof(data) - 1, &out), -EBADMSG);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		report_encode(&bad[i], data);
		assert_int_equal(report_decode(data, sizeof(data), &out), -EBADMSG);
	}
}

static void orders_round_trip_and_refusals(void **state)
{
	char *argv[] = { (char *)"claude", (char *)"", (char *)"\xff", NULL };
	char *environment[] = { (char *)"HOME=/home/x", NULL };
	const InitOrders good = { .argv = argv,
				  .environment = environment,
				  .program = (char *)"/bin/x",
				  .cwd = (char *)"/w",
				  .descriptors = 5 | 3u << SLOTS_FIRST_FURTHER,
				  .terminals = 2,
				  .further = { 3, 63 },
				  .file_mode_mask = 022,
				  .background = true,
				  .ignored_signals = 1ULL << 63 | 2,
				  .forbid_namespaces = true };
	static const uint8_t wrong[][3] = {
		{ 63, 3 }, { 3, 3 }, { 2, 3 }, { 3, 0 }, { 0, 3 }, { 3, 63, 64 }
	};
	_cleanup_(init_orders_done) InitOrders out = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	InitOrders bad = good;
	size_t size;

	assert_int_equal(init_orders_encode(&good, &data, &size), 0);
	assert_int_equal(init_orders_decode(data, size, &out), 0);
	assert_string_equal(out.argv[2], "\xff");
	assert_int_equal(out.descriptors, good.descriptors);
	assert_memory_equal(out.further, good.further, sizeof(out.further));
	assert_int_equal(out.terminals, 2);
	assert_int_equal(out.file_mode_mask, 022);
	assert_true(out.background);
	assert_true(out.ignored_signals == (1ULL << 63 | 2));
	assert_true(out.forbid_namespaces);
	for (size_t n = 0; n < size; n++) {
		InitOrders none = { 0 };

		assert_int_equal(init_orders_decode(data, n, &none), -EBADMSG);
	}

	bad.terminals = 1; /* a key cannot be both */
	assert_int_equal(init_orders_encode(&bad, &data, &size), -EINVAL);
	bad = good;
	bad.program = (char *)"relative";
	assert_int_equal(init_orders_encode(&bad, &data, &size), -EINVAL);
	bad = good;
	bad.file_mode_mask = 01000;
	assert_int_equal(init_orders_encode(&bad, &data, &size), -EINVAL);
	for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
		bad = good;
		memcpy(bad.further, wrong[i], sizeof(wrong[i]));
		assert_int_equal(init_orders_encode(&bad, &data, &size), -EINVAL);
	}
	bad = good;
	bad.terminals = 1u << SLOTS_FIRST_FURTHER;
	assert_int_equal(init_orders_encode(&bad, &data, &size), -EINVAL);
}

static void packets_are_bounded_and_carry_no_descriptors(void **state)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { .iov_base = (char *)"hello", .iov_len = 5 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	char buffer[8];
	int pair[2], before, after, passed;

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	assert_int_equal(packet_receive(pair[1], buffer, sizeof(buffer)), -EAGAIN);
	assert_int_equal(packet_send(pair[0], "0123456789", 10), 0);
	assert_int_equal(packet_receive(pair[1], buffer, sizeof(buffer)), -EMSGSIZE);

	before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close_fd(before);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	passed = STDERR_FILENO;
	memcpy(CMSG_DATA(header), &passed, sizeof(passed));
	assert_int_equal(sendmsg(pair[0], &message, 0), 5);
	assert_int_equal(packet_receive(pair[1], buffer, sizeof(buffer)), 5);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before); /* no descriptor was taken in between */
	(void)close_fd(after);

	(void)close_fd(pair[0]);
	assert_int_equal(packet_receive(pair[1], buffer, sizeof(buffer)), 0);
	assert_int_equal(packet_send(pair[1], "x", 1), -EPIPE);
	(void)close_fd(pair[1]);
}

static void last_words_are_heard(void **state)
{
	char buffer[8];
	int pair[2];

	/* The peer closes without having read ours. */
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	assert_int_equal(packet_send(pair[0], "unread", 6), 0);
	assert_int_equal(packet_send(pair[1], "last", 4), 0);
	(void)close_fd(pair[1]);
	assert_int_equal(packet_receive(pair[0], buffer, sizeof(buffer)), 4);
	assert_memory_equal(buffer, "last", 4);
	assert_int_equal(packet_receive(pair[0], buffer, sizeof(buffer)), 0);
	(void)close_fd(pair[0]);
}

/* What is dropped is dropped by these, before any memory is taken. */
static void heads_are_read_alone(void **state)
{
	LinkRow rows[LINK_CHECK_ROWS_MAX] = { 0 };
	LinkMessage m = { .kind = LINK_DENIED, .table = LINK_TABLE_DENIED, .denied = 77, .rows = rows };
	_cleanup_free_ uint8_t *data = NULL;
	LinkHead head;
	size_t size;

	m.total = m.n_rows = LINK_DENIED_ROWS_MAX;
	assert_int_equal(link_encode(&m, &data, &size, NULL), 0);
	assert_int_equal(link_decode_head(data, size, &head), 0);
	assert_int_equal(head.kind, LINK_DENIED);
	assert_int_equal(head.denied, 77);
	assert_int_equal(head.n_rows, LINK_DENIED_ROWS_MAX);
	assert_int_equal(link_decode_head(data, 20, &head), -EBADMSG);
	freep(&data);

	/* No session of ours sends more at once. */
	m.total = m.n_rows = LINK_DENIED_ROWS_MAX + 1;
	assert_int_equal(link_encode(&m, &data, &size, NULL), -EINVAL);

	m = (LinkMessage){ .kind = LINK_ROWS, .table = LINK_TABLE_CHECKS, .serial = 9, .rows = rows };
	m.total = m.n_rows = LINK_CHECK_ROWS_MAX;
	assert_int_equal(link_encode(&m, &data, &size, NULL), 0);
	assert_int_equal(link_decode_head(data, size, &head), 0);
	assert_int_equal(head.serial, 9);
	assert_int_equal(head.n_rows, LINK_CHECK_ROWS_MAX);
	/* One row more than its kind may have: its count and its total stand behind kind, serial, table and first. */
	data[16] = data[20] = 1;
	data[17] = data[21] = 1;
	assert_int_equal(link_decode(data, size, &m), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_are_read_alone),
		cmocka_unit_test(results_are_numbers_of_errors),
		cmocka_unit_test(pack_integers_round_trip),
		cmocka_unit_test(pack_strings_round_trip),
		cmocka_unit_test(pack_limit_is_kept),
		cmocka_unit_test(unpack_refuses),
		cmocka_unit_test(link_kinds_round_trip),
		cmocka_unit_test(link_table_goes_in_pages),
		cmocka_unit_test(link_greets_in_another_version),
		cmocka_unit_test(link_encoder_makes_nothing_that_the_decoder_refuses),
		cmocka_unit_test(lifeline_round_trip_and_refusals),
		cmocka_unit_test(report_round_trip_and_refusals),
		cmocka_unit_test(orders_round_trip_and_refusals),
		cmocka_unit_test(packets_are_bounded_and_carry_no_descriptors),
		cmocka_unit_test(last_words_are_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
