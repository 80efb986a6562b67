/* SPDX-License-Identifier: MIT */
#include "service/session/link-server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "service/session/row-queue.h"

#define LINK_BACKLOG 4
/* How long a connection waits that cannot be taken now: no descriptors, no memory (accept(2)). */
#define ACCEPT_AGAIN_USEC (500 * USEC_PER_MSEC)

typedef struct Packet {
	uint8_t *data;
	size_t size;
} Packet;

typedef enum LastWord {
	WORD_NONE,
	WORD_STARTED,
	WORD_FAILED,
	WORD_EXITED,
} LastWord;

struct LinkServer {
	sd_event *event;
	LinkServerCalls calls;
	void *userdata;

	int listen_fd, fd;
	sd_event_source *listen_source, *source, *again;
	uint8_t *buffer; /* LINK_PACKET_MAX */

	LinkStatus status;
	bool greeting, status_due; /* for this connection */
	bool started_due;          /* for whichever connection comes */
	LastWord last;
	bool last_due;
	char *error, *text;

	Packet answers[LINK_WAITING_MAX];
	size_t n_answers;
	bool denied_due;
	Packet denied; /* made, and not yet taken by the socket */

	RowQueue rows;
	uint32_t verifying; /* the serial that the service of this connection waits for; 0: none */
	bool rows_due;      /* they need not wait for others to go with */
	Packet verified;    /* the answer, which comes behind all rows */
	sd_event_source *row_timer;
};

static void packet_done(Packet *packet)
{
	free(packet->data);
	*packet = (Packet){ 0 };
}

static void link_disconnect(LinkServer *server)
{
	server->source = sd_event_source_disable_unref(server->source);
	server->fd = close_fd(server->fd);
	for (size_t i = 0; i < server->n_answers; i++)
		free(server->answers[i].data);
	server->n_answers = 0;
	/* Who asked is gone. Rows of a session that was made to check are for whichever service comes. */
	if (server->verifying != 0)
		row_queue_done(&server->rows);
	server->verifying = 0;
	packet_done(&server->verified);
}

static int link_send(LinkServer *server, const LinkMessage *m)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;
	int r;

	r = link_encode(m, &data, &size, NULL);
	return r < 0 ? r : packet_send(server->fd, data, size);
}

static int link_send_status(LinkServer *server, LinkKind kind)
{
	return link_send(server, &(LinkMessage){ .kind = kind,
						 .version = LINK_VERSION,
						 .state = server->status.state,
						 .leader = (uint32_t)server->status.leader,
						 .jailed = server->status.jailed,
						 .exit_status = server->status.exit_status,
						 .denied = server->status.denied });
}

static int link_send_last(LinkServer *server)
{
	if (server->last == WORD_EXITED)
		return link_send(server, &(LinkMessage){ .kind = LINK_EXITED,
							 .exit_status = server->status.exit_status,
							 .denied = server->status.denied,
							 .text = server->text });
	return link_send(server,
			 &(LinkMessage){ .kind = LINK_FAILED, .error = server->error, .text = server->text });
}

/* The rows are kept as the packet that the socket did not take. */
static int link_send_denied(LinkServer *server)
{
	_cleanup_(link_message_done) LinkMessage m = { .kind = LINK_DENIED, .table = LINK_TABLE_DENIED };
	int r;

	if (!server->denied.data) {
		r = server->calls.denied(server->userdata, &m.rows, &m.n_rows, &m.denied);
		if (r < 0 || m.n_rows == 0)
			return r == -ENOMEM ? r : 0;
		m.total = m.n_rows;
		server->status.denied = m.denied;
		r = link_encode(&m, &server->denied.data, &server->denied.size, NULL);
		if (r < 0)
			return r;
	}
	r = packet_send(server->fd, server->denied.data, server->denied.size);
	if (r == 0)
		packet_done(&server->denied);
	return r;
}

