/* SPDX-License-Identifier: MIT */
#include "service/session/channel.h"

#include <assert.h>
#include <poll.h>
#include <sys/socket.h>

int channel_make(int ret_fds[static 2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0 ? -errno : 0;
}

int channel_send(int fd, const ChannelMessage *m, const int *fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)m, .iov_len = sizeof(*m) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	assert(m->n_fds <= CHANNEL_FDS_MAX);
	if (m->n_fds > 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * m->n_fds);
	}
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int channel_wait(int fd, int timeout_msec)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&poll_fd, 1, timeout_msec);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

int channel_receive(int fd, int timeout_msec, ChannelMessage *ret, int fds[static CHANNEL_FDS_MAX])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
	} control;
	struct iovec part = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	size_t n_fds = 0;
	ssize_t n;
	int r;

	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fds[i] = FD_NONE;
	r = channel_wait(fd, timeout_msec);
	if (r < 0)
		return r;
	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
	     header = CMSG_NXTHDR(&message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		n_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(header), n_fds * sizeof(int));
	}
	if (n == 0)
		r = -ECONNRESET;
	else if ((size_t)n != sizeof(*ret) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
		 ret->kind >= CHANNEL_KIND_MAX || ret->n_fds != n_fds || ret->result > 0)
		r = -EBADMSG;
	for (size_t i = 0; r < 0 && i < CHANNEL_FDS_MAX; i++)
		close_fdp(&fds[i]);
	if (r == 0)
		ret->text[sizeof(ret->text) - 1] = 0;
	return r;
}

void channel_fail(ChannelMessage *m, int result, const char *text)
{
	m->result = result;
	(void)snprintf(m->text, sizeof(m->text), "%s", text ?: strerror(-result));
}
