/* SPDX-License-Identifier: MIT */
#include "service/session/lifeline.h"

#include <signal.h>
#include <sys/epoll.h>

#include "service/link/lifeline.h"
#include "service/link/link.h"

#define LIFELINE_QUEUE_MAX 256u
#define LIFELINE_TEXT_MAX (LIFELINE_PACKET_MAX - 64u)

typedef struct Packet {
	uint8_t *data;
	size_t size;
} Packet;

struct Lifeline {
	LifelineCalls calls;
	void *userdata;
	int fd;
	sd_event_source *source;
	Packet queue[LIFELINE_QUEUE_MAX];
	size_t n_queue;
	uint8_t buffer[LIFELINE_PACKET_MAX];
};

bool lifeline_signal_is_allowed(int number)
{
	switch (number) {
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGUSR1:
	case SIGUSR2:
	case SIGTERM:
	case SIGTSTP:
	case SIGCONT:
	case SIGWINCH:
		return true;
	default:
		return false;
	}
}

static void lifeline_close(Lifeline *lifeline)
{
	lifeline->source = sd_event_source_disable_unref(lifeline->source);
	lifeline->fd = close_fd(lifeline->fd);
	for (size_t i = 0; i < lifeline->n_queue; i++)
		free(lifeline->queue[i].data);
	lifeline->n_queue = 0;
}

/* Close, and say so. The object stays. */
static void lifeline_lose(Lifeline *lifeline)
{
	if (lifeline->fd < 0)
		return;
	lifeline_close(lifeline);
	lifeline->calls.gone(lifeline->userdata);
}

static void lifeline_flush(Lifeline *lifeline)
{
	size_t sent = 0;
	int r = 0;

	if (lifeline->fd < 0)
		return;
	while (sent < lifeline->n_queue) {
		r = packet_send(lifeline->fd, lifeline->queue[sent].data, lifeline->queue[sent].size);
		if (r < 0)
			break;
		free(lifeline->queue[sent++].data);
	}
	lifeline->n_queue -= sent;
	memmove(lifeline->queue, lifeline->queue + sent, lifeline->n_queue * sizeof(Packet));
	/* A closed end is seen by the reading side, which also takes what launch said before it closed. */
	(void)sd_event_source_set_io_events(lifeline->source, r == -EAGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void lifeline_queue(Lifeline *lifeline, const LifelineMessage *m)
{
	/* The last place is the exit's. */
	size_t room = m->kind == LIFELINE_EXITED ? LIFELINE_QUEUE_MAX : LIFELINE_QUEUE_MAX - 1;
	Packet packet;

	if (lifeline->fd < 0 || lifeline->n_queue >= room ||
	    lifeline_encode(m, &packet.data, &packet.size) < 0)
		return;
	lifeline->queue[lifeline->n_queue++] = packet;
	lifeline_flush(lifeline);
}

void lifeline_warning(Lifeline *lifeline, const char *text)
{
	_cleanup_free_ char *line = strndup(text, LIFELINE_TEXT_MAX);

	if (line)
		lifeline_queue(lifeline, &(LifelineMessage){ .kind = LIFELINE_WARNING, .text = line });
}

void lifeline_started(Lifeline *lifeline)
{
	lifeline_queue(lifeline, &(LifelineMessage){ .kind = LIFELINE_STARTED });
}

void lifeline_stopped(Lifeline *lifeline, int signal)
{
	lifeline_queue(lifeline, &(LifelineMessage){ .kind = LIFELINE_STOPPED, .number = signal });
}

void lifeline_continued(Lifeline *lifeline)
{
	lifeline_queue(lifeline, &(LifelineMessage){ .kind = LIFELINE_CONTINUED });
}

void lifeline_exited(Lifeline *lifeline, int status)
{
	lifeline_queue(lifeline, &(LifelineMessage){ .kind = LIFELINE_EXITED, .number = status });
}

bool lifeline_is_flushed(const Lifeline *lifeline)
{
	return lifeline->n_queue == 0;
}

static int on_packet(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_(lifeline_message_done) LifelineMessage m = { .kind = LIFELINE_KIND_MAX };
	Lifeline *lifeline = userdata;
	ssize_t n;
	int r;

	if (revents & EPOLLOUT)
		lifeline_flush(lifeline);
	n = packet_receive(fd, lifeline->buffer, sizeof(lifeline->buffer));
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	r = n > 0 ? lifeline_decode(lifeline->buffer, (size_t)n, &m) : -ECONNRESET;
	if (r == 0 && m.kind == LIFELINE_SIGNAL && lifeline_signal_is_allowed(m.number))
		lifeline->calls.signal(lifeline->userdata, m.number);
	else if (r == 0 && m.kind == LIFELINE_KEY && lifeline_signal_is_allowed(m.number))
		lifeline->calls.key(lifeline->userdata, m.number);
	else if (r == 0 && (m.kind == LIFELINE_RESUME || m.kind == LIFELINE_RESUME_BEHIND))
		lifeline->calls.resume(lifeline->userdata, m.kind == LIFELINE_RESUME_BEHIND);
	else
		lifeline_lose(lifeline);
	return 0;
}

int lifeline_new(sd_event *event, int fd, const LifelineCalls *calls, void *userdata, Lifeline **ret)
{
	_cleanup_(lifeline_freep) Lifeline *lifeline = NULL;
	int r;

	lifeline = malloc(sizeof(*lifeline));
	if (!lifeline)
		return -ENOMEM;
	*lifeline = (Lifeline){ .calls = *calls, .userdata = userdata, .fd = FD_NONE };
	r = sd_event_add_io(event, &lifeline->source, fd, EPOLLIN, on_packet, lifeline);
	if (r < 0)
		return r;
	lifeline->fd = fd;
	*ret = TAKE_PTR(lifeline);
	return 0;
}

Lifeline *lifeline_free(Lifeline *lifeline)
{
	if (!lifeline)
		return NULL;
	lifeline_close(lifeline);
	free(lifeline);
	return NULL;
}
