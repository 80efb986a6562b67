/* SPDX-License-Identifier: MIT */
#include "service/net/flows.h"

#include "service/net/message.h"
#include "service/net/netlink.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

/* In one round; an agent may hold more, and more rounds take them. */
#define FLOWS_MAX 16384u
#define ROUNDS_MAX 8u
#define BATCH_MAX 32u
#define ANSWER_MSEC 1000

typedef struct Flow {
	uint8_t family, protocol;
	struct inet_diag_sockid id;
} Flow;

typedef struct Flows {
	int fd;
	const RouteTable *routes;
	uint32_t sequence;
	uint8_t *buffer;
	size_t buffer_size;
	Flow *flows;
	size_t n, allocated;
	bool more; /* than FLOWS_MAX */
} Flows;

typedef struct Request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
} Request;

static void flows_done(Flows *flows)
{
	free(flows->buffer);
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

static int take_flow(Flows *flows, const struct nlmsghdr *header, uint8_t protocol)
{
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
		Flow *grown = reallocarray(flows->flows, allocated, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		flows->flows = grown;
		flows->allocated = allocated;
	}
	flows->flows[flows->n++] =
		(Flow){ .family = body->idiag_family, .protocol = protocol, .id = body->id };
	return 0;
}

/* Return: its size or a negative errno. */
static ssize_t receive(Flows *flows)
{
	for (;;) {
		ssize_t n = netlink_receive(flows->fd, &flows->buffer, &flows->buffer_size);
		struct pollfd p = { .fd = flows->fd, .events = POLLIN };

		if (n != -EAGAIN)
			return n;
		if (poll(&p, 1, ANSWER_MSEC) == 0)
			return -ETIMEDOUT;
	}
}

static int error_of(const struct nlmsghdr *header)
{
	const void *attributes;
	size_t size;
	const struct nlmsgerr *error = message_body(header, sizeof(*error), &attributes, &size);

	return !error || error->error > 0 ? -EBADMSG : error->error;
}

static int gather(Flows *flows, uint8_t family, uint8_t protocol)
{
	const Request request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			    .nlmsg_seq = ++flows->sequence },
		.body = { .sdiag_family = family,
			  .sdiag_protocol = protocol,
			  .idiag_states = ~(1u << TCP_LISTEN) },
	};

	if (send(flows->fd, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return -errno;
	for (;;) {
		ssize_t size = receive(flows);
		const struct nlmsghdr *header;
		size_t offset = 0;
		int r;

		if (size < 0)
			return (int)size;
		while ((r = message_walk(flows->buffer, (size_t)size, &offset, &header)) > 0) {
			if (header->nlmsg_seq != flows->sequence)
				continue;
			if (header->nlmsg_type == NLMSG_DONE)
				return 0;
			if (header->nlmsg_type == NLMSG_ERROR)
				r = error_of(header) ?: -EBADMSG;
			else
				r = take_flow(flows, header, protocol);
			if (r < 0)
				return r;
		}
		if (r < 0)
			return r;
	}
}

/* One that has gone meanwhile is as good as ended. */
static bool is_ended(int error)
{
	return error == 0 || error == -ENOENT || error == -ESTALE;
}

static int end_batch(Flows *flows, const Flow *batch, size_t n, unsigned *ended)
{
	uint32_t first = flows->sequence + 1;
	Request requests[BATCH_MAX] = { 0 };
	size_t answered = 0;

	for (size_t i = 0; i < n; i++)
		requests[i] = (Request){
			.header = { .nlmsg_len = sizeof(Request),
				    .nlmsg_type = SOCK_DESTROY,
				    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
				    .nlmsg_seq = ++flows->sequence },
			.body = { .sdiag_family = batch[i].family,
				  .sdiag_protocol = batch[i].protocol,
				  .idiag_states = UINT32_MAX,
				  .id = batch[i].id },
		};
	if (send(flows->fd, requests, n * sizeof(*requests), MSG_NOSIGNAL) < 0)
		return -errno;
	while (answered < n) {
		ssize_t size = receive(flows);
		const struct nlmsghdr *header;
		size_t offset = 0;
		int r;

		if (size < 0)
			return (int)size;
		while ((r = message_walk(flows->buffer, (size_t)size, &offset, &header)) > 0) {
			if (header->nlmsg_type != NLMSG_ERROR || header->nlmsg_seq - first >= n)
				continue;
			r = error_of(header);
			if (!is_ended(r))
				return r;
			answered++;
			*ended += r == 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
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
		r = gather(flows, kinds[i].family, kinds[i].protocol);
		/* A kernel without IPv6, or without the module for one of them. */
		if (r == -ENOENT || r == -EAFNOSUPPORT)
			r = 0;
	}
	for (size_t i = 0; r >= 0 && i < flows->n; i += BATCH_MAX)
		r = end_batch(flows, flows->flows + i, MIN_OF(flows->n - i, (size_t)BATCH_MAX), ended);
	return r;
}

int flows_end_denied(int diag_fd, const RouteTable *routes, unsigned *ret_ended)
{
	_cleanup_(flows_done) Flows flows = { .fd = diag_fd, .routes = routes };
	unsigned ended = 0;
	int r = 0;

	/* Dumps of several families come one after another; nothing of an earlier use may be taken for one.
	 */
	while (netlink_receive(diag_fd, &flows.buffer, &flows.buffer_size) >= 0)
		;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		r = end_round(&flows, &ended);
		if (r < 0 || !flows.more)
			break;
	}
	if (r < 0)
		return r;
	if (ret_ended)
		*ret_ended = ended;
	return flows.more ? -E2BIG : 0;
}
