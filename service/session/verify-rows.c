/* SPDX-License-Identifier: MIT */
#include "service/session/verify-rows.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "service/link/link.h"

/* What one drain reads at most; a run has fewer. */
#define DRAIN_MAX 256u

struct VerifyRows {
	VerifyRowsCalls calls;
	void *userdata;
	sd_event *event;
	int fd;
	sd_event_source *source, *silence;
	uint64_t silent_usec; /* so far */
};

static void verify_rows_close(VerifyRows *rows)
{
	rows->source = sd_event_source_disable_unref(rows->source);
	rows->silence = sd_event_source_disable_unref(rows->silence);
	rows->fd = close_fd(rows->fd);
}

static void verify_rows_spoil(VerifyRows *rows, const char *why)
{
	verify_rows_close(rows);
	rows->calls.spoilt(rows->userdata, why);
}

/* Return: 1 after a row; 0 when nothing waits; -EPIPE at the end; -EBADMSG for what is no row. */
static int verify_rows_read(VerifyRows *rows)
{
	_cleanup_(row_done) Row row = { 0 };
	uint8_t data[ROW_BYTES_MAX];
	ssize_t n;
	int r;

	n = packet_receive(rows->fd, data, sizeof(data));
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n == -EMSGSIZE)
		return -EBADMSG;
	if (n <= 0)
		return -EPIPE;
	r = row_decode(data, (size_t)n, &row);
	if (r < 0)
		return r;
	rows->calls.row(rows->userdata, &row);
	return 1;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	VerifyRows *rows = userdata;
	int r = verify_rows_read(rows);

	/* Whoever closes it says nothing more: the silence, or the end of the process, is the outcome. */
	if (r == -EPIPE)
		rows->source = sd_event_source_disable_unref(rows->source);
	else if (r < 0)
		verify_rows_spoil(rows, VERIFY_ROWS_STRANGE);
	else if (r > 0 && rows->silence) {
		rows->silent_usec = 0;
		(void)sd_event_source_set_time_relative(rows->silence, VERIFY_LOOK_USEC);
	}
	return 0;
}

static int on_silence(sd_event_source *source, uint64_t usec, void *userdata)
{
	VerifyRows *rows = userdata;

	rows->silent_usec += VERIFY_LOOK_USEC;
	if (rows->calls.is_stopped(rows->userdata))
		verify_rows_spoil(rows, "what checks fell silent: somebody stopped it");
	else if (rows->silent_usec >= VERIFY_SILENCE_USEC ||
		 sd_event_source_set_time_relative(source, VERIFY_LOOK_USEC) < 0 ||
		 sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) < 0)
		verify_rows_spoil(rows, "what checks fell silent for a minute");
	return 0;
}

int verify_rows_new(sd_event *event, const VerifyRowsCalls *calls, void *userdata, VerifyRows **ret,
		    int *ret_far_fd)
{
	_cleanup_(verify_rows_freep) VerifyRows *rows = malloc(sizeof(*rows));
	_cleanup_close_ int far_fd = FD_NONE;
	int fds[2], r;

	if (!rows)
		return -ENOMEM;
	*rows = (VerifyRows){
		.calls = *calls, .userdata = userdata, .event = sd_event_ref(event), .fd = FD_NONE
	};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	rows->fd = fds[0];
	far_fd = fds[1];
	r = sd_event_add_io(event, &rows->source, rows->fd, EPOLLIN, on_readable, rows);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(rows);
	*ret_far_fd = TAKE_FD(far_fd);
	return 0;
}

VerifyRows *verify_rows_free(VerifyRows *rows)
{
	if (!rows)
		return NULL;
	verify_rows_close(rows);
	(void)sd_event_unref(rows->event);
	free(rows);
	return NULL;
}

int verify_rows_begin(VerifyRows *rows)
{
	int r;

	if (rows->fd < 0)
		return 0;
	r = sd_event_add_time_relative(rows->event, &rows->silence, CLOCK_MONOTONIC, VERIFY_LOOK_USEC,
				       20 * USEC_PER_MSEC, on_silence, rows);
	return r < 0 ? r : 0;
}

int verify_rows_drain(VerifyRows *rows)
{
	int r = 0;

	if (!rows || rows->fd < 0)
		return 0;
	for (unsigned i = 0; i < DRAIN_MAX; i++) {
		r = verify_rows_read(rows);
		if (r <= 0)
			break;
	}
	verify_rows_close(rows);
	return r == -EBADMSG ? r : 0;
}
