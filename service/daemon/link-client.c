/* SPDX-License-Identifier: MIT */
#include "service/daemon/link-client.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define DRAIN_PACKETS_MAX 64u
/* Of a table that changes between its pages. */
#define TABLE_RESTARTS_MAX 3u

typedef struct Question {
	LinkClient *link;
	uint32_t serial; /* 0: a free place */
	LinkTable table; /* LINK_TABLE_MAX: not a table that was asked for */
	uint32_t max_rows, total;
	unsigned restarts;
	size_t bytes;
	LinkCells cells;
	LinkTableFunction table_function;
	LinkDoneFunction done_function;
	void *userdata;
	sd_event_source *timer;
	uint8_t *unsent; /* waits for its greeting */
	size_t unsent_size;
} Question;

struct LinkClient {
	unsigned n_ref;
	bool over;             /* closed() was called, or the owner has freed it */
	bool greeted, foreign; /* it has said which version it speaks; another one than we */
	int fd;
	uid_t uid;
	Turns *turns;
	Turn turn; /* packets wait for the budget of uid */
	sd_event *event;
	sd_event_source *source;
	const LinkClientEvents *events;
	void *userdata;
	uint32_t last_serial;
	Question questions[LINK_WAITING_MAX];
	Question verify; /* has a place of its own: it takes longer than the others */
	uint64_t verify_until_usec, verify_silent_usec; /* until when in all, and without a row */
	SecondCount denied;                             /* rows */
};

static LinkClient *link_ref(LinkClient *link)
{
	link->n_ref++;
	return link;
}

static LinkClient *link_unref(LinkClient *link)
{
	if (!link || --link->n_ref > 0)
		return NULL;
	sd_event_source_disable_unref(link->source);
	sd_event_unref(link->event);
	close_fd(link->fd);
	free(link);
	return NULL;
}

DEFINE_CLEANUP(LinkClient, link_unref)

/* Free the question's place first: its function may ask the next one. */
static void question_answer(Question *question, int result, const char *problem)
{
	_cleanup_(link_cells_done) LinkCells cells = question->cells;
	Question answered = *question;

	sd_event_source_disable_unref(question->timer);
	free(question->unsent);
	*question = (Question){ 0 };
	if (answered.table_function)
		answered.table_function(answered.userdata, result, &cells);
	else if (answered.done_function)
		answered.done_function(answered.userdata, result, problem);
}

static void link_end(LinkClient *link, int question_result)
{
	link->over = true;
	turns_leave(link->turns, &link->turn);
	link->source = sd_event_source_disable_unref(link->source);
	link->fd = close_fd(link->fd);
	for (size_t i = 0; i < LINK_WAITING_MAX; i++)
		if (link->questions[i].serial != 0)
			question_answer(&link->questions[i], question_result, NULL);
	if (link->verify.serial != 0)
		question_answer(&link->verify, question_result, NULL);
}

static void link_close(LinkClient *link, int error)
{
	if (link->over)
		return;
	link_end(link, error < 0 ? error : -ECONNRESET);
	link->events->closed(link->userdata, error);
}

LinkClient *link_client_free(LinkClient *link)
{
	if (!link)
		return NULL;
	link_end(link, -ECANCELED);
	return link_unref(link);
}

static Question *question_find(LinkClient *link, uint32_t serial)
{
	for (size_t i = 0; serial != 0 && i < LINK_WAITING_MAX; i++)
		if (link->questions[i].serial == serial)
			return &link->questions[i];
	return serial != 0 && link->verify.serial == serial ? &link->verify : NULL;
}

/* May it be told that? */
static int link_check(const LinkClient *link, LinkKind kind)
{
	if (link->over)
		return -ENOTCONN;
	return link->foreign && kind != LINK_STOP ? -EPROTONOSUPPORT : 0;
}

/* Before the greeting nobody knows whether it would be understood; but for STOP. */
static int question_send(Question *question, const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	int r;

	r = link_encode(m, &data, &size, NULL);
	if (r < 0)
		return r;
	if (question->link->greeted || m->kind == LINK_STOP)
		return packet_send(question->link->fd, data, size);
	free(question->unsent);
	question->unsent = TAKE_PTR(data);
	question->unsent_size = size;
	return 0;
}

static void question_greeted(Question *question)
{
	_cleanup_free_ uint8_t *data = TAKE_PTR(question->unsent);
	int r;

	if (!data)
		return;
	r = question->link->foreign ? -EPROTONOSUPPORT
				    : packet_send(question->link->fd, data, question->unsent_size);
	if (r < 0)
		question_answer(question, r, NULL);
}

