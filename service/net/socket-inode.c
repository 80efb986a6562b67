/* SPDX-License-Identifier: MIT */
#include "service/net/socket-inode.h"

#include "service/net/message.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#define DATAGRAMS_MAX 32u /* late answers to others that wait before ours */
#define DATAGRAM_SIZE 4096u

typedef struct Question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
} Question;

static int ask(int fd, uint32_t port, uint32_t sequence, const SocketPair *pair)
{
	/* For datagrams the kernel takes the two ends the other way round (udp_dump_one() of the kernel). */
	bool swap = pair->protocol == IPPROTO_UDP;
	uint32_t source = htonl(swap ? pair->destination : pair->source),
		 destination = htonl(swap ? pair->source : pair->destination);
	uint16_t source_port = htons(swap ? pair->destination_port : pair->source_port),
		 destination_port = htons(swap ? pair->source_port : pair->destination_port);
	Question question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_seq = sequence,
			    .nlmsg_pid = port },
		.request = { .sdiag_family = AF_INET,
			     .sdiag_protocol = pair->protocol,
			     .idiag_states = ~0U,
			     .id = { .idiag_sport = source_port,
				     .idiag_dport = destination_port,
				     .idiag_src = { source },
				     .idiag_dst = { destination },
				     .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (sendto(fd, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* Return: 1 with *ret; 0 when this message is not the answer; negative errno. */
static int take(const struct nlmsghdr *header, uint32_t port, uint32_t sequence, uint64_t *ret)
{
	const struct inet_diag_msg *found;
	const void *attributes;
	size_t size;

	if (header->nlmsg_seq != sequence || header->nlmsg_pid != port)
		return 0;
	if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	found = message_body(header, sizeof(*found), &attributes, &size);
	if (!found)
		return -EBADMSG;
	/* One that was closed already, or is half open, has none. */
	if (found->idiag_inode == 0)
		return -ENOENT;
	*ret = found->idiag_inode;
	return 1;
}

int socket_inode(int diag_fd, const SocketPair *pair, uint64_t *ret)
{
	static uint32_t last_sequence;
	struct sockaddr_nl local = { 0 };
	socklen_t length = sizeof(local);
	uint32_t sequence = ++last_sequence;
	union {
		struct nlmsghdr header;
		uint8_t bytes[DATAGRAM_SIZE];
	} buffer;
	int r;

	if (getsockname(diag_fd, (struct sockaddr *)&local, &length) < 0)
		return -errno;
	r = ask(diag_fd, local.nl_pid, sequence, pair);
	/* The kernel answers within the call that asks. */
	for (unsigned i = 0; r == 0 && i < DATAGRAMS_MAX; i++) {
		ssize_t n = recv(diag_fd, &buffer, sizeof(buffer), MSG_DONTWAIT);
		const struct nlmsghdr *header;
		size_t offset = 0;

		if (n < 0)
			return errno == EAGAIN ? -ENOENT : -errno;
		while (r == 0 && message_walk(&buffer, (size_t)n, &offset, &header) > 0)
			r = take(header, local.nl_pid, sequence, ret);
	}
	return r < 0 ? r : r == 0 ? -ENOENT : 0;
}
