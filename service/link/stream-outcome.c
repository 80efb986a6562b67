/* SPDX-License-Identifier: MIT */
#include "service/link/stream-outcome.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "dbus/base.h"

#define ERRORS_MAX 16u

static void take_queued_errors(int fd)
{
	char control[512];

	for (unsigned i = 0; i < ERRORS_MAX; i++) {
		struct msghdr message = { .msg_control = control, .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
	}
}

int stream_outcome(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info), error_size = sizeof(int);
	int error = 0;

	take_queued_errors(fd);
	/* The state first: the kernel sets the error before it closes, and this reading takes the error away. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		return -errno;
	if (info.tcpi_state == TCP_SYN_SENT || info.tcpi_state == TCP_SYN_RECV)
		return -EINPROGRESS;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
		return -errno;
	if (error != 0)
		return -error;
	/* Somebody else has read the error. */
	return info.tcpi_state == TCP_CLOSE ? -ENOTCONN : 0;
}