/* The answer behind the rows, and nothing of a run before all of them. */
static int link_send_rows(LinkServer *server)
{
	int r;

	r = row_queue_flush(&server->rows, server->verifying, server->fd);
	if (r == 0 && server->verified.data) {
		r = packet_send(server->fd, server->verified.data, server->verified.size);
		if (r == 0) {
			packet_done(&server->verified);
			server->verifying = 0;
		}
	}
	return r;
}

/* In this order: greeting, answers, state, denied, the start, rows, the last word. Return: 0 when nothing
 * waits, or a negative errno. */
static int link_flush_some(LinkServer *server)
{
	int r = 0;

	if (server->greeting) {
		r = link_send_status(server, LINK_HELLO);
		if (r < 0)
			return r;
		server->greeting = server->status_due = false;
	}
	while (server->n_answers > 0) {
		r = packet_send(server->fd, server->answers[0].data, server->answers[0].size);
		if (r < 0)
			return r;
		free(server->answers[0].data);
		server->n_answers--;
		memmove(server->answers, server->answers + 1, server->n_answers * sizeof(Packet));
	}
	if (server->status_due) {
		r = link_send_status(server, LINK_STATE);
		if (r < 0)
			return r;
		server->status_due = false;
	}
	if (server->denied_due) {
		r = link_send_denied(server);
		if (r < 0)
			return r;
		server->denied_due = false;
	}
	if (server->started_due) {
		r = link_send(server, &(LinkMessage){ .kind = LINK_STARTED });
		if (r < 0)
			return r;
		server->started_due = false;
	}
	if (server->rows_due || server->last_due) {
		r = link_send_rows(server);
		if (r < 0)
			return r;
		server->rows_due = false;
	}
	if (server->last_due) {
		r = link_send_last(server);
		if (r < 0)
			return r;
		server->last_due = false;
		server->calls.delivered(server->userdata);
	}
	return 0;
}

static void link_flush(LinkServer *server)
{
	uint32_t events;
	int r;

	if (server->fd < 0)
		return;
	r = link_flush_some(server);
	if (r < 0 && r != -EAGAIN) {
		link_disconnect(server);
		return;
	}
	events = server->n_answers < LINK_WAITING_MAX ? EPOLLIN : 0;
	if (r == -EAGAIN)
		events |= EPOLLOUT;
	(void)sd_event_source_set_io_events(server->source, events);
}

/* Encode m as the answer; there is room, since nothing is read without. */
static int link_answer(LinkServer *server, const LinkMessage *m)
{
	Packet *packet = &server->answers[server->n_answers];
	int r;

	r = link_encode(m, &packet->data, &packet->size, NULL);
	if (r == 0)
		server->n_answers++;
	return r;
}

static int link_answer_table(LinkServer *server, const LinkMessage *question)
{
	_cleanup_(link_message_done) LinkMessage rows = LINK_MESSAGE_INIT;
	LinkMessage page;
	int r;

	r = server->calls.table(server->userdata, question->table, &rows.rows, &rows.n_rows);
	if (r == 0 && question->first > rows.n_rows)
		r = -ERANGE;
	if (r == 0 && rows.n_rows > LINK_ROWS_MAX)
		r = -E2BIG;
	if (r < 0)
		return link_answer(
			server, &(LinkMessage){ .kind = LINK_DONE, .serial = question->serial, .result = r });
	page = (LinkMessage){ .kind = LINK_TABLE,
			      .serial = question->serial,
			      .table = question->table,
			      .first = question->first,
			      .total = rows.n_rows,
			      .n_rows = rows.n_rows - question->first,
			      .rows = rows.rows ? rows.rows + question->first : NULL };
	return link_answer(server, &page);
}

static int link_answer_reach(LinkServer *server, const LinkMessage *question)
{
	_cleanup_free_ char *problem = NULL, *text = NULL;
	int r;

	r = server->calls.reach(server->userdata, question, &problem);
	text = problem ? link_text(problem) : NULL;
	return link_answer(
		server,
		&(LinkMessage){ .kind = LINK_DONE, .serial = question->serial, .result = r, .text = text });
}