/* The first greeting counts. */
static int on_hello(LinkClient *link, const LinkMessage *m)
{
	if (link->greeted)
		return (m->version != LINK_VERSION) == link->foreign ? 0 : -EBADMSG;
	link->greeted = true;
	link->foreign = m->version != LINK_VERSION;
	link->events->message(link->userdata, m);
	for (size_t i = 0; !link->over && i < LINK_WAITING_MAX; i++)
		question_greeted(&link->questions[i]);
	if (!link->over)
		question_greeted(&link->verify);
	return 0;
}

static uint32_t next_serial(LinkClient *link)
{
	if (++link->last_serial == 0)
		link->last_serial = 1;
	return link->last_serial;
}

static int ask_page(Question *question)
{
	LinkMessage m = LINK_MESSAGE_INIT;

	m.kind = LINK_TABLE_GET;
	m.serial = question->serial;
	m.table = question->table;
	m.first = (uint32_t)question->cells.n_rows;
	return question_send(question, &m);
}

/*
 * Append a page. Return: 1 when the table is whole, 0 when there is more; -ESTALE when it has become another
 * one between two pages; negative for a peer that lies.
 */
static int take_page(Question *question, LinkMessage *m)
{
	LinkCells *cells = &question->cells;

	if (m->table != question->table || m->first != cells->n_rows || m->total > LINK_ROWS_MAX)
		return -EBADMSG;
	if (cells->n_rows > 0 && m->total != question->total)
		return -ESTALE;
	if (m->n_rows > m->total - m->first || (m->n_rows == 0 && m->total > m->first))
		return -EBADMSG;
	if (m->total > question->max_rows)
		return -E2BIG;
	question->total = m->total;
	if (m->n_rows == 0)
		return 1;

	for (uint32_t i = 0; i < m->n_rows; i++)
		for (size_t c = 0; c < cells->n_columns; c++)
			question->bytes += strlen(m->rows[i].columns[c] ?: "") + 1;
	if (question->bytes > LINK_CLIENT_TABLE_BYTES_MAX)
		return -E2BIG;

	if (link_cells_append(cells, m) < 0)
		return -ENOMEM;
	return cells->n_rows == m->total;
}

static int on_table(LinkClient *link, LinkMessage *m)
{
	Question *question = question_find(link, m->serial);
	int r;

	/* An answer that comes too late is no crime; there is a new question at most. */
	if (!question)
		return 0;
	if (question->table == LINK_TABLE_MAX)
		return -EBADMSG;
	r = take_page(question, m);
	if (r == -EBADMSG)
		return r;
	if (r == -ESTALE && question->restarts++ < TABLE_RESTARTS_MAX) {
		size_t n_columns = question->cells.n_columns;

		link_cells_done(&question->cells);
		question->cells.n_columns = n_columns;
		question->bytes = 0;
		r = 0;
	}
	if (r == 0)
		r = ask_page(question) < 0 ? -EAGAIN : 0;
	if (r != 0)
		question_answer(question, r < 0 ? r : 0, NULL);
	return 0;
}

static int on_done(LinkClient *link, const LinkMessage *m)
{
	Question *question = question_find(link, m->serial);

	if (!question)
		return 0;
	if (question->table != LINK_TABLE_MAX && m->result >= 0)
		return -EBADMSG;
	question_answer(question, m->result, m->text && m->text[0] ? m->text : NULL);
	return 0;
}

/* Each row gives it time for the next one. */
/* It has said something of the check, or is asked for it. */
static void verify_heard(LinkClient *link, uint64_t now)
{
	link->verify_silent_usec = MIN_OF(now + LINK_CLIENT_SILENCE_USEC, link->verify_until_usec);
	(void)sd_event_source_set_time(link->verify.timer,
				       MIN_OF(now + LINK_CLIENT_LOOK_USEC, link->verify_silent_usec));
}

static int on_rows(LinkClient *link, const LinkMessage *m)
{
	uint64_t now = 0;

	if (m->serial != 0) {
		if (link->verify.serial != m->serial)
			return 0;
		(void)sd_event_now(link->event, CLOCK_MONOTONIC, &now);
		verify_heard(link, now);
	}
	link->events->message(link->userdata, m);
	return 0;
}

