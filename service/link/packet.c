/* SPDX-License-Identifier: MIT */
#include "service/link/link.h"

#include <sys/socket.h>

int packet_send(int fd, const void *data, size_t size)
{
	ssize_t n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EMSGSIZE;
}

ssize_t packet_receive(int fd, void *buffer, size_t max)
{
	/* Without room for control data the kernel drops (and closes) whatever descriptors came along. */
	struct iovec part = { .iov_base = buffer, .iov_len = max };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	/*
	 * A peer that closes without having read everything leaves this error (once), and the kernel tells it
	 * before what the peer had sent: its last words must not be lost by it.
	 */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (message.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	return n;
}
