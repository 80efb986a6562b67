/* SPDX-License-Identifier: MIT */
#include "service/net/diag.h"

#include "service/net/netlink.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

/* One socket, by its two ends. Return: 0; -ENOENT for none; -EBADMSG; another negative errno. */
static int diag_ask(int diag_fd, uint8_t family, uint8_t protocol, const struct inet_diag_sockid *id,
		    struct inet_diag_msg *ret)
{
	struct inet_diag_req_v2 body = {
		.sdiag_family = family, .sdiag_protocol = protocol, .idiag_states = ~0U, .id = *id
	};
	_cleanup_(message_list_done) MessageList list = { 0 };
	_cleanup_(netlink_freep) Netlink *netlink = NULL;
	const void *found, *attributes;
	size_t offset = 0, size;
	int r;

	body.id.idiag_cookie[0] = body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	r = netlink_new(diag_fd, NETLINK_SOCK_DIAG, &netlink);
	if (r >= 0)
		r = netlink_ask(netlink, netlink_request(SOCK_DIAG_BY_FAMILY, 0, &body, sizeof(body)), &list);
	if (r < 0)
		return r;
	found = message_body(message_list_next(&list, &offset), sizeof(*ret), &attributes, &size);
	if (!found)
		return -EBADMSG;
	memcpy(ret, found, sizeof(*ret));
	return 0;
}

/* ---- which socket ---- */

int socket_inode(int diag_fd, const SocketPair *pair, uint64_t *ret)
{
	/* For datagrams the kernel takes the two ends the other way round (udp_dump_one() of the kernel). */
	bool swap = pair->protocol == IPPROTO_UDP;
	const struct inet_diag_sockid id = {
		.idiag_sport = htons(swap ? pair->destination_port : pair->source_port),
		.idiag_dport = htons(swap ? pair->source_port : pair->destination_port),
		.idiag_src = { htonl(swap ? pair->destination : pair->source) },
		.idiag_dst = { htonl(swap ? pair->source : pair->destination) },
	};
	struct inet_diag_msg found = { 0 };
	int r = diag_ask(diag_fd, AF_INET, pair->protocol, &id, &found);

	if (r < 0)
		return r;
	/* One that was closed already, or is half open, has none. */
	if (found.idiag_inode == 0)
		return -ENOENT;
	*ret = found.idiag_inode;
	return 0;
}

/* ---- whose peer ---- */

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
	socklen_t own_length = sizeof(SocketAddress), peer_length = sizeof(SocketAddress);
	SocketAddress own_socket = { 0 }, peer_socket = { 0 };
	struct inet_diag_sockid id = { 0 };
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
	id.idiag_sport = peer.port;
	id.idiag_dport = own.port;
	memcpy(id.idiag_src, peer.words, sizeof(peer.words));
	memcpy(id.idiag_dst, own.words, sizeof(own.words));
	r = diag_ask(diag_fd, (uint8_t)own_socket.any.sa_family, IPPROTO_TCP, &id, &m);
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

/* ---- ending flows ---- */

/* In one round; an agent may hold more, and more rounds take them. */
#define FLOWS_MAX 16384u
#define ROUNDS_MAX 8u

typedef struct Flows {
	Netlink *netlink;
	const RouteTable *routes;
	struct inet_diag_req_v2 *flows;
	size_t n, allocated;
	uint8_t protocol; /* of what is gathered */
	bool more;        /* than FLOWS_MAX */
} Flows;

static void flows_done(Flows *flows)
{
	flows->netlink = netlink_free(flows->netlink);
	free(flows->flows);
}

/* The IPv4 address that a flow goes to. Return: false for none, or one of the namespace's own. */
static bool remote_address(uint8_t family, const struct inet_diag_sockid *id, uint32_t *ret)
{
	struct in6_addr address;

	memcpy(&address, id->idiag_dst, sizeof(address));
	if (family == AF_INET)
		*ret = ntohl(id->idiag_dst[0]);
	else if (IN6_IS_ADDR_V4MAPPED(&address))
		*ret = ntohl(id->idiag_dst[3]);
	else
		return false;
	return *ret != 0 && *ret >> 24 != 127 && *ret != ROUTES_SOURCE && *ret != ROUTES_FAR_END;
}