static int link_dispatch(LinkClient *link, LinkMessage *m)
{
	switch (m->kind) {
	case LINK_HELLO:
		return on_hello(link, m);
	case LINK_STATE:
	case LINK_STARTED:
	case LINK_FAILED:
	case LINK_EXITED:
	case LINK_DENIED:
		link->events->message(link->userdata, m);
		return 0;
	case LINK_ROWS:
		return on_rows(link, m);
	case LINK_TABLE:
		return on_table(link, m);
	case LINK_DONE:
		return on_done(link, m);
	case LINK_STOP:
	case LINK_TABLE_GET:
	case LINK_REACH:
	case LINK_ALLOW:
	case LINK_REVOKE:
	case LINK_VERIFY:
	case LINK_KIND_MAX:
		break;
	}
	return -EBADMSG;
}

/* The same in every version (link.h); of those that a session sends. */
static bool kind_is_common(LinkKind kind)
{
	return kind == LINK_HELLO || kind == LINK_DONE || kind == LINK_EXITED;
}

/*
 * What is not decoded: answers to nothing, tables that are too long for who asked, rows above the limit. Return:
 * whether it was dropped.
 */
static bool link_drop(LinkClient *link, const LinkHead *head)
{
	Question *question;
	uint64_t now = 0;

	switch (head->kind) {
	case LINK_TABLE:
	case LINK_DONE:
		question = question_find(link, head->serial);
		if (!question || question->table == LINK_TABLE_MAX || head->total <= question->max_rows)
			return !question;
		question_answer(question, -E2BIG, NULL);
		return true;
	case LINK_ROWS:
		return head->serial != 0 && link->verify.serial != head->serial;
	case LINK_DENIED:
		(void)sd_event_now(link->event, CLOCK_MONOTONIC, &now);
		if (second_count(&link->denied, now, head->n_rows, LINK_CLIENT_DENIED_MAX))
			return false;
		link->events->message(link->userdata,
				      &(LinkMessage){ .kind = LINK_DENIED, .denied = head->denied });
		return true;
	default:
		return false;
	}
}

static int link_take(LinkClient *link, const uint8_t *data, size_t size)
{
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	LinkHead head;
	int r;

	r = link_decode_head(data, size, &head);
	if (r >= 0 && link->greeted && !link->foreign && link_drop(link, &head))
		return 0;
	r = link_decode(data, size, &m);
	/* What it means by anything else is not known. */
	if (link->foreign && (r == -EBADMSG || (r >= 0 && !kind_is_common(m.kind))))
		return 0;
	return r < 0 ? r : link_dispatch(link, &m);
}

/* Return: 1 after a packet, 0 when nothing waits; the link may be over afterwards. */
static int link_read(LinkClient *link)
{
	/* One at a time, and nothing of it is kept. */
	static uint8_t buffer[LINK_PACKET_MAX];
	ssize_t n;
	int r;

	n = packet_receive(link->fd, buffer, sizeof(buffer));
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		link_close(link, n == -EMSGSIZE ? -EBADMSG : (int)n);
		return 0;
	}
	r = link_take(link, buffer, (size_t)n);
	if (r < 0)
		link_close(link, r);
	return 1;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_(link_unrefp) LinkClient *link = link_ref(userdata);

	if (turns_allow(link->turns, link->uid) || turns_wait(link->turns, link->uid, &link->turn) < 0) {
		turns_begin(link->turns, link->uid);
		(void)link_read(link);
		return 0;
	}
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* The turn of its user: one packet. */
static void link_step(void *userdata)
{
	_cleanup_(link_unrefp) LinkClient *link = link_ref(userdata);

	if (link_read(link) > 0 || link->over)
		return;
	turns_leave(link->turns, &link->turn);
	(void)sd_event_source_set_enabled(link->source, SD_EVENT_ON);
}

void link_client_drain(LinkClient *link)
{
	_cleanup_(link_unrefp) LinkClient *kept = link_ref(link);

	for (unsigned i = 0; i < DRAIN_PACKETS_MAX && !kept->over; i++)
		if (link_read(kept) == 0)
			break;
}

/* Return: whether there is more time for the answer to a check. */
static bool verify_waits_on(LinkClient *link)
{
	uint64_t now = 0;

	(void)sd_event_now(link->event, CLOCK_MONOTONIC, &now);
	if (now >= link->verify_silent_usec || link_peer_is_stopped(link->fd))
		return false;
	return sd_event_source_set_time(link->verify.timer,
					MIN_OF(now + LINK_CLIENT_LOOK_USEC, link->verify_silent_usec)) >= 0 &&
	       sd_event_source_set_enabled(link->verify.timer, SD_EVENT_ONESHOT) >= 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	Question *question = userdata;
	_cleanup_(link_unrefp) LinkClient *link = link_ref(question->link);
	const uint32_t serial = question->serial;

	/* It may have answered in time, and its user's budget keeps us from reading it. */
	turns_begin(link->turns, link->uid);
	link_client_drain(link);
	if (question->serial != serial || (question == &link->verify && verify_waits_on(link)))
		return 0;
	question_answer(question, -ETIMEDOUT, NULL);
	return 0;
}

