/* SPDX-License-Identifier: MIT */
#include "shim/proxy.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shim/signals.h"
#include "shim/typed-ahead.h"

/* Before signals and keys are looked at again: a flood of output must not outrun Ctrl-C. */
#define READS_PER_TURN 16
#define SHORT_READ 512
/* How long the PTY may be silent at the end without saying so: somebody else still holds the agent's side. */
#define QUIET_USEC (250 * USEC_PER_MSEC)
/*
 * How often to look whether a terminal that others read has become ours to read: while keys wait, and always
 * when the terminal is shared with the programs of a pipeline.
 */
#define SHARED_LOOK_USEC (100 * USEC_PER_MSEC)
/* After output of an agent that shares the terminal: 5, 10, 20, 40 and 80 ms. */
#define SETTLE_LOOK_USEC (5 * USEC_PER_MSEC)
#define SETTLE_LOOKS 5u
/* How long a stop that the terminal caused may be under way when the terminal has become ours. */
#define FORWARD_USEC (1 * USEC_PER_SEC)
#define SUSPEND_WRITE_MSEC 1000
#define SUSPEND_SETTLE_MSEC 5
#define SUSPEND_READS 64
/* What a terminal that may block is given at once. */
#define BLOCKING_BYTES 512u

typedef struct Buffer {
	char *bytes;
	size_t begin, end, size;
} Buffer;

struct Proxy {
	Terminal *terminal;
	int master_fd;
	ProxyEvents events;
	sd_event *event;
	sd_event_source *master, *in, *out, *look, *quiet;
	Modes modes;
	Buffer output, input;
	char undo[MODES_TEXT_MAX]; /* what was written to give the modes back, and not taken back since */
	size_t undo_size;
	bool draining, drained;
	bool behind;           /* the terminal was another job's when we looked last */
	uint64_t forward_usec; /* CLOCK_MONOTONIC, when it was found to be ours again */
	unsigned looks;        /* how often still to look for changed modes of the PTY */
	bool held;             /* a return that waits for what follows */
	bool ended;            /* the PTY's other side is closed by all */
	bool gone;
};

static int buffer_init(Buffer *buffer, size_t size)
{
	*buffer = (Buffer){ .bytes = malloc(size), .size = size };
	return buffer->bytes ? 0 : -ENOMEM;
}

static bool buffer_is_empty(const Buffer *buffer)
{
	return buffer->begin == buffer->end;
}