static int take_flow(void *userdata, const struct nlmsghdr *header)
{
	Flows *flows = userdata;
	const struct inet_diag_msg *body;
	const void *attributes;
	uint32_t address;
	size_t size;

	body = message_body(header, sizeof(*body), &attributes, &size);
	if (!body)
		return -EBADMSG;
	if (!remote_address(body->idiag_family, &body->id, &address) ||
	    routes_verdict(flows->routes, address) != ROUTE_DENY)
		return 0;
	if (flows->n == FLOWS_MAX) {
		flows->more = true;
		return 0;
	}
	if (flows->n == flows->allocated) {
		size_t allocated = flows->allocated ? flows->allocated * 2 : 64;
		struct inet_diag_req_v2 *grown = reallocarray(flows->flows, allocated, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		flows->flows = grown;
		flows->allocated = allocated;
	}
	flows->flows[flows->n++] = (struct inet_diag_req_v2){ .sdiag_family = body->idiag_family,
							      .sdiag_protocol = flows->protocol,
							      .idiag_states = UINT32_MAX,
							      .id = body->id };
	return 0;
}

/* One that has gone meanwhile is as good as ended. */
static int end_batch(Flows *flows, const struct inet_diag_req_v2 *batch, size_t n, unsigned *ended)
{
	struct nlmsghdr *requests[NETLINK_BATCH_MAX] = { 0 };
	NetlinkAnswer *answers = calloc(n, sizeof(*answers));
	int r = answers ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		requests[i] = netlink_request(SOCK_DESTROY, 0, &batch[i], sizeof(*batch));
		r = requests[i] ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = netlink_program(flows->netlink, requests, n, answers);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		*ended += answers[i].error == 0;
		if (answers[i].error != -ENOENT && answers[i].error != -ESTALE)
			r = answers[i].error;
	}
	for (size_t i = 0; i < n; i++)
		free(requests[i]);
	netlink_answers_free(answers, n);
	return r;
}

static int end_round(Flows *flows, unsigned *ended)
{
	static const struct {
		uint8_t family, protocol;
	} kinds[] = {
		{ AF_INET, IPPROTO_TCP },
		{ AF_INET6, IPPROTO_TCP },
		{ AF_INET, IPPROTO_UDP },
		{ AF_INET6, IPPROTO_UDP },
	};
	int r = 0;

	flows->n = 0;
	flows->more = false;
	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(kinds); i++) {
		const struct inet_diag_req_v2 body = { .sdiag_family = kinds[i].family,
						       .sdiag_protocol = kinds[i].protocol,
						       .idiag_states = ~(1u << TCP_LISTEN) };

		flows->protocol = kinds[i].protocol;
		r = netlink_each(flows->netlink, SOCK_DIAG_BY_FAMILY, &body, sizeof(body), take_flow, flows);
		/* A kernel without IPv6, or without the module for one of them. */
		if (r == -ENOENT || r == -EAFNOSUPPORT || r == -EAGAIN)
			r = 0;
	}
	for (size_t i = 0; r >= 0 && i < flows->n; i += NETLINK_BATCH_MAX)
		r = end_batch(flows, flows->flows + i, MIN_OF(flows->n - i, (size_t)NETLINK_BATCH_MAX),
			      ended);
	return r;
}

int flows_end_denied(int diag_fd, const RouteTable *routes, unsigned *ret_ended)
{
	_cleanup_(flows_done) Flows flows = { .routes = routes };
	unsigned ended = 0;
	int r = netlink_new(diag_fd, NETLINK_SOCK_DIAG, &flows.netlink);

	for (unsigned i = 0; r >= 0 && i < ROUNDS_MAX; i++) {
		r = end_round(&flows, &ended);
		if (!flows.more)
			break;
	}
	if (r < 0)
		return r;
	if (ret_ended)
		*ret_ended = ended;
	return flows.more ? -E2BIG : 0;
}