static int link_begin_verify(LinkServer *server, const LinkMessage *question)
{
	_cleanup_free_ char *problem = NULL, *text = NULL;
	int r;

	if (!server->calls.verify || server->verifying != 0 || question->serial == 0)
		r = -EBUSY;
	else {
		server->verifying = question->serial;
		r = server->calls.verify(server->userdata, question->serial, question->probes, &problem);
		if (r == 0)
			return 0;
		server->verifying = 0;
	}
	text = problem ? link_text(problem) : NULL;
	return link_answer(
		server,
		&(LinkMessage){ .kind = LINK_DONE, .serial = question->serial, .result = r, .text = text });
}

static int link_handle(LinkServer *server, const LinkMessage *m)
{
	switch (m->kind) {
	case LINK_REACH:
	case LINK_ALLOW:
	case LINK_REVOKE:
		return link_answer_reach(server, m);
	case LINK_STOP:
		server->calls.stop(server->userdata, m->usec, m->text ?: "");
		return link_answer(server, &(LinkMessage){ .kind = LINK_DONE, .serial = m->serial });
	case LINK_TABLE_GET:
		return link_answer_table(server, m);
	case LINK_VERIFY:
		return link_begin_verify(server, m);
	case LINK_HELLO:
	case LINK_STATE:
	case LINK_STARTED:
	case LINK_FAILED:
	case LINK_EXITED:
	case LINK_TABLE:
	case LINK_DONE:
	case LINK_DENIED:
	case LINK_ROWS:
	case LINK_KIND_MAX:
	default:
		return -EBADMSG;
	}
}

static int on_packet(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_(link_message_done) LinkMessage m = LINK_MESSAGE_INIT;
	LinkServer *server = userdata;
	ssize_t n;
	int r;

	if (server->n_answers < LINK_WAITING_MAX && revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		n = packet_receive(fd, server->buffer, LINK_PACKET_MAX);
		r = n > 0 ? link_decode(server->buffer, (size_t)n, &m) : n == 0 ? -ECONNRESET : (int)n;
		if (r == 0)
			r = link_handle(server, &m);
		if (r < 0 && r != -EAGAIN && r != -EINTR) {
			link_disconnect(server);
			return 0;
		}
	}
	link_flush(server);
	return 0;
}

static int on_accept_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	LinkServer *server = userdata;

	(void)sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
	return 0;
}

/* What is not taken stays ready: asked for at once again, it would keep the loop turning. */
static void accept_later(LinkServer *server, int error)
{
	if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
		return;
	if (sd_event_source_set_time_relative(server->again, ACCEPT_AGAIN_USEC) >= 0 &&
	    sd_event_source_set_enabled(server->again, SD_EVENT_ONESHOT) >= 0)
		(void)sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata)
{
	_cleanup_close_ int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	LinkServer *server = userdata;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0) {
		accept_later(server, errno);
		return 0;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof(peer) ||
	    peer.uid != 0)
		return 0;
	/* A newer service replaces an older one, whose end nobody may have told us. */
	link_disconnect(server);
	if (sd_event_add_io(server->event, &server->source, fd, EPOLLIN, on_packet, server) < 0)
		return 0;
	server->fd = TAKE_FD(fd);
	server->greeting = true;
	link_flush(server);
	return 0;
}

static int on_row_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	LinkServer *server = userdata;

	if (row_queue_is_empty(&server->rows))
		return 0;
	server->rows_due = true;
	link_flush(server);
	return 0;
}