/* Return: bytes read; 0 at the end; -EAGAIN, -EIO, ... */
static ssize_t buffer_append(Buffer *buffer, int fd)
{
	ssize_t n;

	do
		n = read(fd, buffer->bytes + buffer->end, buffer->size - buffer->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buffer->end += (size_t)n;
	return n;
}

static ssize_t buffer_read(Buffer *buffer, int fd)
{
	buffer->begin = buffer->end = 0;
	return buffer_append(buffer, fd);
}

/* Return: 0 when all of it is written, else a negative errno; max bytes at a time. */
static int buffer_write(Buffer *buffer, int fd, size_t max)
{
	while (!buffer_is_empty(buffer)) {
		ssize_t n =
			write(fd, buffer->bytes + buffer->begin, MIN_OF(buffer->end - buffer->begin, max));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buffer->begin += (size_t)n;
		if (max == BLOCKING_BYTES && !buffer_is_empty(buffer))
			return -EAGAIN;
	}
	return 0;
}

static void source_enable(sd_event_source *source, bool on)
{
	if (source)
		(void)sd_event_source_set_enabled(source, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void claim(Proxy *proxy)
{
	Buffer *input = &proxy->input;

	/* What was read before goes first. */
	if (!buffer_is_empty(input)) {
		terminal_claim(proxy->terminal, proxy->master_fd);
		return;
	}
	input->begin = 0;
	input->end = typed_ahead_claim(proxy->terminal, proxy->master_fd, input->bytes);
}

STATIC_ASSERT(TYPED_AHEAD_MAX <= PROXY_IN_BYTES);

/* Which descriptors to wait for follows from the buffers alone. */
static void interest_update(Proxy *proxy)
{
	bool take_output = buffer_is_empty(&proxy->output) && !proxy->ended;
	bool give_input = !buffer_is_empty(&proxy->input) && !proxy->ended;
	uint32_t events = (take_output ? EPOLLIN : 0) | (give_input ? EPOLLOUT : 0);

	if (events)
		(void)sd_event_source_set_io_events(proxy->master, events);
	source_enable(proxy->master, events != 0);
	source_enable(proxy->out, !buffer_is_empty(&proxy->output) && !proxy->gone);
	if (give_input || proxy->ended || proxy->gone)
		source_enable(proxy->in, false);
}

static void drain_check(Proxy *proxy)
{
	if (!proxy->draining || proxy->drained || !proxy->ended ||
	    (!buffer_is_empty(&proxy->output) && !proxy->gone))
		return;
	proxy->drained = true;
	proxy->events.drained(proxy->events.userdata);
}

static void terminal_lost(Proxy *proxy)
{
	if (proxy->gone)
		return;
	proxy->gone = true;
	proxy->output.begin = proxy->output.end = 0;
	interest_update(proxy);
	proxy->events.gone(proxy->events.userdata);
}

static void output_write(Proxy *proxy)
{
	size_t max = proxy->terminal->blocking ? BLOCKING_BYTES : proxy->output.size;
	int r = proxy->gone ? 0 : buffer_write(&proxy->output, proxy->terminal->out_fd, max);

	if (proxy->gone)
		proxy->output.begin = proxy->output.end = 0;
	else if (r < 0 && r != -EAGAIN)
		terminal_lost(proxy);
}

/*
 * A terminal that keeps its own output modes adds a return to each newline; the PTY did that already. Exactly
 * one goes, so that what the agent wrote itself stays. more: the stream goes on, so that a return at the end
 * is likely to be half of such a pair and waits for what follows.
 */
static void returns_remove(Proxy *proxy, bool more)
{
	Buffer *output = &proxy->output;
	size_t n = output->begin;

	for (size_t i = output->begin; i < output->end; i++) {
		bool last = i + 1 == output->end;

		if (output->bytes[i] == '\r' && (last ? more : output->bytes[i + 1] == '\n'))
			proxy->held = last;
		else
			output->bytes[n++] = output->bytes[i];
	}
	output->end = n;
}

/*
 * A PTY gives out a few KiB at a time. Several of them are gathered for one write: fewer calls, and whoever
 * shows them is not woken for each.
 */
static void output_copy(Proxy *proxy)
{
	Buffer *output = &proxy->output;
	ssize_t n = 0;

	output->begin = output->end = 0;
	if (proxy->held)
		output->bytes[output->end++] = '\r';
	for (unsigned i = 0; i < READS_PER_TURN && output->end < output->size; i++) {
		size_t before = output->end;

		n = buffer_append(output, proxy->master_fd);
		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			/* EIO: every copy of the agent's side is closed, and all that was written was read.
			 */
			proxy->ended = true;
			break;
		}
		modes_feed(&proxy->modes, output->bytes + before, (size_t)n);
		/* The echo of a key, not a flood: nothing follows at once, and asking takes time. */
		if (n < SHORT_READ)
			break;
	}
	proxy->held = false;
	if (terminal_makes_returns(proxy->terminal))
		returns_remove(proxy, !proxy->ended && (n < 0 || n >= SHORT_READ));
	output_write(proxy);
}

static void look_later(Proxy *proxy, uint64_t usec)
{
	if (!proxy->look)
		return;
	(void)sd_event_source_set_time_relative(proxy->look, usec);
	(void)sd_event_source_set_enabled(proxy->look, SD_EVENT_ONESHOT);
}

/*
 * A shell that brings a running job forward tells nobody. Whoever finds that the terminal is ours claims it
 * and has the agent told.
 */
static void foreground_check(Proxy *proxy)
{
	if (proxy->gone || !terminal_is_foreground(proxy->terminal))
		return;
	if (!proxy->terminal->changed || proxy->terminal->use != TERMINAL_OURS)
		claim(proxy);
	if (!proxy->behind)
		return;
	proxy->behind = false;
	(void)sd_event_now(proxy->event, CLOCK_MONOTONIC, &proxy->forward_usec);
	(void)terminal_copy_size(proxy->terminal, proxy->master_fd);
	proxy->events.forward(proxy->events.userdata);
}

/* The signal that a key makes at the agent's terminal is one for all that the person's terminal is given to.
 */
static void keys_share(Proxy *proxy, const struct termios *modes, const char *keys, size_t n)
{
	bool literal = false;

	for (size_t i = 0; i < n; i++) {
		cc_t key = (cc_t)keys[i];

		if (literal || key == _POSIX_VDISABLE)
			literal = false;
		else if (key == modes->c_cc[VINTR])
			signals_share(SIGINT);
		else if (key == modes->c_cc[VQUIT])
			signals_share(SIGQUIT);
		else
			literal = key == modes->c_cc[VLNEXT] && (modes->c_lflag & ICANON) &&
				  (modes->c_lflag & IEXTEN);
	}
}

static int on_master(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Proxy *proxy = userdata;
	bool was_empty = buffer_is_empty(&proxy->output);

	if ((revents & EPOLLOUT) && !buffer_is_empty(&proxy->input)) {
		int r = buffer_write(&proxy->input, proxy->master_fd, proxy->input.size);

		if (r < 0 && r != -EAGAIN)
			proxy->input.begin = proxy->input.end = 0;
		if (buffer_is_empty(&proxy->input))
			source_enable(proxy->in, true);
	}

	if ((revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) && was_empty) {
		if (proxy->behind || !proxy->terminal->changed || proxy->terminal->use != TERMINAL_OURS)
			foreground_check(proxy);
		output_copy(proxy);
		/* An agent may ask first and change the modes for the answer then. */
		if (proxy->terminal->use != TERMINAL_OURS) {
			proxy->looks = SETTLE_LOOKS;
			look_later(proxy, SETTLE_LOOK_USEC);
		}
		if (proxy->quiet)
			(void)sd_event_source_set_time_relative(proxy->quiet, QUIET_USEC);
	}
	interest_update(proxy);
	drain_check(proxy);
	return 0;
}

static int on_out(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Proxy *proxy = userdata;

	output_write(proxy);
	interest_update(proxy);
	drain_check(proxy);
	return 0;
}

static int on_in(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Proxy *proxy = userdata;
	struct termios modes;
	bool share, claimed = !proxy->terminal->changed;
	ssize_t n;

	if (revents & EPOLLHUP && terminal_is_gone(proxy->terminal)) {
		terminal_lost(proxy);
		return 0;
	}
	foreground_check(proxy);
	if (!terminal_keys_are_ours(proxy->terminal, proxy->master_fd)) {
		/* The keys are another job's, or another program's of this one, for now. */
		source_enable(proxy->in, false);
		look_later(proxy, SHARED_LOOK_USEC);
		return 0;
	}
	/* With the claim what had been typed was taken; the loop says whether there is more. */
	if ((claimed && proxy->terminal->changed) || !buffer_is_empty(&proxy->input)) {
		interest_update(proxy);
		return 0;
	}
	/* Before the keys are there: the agent may change the modes for the next. */
	share = proxy->terminal->changed && tcgetattr(proxy->master_fd, &modes) == 0 &&
		(modes.c_lflag & ISIG);

	n = buffer_read(&proxy->input, fd);
	if (n == 0 && !terminal_is_gone(proxy->terminal)) {
		/* Ctrl-D in a terminal that keeps its line mode. */
		proxy->input.bytes[0] = '\x04';
		proxy->input.begin = 0;
		proxy->input.end = 1;
		n = 1;
	}
	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		terminal_lost(proxy);
		return 0;
	}
	if (buffer_write(&proxy->input, proxy->master_fd, proxy->input.size) < 0)
		interest_update(proxy);
	if (share)
		keys_share(proxy, &modes, proxy->input.bytes, (size_t)n);
	return 0;
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	Proxy *proxy = userdata;

	/* Nobody says when an agent that writes elsewhere changes its PTY's modes. */
	if (proxy->terminal->use != TERMINAL_OURS && !proxy->draining) {
		foreground_check(proxy);
		if (proxy->looks > 0)
			proxy->looks--;
		look_later(proxy,
			   MIN_OF(SETTLE_LOOK_USEC << (SETTLE_LOOKS - proxy->looks), SHARED_LOOK_USEC));
	}
	source_enable(proxy->in,
		      buffer_is_empty(&proxy->input) && !proxy->gone && !proxy->ended && !proxy->draining);
	return 0;
}

static int on_quiet(sd_event_source *source, uint64_t usec, void *userdata)
{
	Proxy *proxy = userdata;

	/* Nothing for a while: but a terminal that is paused still has its bytes to come. */
	if (!buffer_is_empty(&proxy->output) && !proxy->gone) {
		(void)sd_event_source_set_time_relative(source, QUIET_USEC);
		(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
		return 0;
	}
	proxy->ended = true;
	interest_update(proxy);
	drain_check(proxy);
	return 0;
}

int proxy_new(sd_event *event, Terminal *terminal, int master_fd, const ProxyEvents *events, Proxy **ret)
{
	_cleanup_(proxy_freep) Proxy *proxy = calloc(1, sizeof(*proxy));
	int r;

	if (!proxy)
		return -ENOMEM;
	*proxy =
		(Proxy){ .terminal = terminal, .master_fd = FD_NONE, .events = *events, .modes = MODES_INIT };
	proxy->event = sd_event_ref(event);

	r = buffer_init(&proxy->output, PROXY_OUT_BYTES);
	if (r >= 0)
		r = buffer_init(&proxy->input, PROXY_IN_BYTES);
	if (r >= 0)
		r = sd_event_add_io(event, &proxy->master, master_fd, EPOLLIN, on_master, proxy);
	if (r >= 0)
		r = sd_event_source_set_enabled(proxy->master, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(event, &proxy->in, terminal->in_fd, EPOLLIN, on_in, proxy);
	if (r >= 0)
		r = sd_event_source_set_enabled(proxy->in, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(proxy->in, SD_EVENT_PRIORITY_NORMAL - 1);
	if (r >= 0)
		r = sd_event_add_io(event, &proxy->out, terminal->out_fd, EPOLLOUT, on_out, proxy);
	if (r >= 0)
		r = sd_event_source_set_enabled(proxy->out, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &proxy->look, CLOCK_MONOTONIC, SHARED_LOOK_USEC, 0,
					       on_look, proxy);
	if (r >= 0)
		r = sd_event_source_set_enabled(proxy->look, SD_EVENT_OFF);
	if (r < 0)
		return r;

	proxy->master_fd = master_fd;
	*ret = TAKE_PTR(proxy);
	return 0;
}

Proxy *proxy_free(Proxy *proxy)
{
	if (!proxy)
		return NULL;
	sd_event_source_disable_unref(proxy->master);
	sd_event_source_disable_unref(proxy->in);
	sd_event_source_disable_unref(proxy->out);
	sd_event_source_disable_unref(proxy->look);
	sd_event_source_disable_unref(proxy->quiet);
	sd_event_unref(proxy->event);
	close_fd(proxy->master_fd);
	free(proxy->output.bytes);
	free(proxy->input.bytes);
	free(proxy);
	return NULL;
}

int proxy_start(Proxy *proxy)
{
	proxy->behind = !terminal_is_foreground(proxy->terminal);
	if (proxy->terminal->use != TERMINAL_OURS)
		look_later(proxy, SETTLE_LOOK_USEC);
	(void)terminal_copy_size(proxy->terminal, proxy->master_fd);
	claim(proxy);
	source_enable(proxy->in, true);
	interest_update(proxy);
	return 0;
}

/* Write all of it whatever the loop is doing, unless the terminal takes nothing for a second. */
static void write_now(const Proxy *proxy, const char *bytes, size_t n)
{
	size_t max = proxy->terminal->blocking ? BLOCKING_BYTES : n;

	while (n > 0 && !proxy->gone) {
		struct pollfd room = { .fd = proxy->terminal->out_fd, .events = POLLOUT };
		ssize_t written;

		if (poll(&room, 1, SUSPEND_WRITE_MSEC) <= 0)
			return;
		written = write(proxy->terminal->out_fd, bytes, MIN_OF(n, max));
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (written > 0) {
			bytes += written;
			n -= (size_t)written;
		}
	}
}

/* What is left, at a stop and at the end. */
static void output_flush(Proxy *proxy)
{
	Buffer *output = &proxy->output;

	write_now(proxy, output->bytes + output->begin, output->end - output->begin);
	output->begin = output->end = 0;
}

/* An agent that goes on in the background may change them again: then they are given back again. */
static void modes_give_back(Proxy *proxy)
{
	char text[MODES_TEXT_MAX];
	size_t n = modes_undo(&proxy->modes, text);

	if (n == proxy->undo_size && memcmp(text, proxy->undo, n) == 0)
		return;
	write_now(proxy, text, n);
	memcpy(proxy->undo, text, n);
	proxy->undo_size = n;
}

void proxy_suspend(Proxy *proxy)
{
	struct pollfd said = { .fd = proxy->master_fd, .events = POLLIN };

	/*
	 * The kernel hands a PTY's bytes over in the background: the last ones may be on their way. Not for
	 * ever: others than the agent may go on writing.
	 */
	for (unsigned i = 0; i < SUSPEND_READS && !proxy->gone; i++) {
		output_flush(proxy);
		if (proxy->ended || poll(&said, 1, SUSPEND_SETTLE_MSEC) <= 0 || !(said.revents & POLLIN))
			break;
		output_copy(proxy);
	}
	output_flush(proxy);

	modes_give_back(proxy);
	terminal_release(proxy->terminal, false);
	interest_update(proxy);
}

bool proxy_resume(Proxy *proxy)
{
	char text[MODES_TEXT_MAX];
	size_t n = 0;

	if (proxy->gone || proxy->ended)
		return false;
	proxy->behind = !terminal_is_foreground(proxy->terminal);
	if (!proxy->behind) {
		claim(proxy);
		if (proxy->undo_size > 0) {
			n = modes_redo(&proxy->modes, text);
			write_now(proxy, text, n);
			proxy->undo_size = 0;
		}
	}
	(void)terminal_copy_size(proxy->terminal, proxy->master_fd);
	source_enable(proxy->in, buffer_is_empty(&proxy->input));
	interest_update(proxy);
	return n > 0;
}

bool proxy_is_behind(const Proxy *proxy)
{
	return proxy->behind;
}

bool proxy_has_come_forward(const Proxy *proxy)
{
	uint64_t now_usec = 0;

	if (!terminal_is_foreground(proxy->terminal))
		return false;
	(void)sd_event_now(proxy->event, CLOCK_MONOTONIC, &now_usec);
	return proxy->behind || (proxy->forward_usec && now_usec - proxy->forward_usec < FORWARD_USEC);
}

bool proxy_resize(Proxy *proxy)
{
	return terminal_copy_size(proxy->terminal, proxy->master_fd);
}

void proxy_drain(Proxy *proxy)
{
	proxy->draining = true;
	source_enable(proxy->in, false);
	interest_update(proxy);
	if (!proxy->ended && sd_event_add_time_relative(proxy->event, &proxy->quiet, CLOCK_MONOTONIC,
							QUIET_USEC, 0, on_quiet, proxy) < 0)
		proxy->ended = true;
	drain_check(proxy);
}

void proxy_finish(Proxy *proxy)
{
	if (proxy->gone)
		return;
	output_flush(proxy);
	if (proxy->held)
		write_now(proxy, "\r", 1);
	modes_give_back(proxy);
	terminal_release(proxy->terminal, true);
}
