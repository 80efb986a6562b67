/* SPDX-License-Identifier: MIT */
#include "service/daemon/link-peer.h"

#include <sys/socket.h>

#include "service/link/process-state.h"

int link_peer_check(int fd, pid_t pid, uid_t uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return size == sizeof(peer) && peer.pid == pid && peer.uid == uid ? 0 : -EPERM;
}

bool link_peer_is_stopped(int fd)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && process_is_stopped(peer.pid);
}