void link_server_row(LinkServer *server, uint32_t serial, const Row *row)
{
	int enabled = SD_EVENT_OFF;

	if (serial != server->verifying || row_queue_add(&server->rows, row) < 0)
		return;
	(void)sd_event_source_get_enabled(server->row_timer, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	server->rows_due = true;
	link_flush(server);
	(void)sd_event_source_set_time_relative(server->row_timer, ROW_QUEUE_USEC);
	(void)sd_event_source_set_enabled(server->row_timer, SD_EVENT_ONESHOT);
}

void link_server_verified(LinkServer *server, uint32_t serial, int result, const char *text)
{
	_cleanup_free_ char *copy = text ? link_text(text) : NULL;

	if (serial == 0 || serial != server->verifying)
		return;
	if (link_encode(&(LinkMessage){ .kind = LINK_DONE, .serial = serial, .result = result, .text = copy },
			&server->verified.data, &server->verified.size, NULL) < 0) {
		/* Without an answer there is one: the link ends. */
		link_disconnect(server);
		return;
	}
	server->rows_due = true;
	link_flush(server);
}

int link_server_new(sd_event *event, int listen_fd, const LinkServerCalls *calls, void *userdata,
		    LinkServer **ret)
{
	_cleanup_(link_server_freep) LinkServer *server = NULL;
	int r;

	server = malloc(sizeof(*server));
	if (!server)
		return -ENOMEM;
	*server = (LinkServer){ .event = sd_event_ref(event),
				.calls = *calls,
				.userdata = userdata,
				.listen_fd = FD_NONE,
				.fd = FD_NONE };
	server->buffer = malloc(LINK_PACKET_MAX);
	if (!server->buffer)
		return -ENOMEM;
	if (listen(listen_fd, LINK_BACKLOG) < 0)
		return -errno;
	r = sd_event_add_io(event, &server->listen_source, listen_fd, EPOLLIN, on_connection, server);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &server->again, CLOCK_MONOTONIC, ACCEPT_AGAIN_USEC, 0,
					       on_accept_again, server);
	if (r >= 0)
		r = sd_event_source_set_enabled(server->again, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &server->row_timer, CLOCK_MONOTONIC, 0, 1, on_row_time,
					       server);
	if (r >= 0)
		r = sd_event_source_set_enabled(server->row_timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	server->listen_fd = listen_fd;
	*ret = TAKE_PTR(server);
	return 0;
}

LinkServer *link_server_free(LinkServer *server)
{
	if (!server)
		return NULL;
	link_disconnect(server);
	(void)sd_event_source_disable_unref(server->listen_source);
	(void)sd_event_source_disable_unref(server->again);
	(void)sd_event_source_disable_unref(server->row_timer);
	(void)close_fd(server->listen_fd);
	row_queue_done(&server->rows);
	packet_done(&server->denied);
	free(server->buffer);
	free(server->error);
	free(server->text);
	(void)sd_event_unref(server->event);
	free(server);
	return NULL;
}

void link_server_set_status(LinkServer *server, const LinkStatus *status)
{
	server->status = *status;
	server->status_due = true;
	link_flush(server);
}

void link_server_denied(LinkServer *server)
{
	server->denied_due = true;
	link_flush(server);
}

void link_server_started(LinkServer *server)
{
	server->last = WORD_STARTED;
	server->started_due = true;
	link_flush(server);
}

int link_server_failed(LinkServer *server, const char *error, const char *text)
{
	server->error = link_text(error);
	server->text = link_text(text);
	if (!server->error || !server->text)
		return -ENOMEM;
	server->last = WORD_FAILED;
	server->started_due = false;
	server->last_due = true;
	link_flush(server);
	return 0;
}

int link_server_exited(LinkServer *server, int status, const char *why, uint64_t denied)
{
	server->text = why ? link_text(why) : NULL;
	if (why && !server->text)
		return -ENOMEM;
	server->status.exit_status = status;
	server->status.denied = denied;
	server->last = WORD_EXITED;
	server->last_due = true;
	link_flush(server);
	return 0;
}

char *link_text(const char *text)
{
	return strndup(text, LINK_TEXT_MAX);
}
