/* SPDX-License-Identifier: MIT */
#include "service/session/reports.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "service/link/link.h"

/* What one drain passes on at most: init sends a handful; an agent that took it over must not hold the loop.
 */
#define REPORTS_DRAIN_MAX 64u

struct Reports {
	ReportsCalls calls;
	void *userdata;
	int fd;
	sd_event_source *source;
};

/* Return: 1 with a report, 0 at the end, negative errno. */
static int reports_receive(int fd, Report *ret, pid_t *ret_pid)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	uint8_t data[REPORT_SIZE];
	struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;
	struct ucred peer = { 0 };
	ssize_t n;
	int r;

	n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (n == 0)
		return 0;
	/* Descriptors that came along had no room beside the credentials; the kernel dropped them
	 * (MSG_CTRUNC). */
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS ||
	    header->cmsg_len != CMSG_LEN(sizeof(peer)) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	memcpy(&peer, CMSG_DATA(header), sizeof(peer));
	r = report_decode(data, (size_t)n, ret);
	if (r < 0)
		return r;
	*ret_pid = peer.pid;
	return 1;
}

/* Return: false when nothing more can come. */
static bool reports_read(Reports *reports)
{
	for (unsigned i = 0; i < REPORTS_DRAIN_MAX; i++) {
		Report report;
		pid_t pid = 0;
		int r = reports_receive(reports->fd, &report, &pid);

		if (r == -EAGAIN || r == -EINTR)
			return true;
		/* Init ended without reading what we sent; what it said before still waits (unix(7)). */
		if (r == -ECONNRESET)
			continue;
		if (r <= 0)
			return false;
		reports->calls.report(reports->userdata, &report, pid);
	}
	return true;
}

static int on_report(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	Reports *reports = userdata;

	if (!reports_read(reports)) {
		reports->source = sd_event_source_disable_unref(reports->source);
		reports->fd = close_fd(reports->fd);
		reports->calls.closed(reports->userdata);
	}
	return 0;
}

void reports_drain(Reports *reports)
{
	if (reports->fd >= 0)
		(void)reports_read(reports);
}

int reports_send(Reports *reports, ReportKind kind, int number)
{
	const Report report = { .kind = kind, .number = number };
	uint8_t data[REPORT_SIZE];

	if (reports->fd < 0)
		return -EPIPE;
	report_encode(&report, data);
	return packet_send(reports->fd, data, sizeof(data));
}

int reports_new(sd_event *event, const ReportsCalls *calls, void *userdata, Reports **ret, int *ret_init_fd)
{
	_cleanup_(reports_freep) Reports *reports = NULL;
	_cleanup_close_ int init_fd = FD_NONE;
	const int on = 1;
	int fds[2], r;

	reports = malloc(sizeof(*reports));
	if (!reports)
		return -ENOMEM;
	*reports = (Reports){ .calls = *calls, .userdata = userdata, .fd = FD_NONE };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	reports->fd = fds[0];
	init_fd = fds[1];
	if (setsockopt(reports->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	r = sd_event_add_io(event, &reports->source, reports->fd, EPOLLIN, on_report, reports);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(reports);
	*ret_init_fd = TAKE_FD(init_fd);
	return 0;
}

Reports *reports_free(Reports *reports)
{
	if (!reports)
		return NULL;
	(void)sd_event_source_disable_unref(reports->source);
	(void)close_fd(reports->fd);
	free(reports);
	return NULL;
}
