/* SPDX-License-Identifier: MIT */
#include "service/net/host-watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

/* Bounded: the loop comes back for the rest. */
#define HOST_WATCH_READS_MAX 256u

int host_watch_open(int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE };

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void host_watch_drain(int fd)
{
	uint8_t byte;

	/* A datagram is taken whole, whatever the size of the buffer; ENOBUFS (events lost) is news as well.
	 */
	for (unsigned i = 0; i < HOST_WATCH_READS_MAX; i++)
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ENOBUFS)
			return;
}