static int question_begin(LinkClient *link, Question *question, uint64_t usec)
{
	int r;

	*question = (Question){ .link = link, .serial = next_serial(link), .table = LINK_TABLE_MAX };
	r = sd_event_add_time_relative(link->event, &question->timer, CLOCK_MONOTONIC, usec,
				       20 * USEC_PER_MSEC, on_timeout, question);
	if (r < 0)
		*question = (Question){ 0 };
	return r < 0 ? r : 0;
}

static int question_open(LinkClient *link, Question **ret)
{
	Question *question = NULL;
	int r;

	for (size_t i = 0; i < LINK_WAITING_MAX && !question; i++)
		if (link->questions[i].serial == 0)
			question = &link->questions[i];
	if (!question)
		return -EBUSY;
	r = question_begin(link, question, LINK_ANSWER_USEC);
	if (r == 0)
		*ret = question;
	return r;
}

static int question_sent(Question *question, int r)
{
	if (r < 0) {
		sd_event_source_disable_unref(question->timer);
		free(question->unsent);
		*question = (Question){ 0 };
	}
	return r < 0 ? r : 0;
}

int link_client_get_table(LinkClient *link, LinkTable table, uint32_t max_rows, LinkTableFunction function,
			  void *userdata)
{
	Question *question;
	int r;

	r = link_check(link, LINK_TABLE_GET);
	if (r == 0)
		r = question_open(link, &question);
	if (r < 0)
		return r;
	question->table = table;
	question->max_rows = max_rows;
	question->cells.n_columns = link_table_columns(table);
	question->table_function = function;
	question->userdata = userdata;
	return question_sent(question, ask_page(question));
}

/* m is complete but for its serial. */
static int ask(LinkClient *link, LinkMessage *m, LinkDoneFunction function, void *userdata)
{
	Question *question;
	int r;

	r = link_check(link, m->kind);
	if (r == 0)
		r = question_open(link, &question);
	if (r < 0)
		return r;
	question->done_function = function;
	question->userdata = userdata;
	m->serial = question->serial;
	return question_sent(question, question_send(question, m));
}

int link_client_stop(LinkClient *link, uint64_t grace_usec, const char *why, LinkDoneFunction function,
		     void *userdata)
{
	return ask(link, &(LinkMessage){ .kind = LINK_STOP, .usec = grace_usec, .text = (char *)why },
		   function, userdata);
}

int link_client_tell(LinkClient *link, const LinkMessage *m, LinkDoneFunction function, void *userdata)
{
	LinkMessage question = *m; /* only read */

	return ask(link, &question, function, userdata);
}

int link_client_verify(LinkClient *link, bool probes, LinkDoneFunction function, void *userdata)
{
	Question *question = &link->verify;
	uint64_t now = 0;
	int r;

	r = link_check(link, LINK_VERIFY);
	if (r < 0)
		return r;
	if (question->serial != 0)
		return -EBUSY;
	r = question_begin(link, question, LINK_CLIENT_LOOK_USEC);
	if (r < 0)
		return r;
	(void)sd_event_now(link->event, CLOCK_MONOTONIC, &now);
	link->verify_until_usec = now + LINK_CLIENT_VERIFY_USEC;
	verify_heard(link, now);
	question->done_function = function;
	question->userdata = userdata;
	return question_sent(question, question_send(question, &(LinkMessage){ .kind = LINK_VERIFY,
									       .serial = question->serial,
									       .probes = probes }));
}

int link_client_new(sd_event *event, Turns *turns, uid_t uid, int fd, const LinkClientEvents *events,
		    void *userdata, LinkClient **ret)
{
	_cleanup_(link_unrefp) LinkClient *link = calloc(1, sizeof(*link));
	int r;

	if (!link) {
		close_fd(fd);
		return -ENOMEM;
	}
	link->n_ref = 1;
	link->fd = fd;
	link->uid = uid;
	link->turns = turns;
	link->turn = (Turn){ .step = link_step, .userdata = link };
	link->event = sd_event_ref(event);
	link->events = events;
	link->userdata = userdata;
	r = sd_event_add_io(event, &link->source, fd, EPOLLIN, on_readable, link);
	if (r < 0)
		return r;
	r = sd_event_source_set_priority(link->source, PRIORITY_SERVED);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(link);
	return 0;
}
