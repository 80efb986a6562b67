/* SPDX-License-Identifier: MIT */
#include "service/net/peer-owner.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "service/net/netlink.h"

/* linux/tcp_states.h of the kernel, which it does not export; netinet/tcp.h has the same in an enum. */
#define STATES_IN_USE                                                                               \
	(1u << TCP_ESTABLISHED | 1u << TCP_FIN_WAIT1 | 1u << TCP_FIN_WAIT2 | 1u << TCP_CLOSE_WAIT | \
	 1u << TCP_LAST_ACK | 1u << TCP_CLOSING)

#define MAPPED_WORD 0x0000ffffu /* the third of ::ffff:a.b.c.d, host order */
#define TEST_MSEC 1000

typedef union SocketAddress {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} SocketAddress;

typedef struct Question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
} Question;

int peer_owner_open(int *ret_diag_fd)
{
	return netlink_open(NETLINK_SOCK_DIAG, 0, ret_diag_fd);
}

static PeerAddress address_of(const SocketAddress *socket)
{
	PeerAddress address = { 0 };

	if (socket->any.sa_family == AF_INET6) {
		memcpy(address.words, &socket->in6.sin6_addr, sizeof(address.words));
		address.port = socket->in6.sin6_port;
	} else {
		address.words[0] = socket->in.sin_addr.s_addr;
		address.port = socket->in.sin_port;
	}
	return address;
}

bool peer_address_equals(const PeerAddress *asked, bool ipv6, const PeerAddress *found, bool found_ipv6)
{
	const uint32_t mapped[] = { 0, 0, htonl(MAPPED_WORD), asked->words[0] };

	if (asked->port != found->port || (ipv6 && !found_ipv6))
		return false;
	if (ipv6)
		return memcmp(asked->words, found->words, sizeof(asked->words)) == 0;
	return found_ipv6 ? memcmp(mapped, found->words, sizeof(mapped)) == 0
			  : asked->words[0] == found->words[0];
}

static int ask(int diag_fd, const Question *question)
{
	ssize_t n;

	do
		n = send(diag_fd, question, sizeof(*question), 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* The kernel has answered before send(2) returned. Answers to a question that was given up are passed over.
 */
static int answer(int diag_fd, uint32_t sequence, struct inet_diag_msg *ret)
{
	_cleanup_free_ uint8_t *buffer = NULL;
	size_t buffer_size = 0;

	for (;;) {
		const struct nlmsghdr *header;
		size_t offset = 0;
		ssize_t size = netlink_receive(diag_fd, &buffer, &buffer_size);

		if (size < 0)
			return (int)size;
		while (message_walk(buffer, (size_t)size, &offset, &header) > 0) {
			const void *body, *attributes;
			size_t rest;

			if (header->nlmsg_seq != sequence)
				continue;
			if (header->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *error =
					message_body(header, sizeof(*error), &attributes, &rest);

				return !error || error->error >= 0 ? -EBADMSG : error->error;
			}
			body = header->nlmsg_type == SOCK_DIAG_BY_FAMILY
				       ? message_body(header, sizeof(*ret), &attributes, &rest)
				       : NULL;
			if (!body)
				return -EBADMSG;
			memcpy(ret, body, sizeof(*ret));
			return 0;
		}
	}
}

static PeerAddress address_in(const __be32 words[static 4], __be16 port)
{
	PeerAddress address = { .port = port };

	memcpy(address.words, words, sizeof(address.words));
	return address;
}

/* Both ends, as the other one has them: its own address is our peer's. */
static int check(const struct inet_diag_msg *m, const PeerAddress *own, const PeerAddress *peer, bool ipv6)
{
	PeerAddress source = address_in(m->id.idiag_src, m->id.idiag_sport);
	PeerAddress destination = address_in(m->id.idiag_dst, m->id.idiag_dport);
	bool found_ipv6 = m->idiag_family == AF_INET6;

	/* Where no connection is found the kernel may answer with a listening socket. */
	if (!peer_address_equals(peer, ipv6, &source, found_ipv6) ||
	    !peer_address_equals(own, ipv6, &destination, found_ipv6))
		return -EBADMSG;
	/* Without an inode no process has it open; older kernels then say that root owns it. */
	if (m->idiag_state >= 32 || !(STATES_IN_USE & 1u << m->idiag_state) || m->idiag_inode == 0)
		return -ENOTCONN;
	return 0;
}

/* The question is about two addresses, and they may be another connection's by now: ours must be alive after
 * the answer. */
static int still_connected(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
		return -errno;
	return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT ? 0 : -ENOTCONN;
}

int peer_owner(int diag_fd, int fd, uid_t *ret_uid)
{
	static uint32_t sequence;
	Question question = { .header = { .nlmsg_len = sizeof(question),
					  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					  .nlmsg_flags = NLM_F_REQUEST,
					  .nlmsg_seq = ++sequence } };
	socklen_t own_length = sizeof(SocketAddress), peer_length = sizeof(SocketAddress);
	SocketAddress own_socket = { 0 }, peer_socket = { 0 };
	struct inet_diag_msg m = { 0 };
	PeerAddress own, peer;
	int r;

	if (getsockname(fd, &own_socket.any, &own_length) < 0 ||
	    getpeername(fd, &peer_socket.any, &peer_length) < 0)
		return -errno;
	if (own_socket.any.sa_family != AF_INET && own_socket.any.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	own = address_of(&own_socket);
	peer = address_of(&peer_socket);
	question.body = (struct inet_diag_req_v2){ .sdiag_family = (uint8_t)own_socket.any.sa_family,
						   .sdiag_protocol = IPPROTO_TCP,
						   .idiag_states = ~0U,
						   .id = { .idiag_sport = peer.port,
							   .idiag_dport = own.port,
							   .idiag_cookie = { INET_DIAG_NOCOOKIE,
									     INET_DIAG_NOCOOKIE } } };
	memcpy(question.body.id.idiag_src, peer.words, sizeof(peer.words));
	memcpy(question.body.id.idiag_dst, own.words, sizeof(own.words));
	r = ask(diag_fd, &question);
	if (r == 0)
		r = answer(diag_fd, question.header.nlmsg_seq, &m);
	if (r == 0)
		r = check(&m, &own, &peer, own_socket.any.sa_family == AF_INET6);
	if (r == 0)
		r = still_connected(fd);
	if (r < 0)
		return r;
	*ret_uid = m.idiag_uid;
	return 0;
}

int peer_owner_test(int diag_fd)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	_cleanup_close_ int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			    connect_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
			    accept_fd = FD_NONE;
	socklen_t length = sizeof(address);
	struct pollfd ready = { .fd = listen_fd, .events = POLLIN };
	uid_t uid;
	int r;

	if (listen_fd < 0 || connect_fd < 0 || bind(listen_fd, (struct sockaddr *)&address, length) < 0 ||
	    listen(listen_fd, 1) < 0 || getsockname(listen_fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	if (connect(connect_fd, (struct sockaddr *)&address, length) < 0 && errno != EINPROGRESS)
		return -errno;
	if (poll(&ready, 1, TEST_MSEC) <= 0)
		return -ETIMEDOUT;
	accept_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (accept_fd < 0)
		return -errno;
	r = peer_owner(diag_fd, accept_fd, &uid);
	return r < 0 ? r : uid == geteuid() ? 0 : -EBADMSG;
}
