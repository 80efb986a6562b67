/* SPDX-License-Identifier: MIT */
#include "service/net/unix-sockets.h"

#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "service/net/message.h"
#include "service/net/netlink.h"

/* net/unix/diag.c of the kernel compares with sk_state: bound datagram sockets without a peer are closed. */
#define STATES (1u << TCP_LISTEN | 1u << TCP_CLOSE)

void unix_sockets_done(UnixSockets *sockets)
{
	for (size_t i = 0; i < sockets->n; i++)
		free(sockets->sockets[i].name);
	free(sockets->sockets);
	*sockets = (UnixSockets){ 0 };
}

static int add(UnixSockets *sockets, const void *name, size_t size, const struct unix_diag_vfs *file,
	       uid_t uid)
{
	UnixSocket socket = { .inode = file->udiag_vfs_ino, .uid = uid };
	UnixSocket *grown = sockets->sockets;

	if (sockets->n >= UNIX_SOCKETS_MAX)
		return -E2BIG;
	/* In powers of two. */
	if ((sockets->n & (sockets->n - 1)) == 0)
		grown = reallocarray(grown, sockets->n ? sockets->n * 2 : 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sockets->sockets = grown;
	socket.name = strndup(name, size);
	if (!socket.name)
		return -ENOMEM;
	grown[sockets->n++] = socket;
	return 0;
}

int unix_sockets_take(UnixSockets *sockets, const struct nlmsghdr *header)
{
	const struct unix_diag_msg *body;
	const struct rtattr *attribute, *name = NULL;
	struct unix_diag_vfs file = { 0 };
	uid_t uid = (uid_t)-1;
	bool bound = false;
	size_t size;
	const void *attributes;

	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body || body->udiag_family != AF_UNIX)
		return -EBADMSG;
	/* The name's type is 0, which no table sorted by type has room for. */
	for (attribute = attributes; RTA_OK(attribute, size); attribute = RTA_NEXT(attribute, size)) {
		if (attribute->rta_type == UNIX_DIAG_NAME)
			name = attribute;
		else if (attribute->rta_type == UNIX_DIAG_VFS && attribute_size(attribute) == sizeof(file)) {
			memcpy(&file, RTA_DATA(attribute), sizeof(file));
			bound = true;
		} else if (attribute->rta_type == UNIX_DIAG_UID && attribute_size(attribute) == sizeof(uid))
			memcpy(&uid, RTA_DATA(attribute), sizeof(uid));
	}
	if (!bound || !name || attribute_size(name) == 0 || *(const char *)RTA_DATA(name) == 0)
		return 0;
	/* Not listening and not of datagrams: nobody can talk to it. */
	if (body->udiag_state != TCP_LISTEN && body->udiag_type != SOCK_DGRAM)
		return 0;
	return add(sockets, RTA_DATA(name), attribute_size(name), &file, uid);
}

static int take(void *userdata, const struct nlmsghdr *header)
{
	return unix_sockets_take(userdata, header);
}

int unix_sockets_read(UnixSockets *ret)
{
	const struct unix_diag_req body = { .sdiag_family = AF_UNIX,
					    .udiag_states = STATES,
					    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_UID };
	_cleanup_(unix_sockets_done) UnixSockets sockets = { 0 };
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	_cleanup_close_ int fd = FD_NONE;
	int r;

	r = netlink_open(NETLINK_SOCK_DIAG, 0, &fd);
	if (r >= 0)
		r = netlink_new(fd, NETLINK_SOCK_DIAG, &netlink);
	if (r >= 0)
		r = netlink_each(netlink, SOCK_DIAG_BY_FAMILY, &body, sizeof(body), take, &sockets);
	if (r < 0)
		return r;
	*ret = sockets;
	sockets = (UnixSockets){ 0 };
	return 0;
}
