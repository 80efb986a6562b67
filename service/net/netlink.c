/* SPDX-License-Identifier: MIT */
#include "service/net/netlink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

struct Netlink {
	struct nl_sock *socket;
	int fd; /* the libnl socket's own duplicate */
	uint32_t port, sequence;
	uint8_t *buffer;
	size_t buffer_size;
};

static int errno_from_nl(int error)
{
	switch (error < 0 ? -error : error) {
	case NLE_SUCCESS:
		return 0;
	case NLE_INTR:
		return -EINTR;
	case NLE_BAD_SOCK:
		return -ENOTSOCK;
	case NLE_AGAIN:
		return -EAGAIN;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_EXIST:
		return -EEXIST;
	case NLE_RANGE:
		return -ERANGE;
	case NLE_MSGSIZE:
	case NLE_MSG_TOOSHORT:
	case NLE_MSG_TRUNC:
		return -EMSGSIZE;
	case NLE_OPNOTSUPP:
	case NLE_PROTO_MISMATCH:
		return -EOPNOTSUPP;
	case NLE_AF_NOSUPPORT:
		return -EAFNOSUPPORT;
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	case NLE_NOACCESS:
		return -EACCES;
	case NLE_PERM:
		return -EPERM;
	case NLE_BUSY:
		return -EBUSY;
	case NLE_NODEV:
		return -ENODEV;
	case NLE_NOADDR:
		return -EADDRNOTAVAIL;
	case NLE_DUMP_INTR:
		return -EAGAIN;
	case NLE_INVAL:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static uint64_t now_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / NSEC_PER_USEC;
}

int netlink_open(int protocol, uint32_t groups, int *ret_fd)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = groups };
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int netlink_new(int fd, Netlink **ret)
{
	_cleanup_(netlink_freep) Netlink *netlink = calloc(1, sizeof(*netlink));
	struct sockaddr_nl local = { 0 };
	socklen_t length = sizeof(local), option_length = sizeof(int);
	int protocol, on = 1, r;

	if (!netlink)
		return -ENOMEM;
	netlink->fd = FD_NONE;

	/* A socket that is not bound gets its port from whichever namespace's process sends first: refuse it.
	 */
	if (getsockname(fd, (struct sockaddr *)&local, &length) < 0)
		return -errno;
	if (length != sizeof(local) || local.nl_family != AF_NETLINK || local.nl_pid == 0)
		return -ENOTSOCK;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &option_length) < 0)
		return -errno;
	if (protocol != NETLINK_ROUTE)
		return -ENOTSOCK;

	netlink->socket = nl_socket_alloc();
	if (!netlink->socket)
		return -ENOMEM;
	netlink->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (netlink->fd < 0)
		return -errno;
	r = nl_socket_set_fd(netlink->socket, NETLINK_ROUTE, netlink->fd);
	if (r < 0) {
		netlink->fd = close_fd(netlink->fd);
		return errno_from_nl(r);
	}
	nl_socket_set_local_port(netlink->socket, local.nl_pid);

	/*
	 * Strict: the kernel refuses a dump whose filter it does not understand, and leaves out the caches of
	 * learnt paths. The other two only make answers shorter and better worded; an older kernel has none.
	 */
	(void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	(void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));

	netlink->port = local.nl_pid;
	/* Not the first number that an earlier user of the same socket chose: a late answer must not fit. */
	netlink->sequence = (uint32_t)now_usec();
	*ret = TAKE_PTR(netlink);
	return 0;
}

Netlink *netlink_free(Netlink *netlink)
{
	if (!netlink)
		return NULL;
	if (netlink->socket)
		nl_socket_free(netlink->socket); /* closes netlink->fd once it was given */
	free(netlink->buffer);
	free(netlink);
	return NULL;
}

void netlink_answers_free(NetlinkAnswer *answers, size_t n)
{
	for (size_t i = 0; answers && i < n; i++)
		free(answers[i].text);
	free(answers);
}

struct nl_msg *netlink_message(uint16_t type, uint16_t flags, const void *body, size_t size)
{
	_cleanup_(nl_msg_freep) struct nl_msg *message = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);
	void *room;

	if (!message)
		return NULL;
	room = nlmsg_reserve(message, size, NLMSG_ALIGNTO);
	if (!room)
		return NULL;
	memcpy(room, body, size);
	return TAKE_PTR(message);
}

int netlink_put(struct nl_msg *message, int attribute, const void *data, size_t size)
{
	return errno_from_nl(nla_put(message, attribute, (int)size, data));
}

int netlink_put_u32(struct nl_msg *message, int attribute, uint32_t value)
{
	return netlink_put(message, attribute, &value, sizeof(value));
}

int netlink_put_ipv4(struct nl_msg *message, int attribute, uint32_t address)
{
	return netlink_put_u32(message, attribute, htonl(address));
}

ssize_t netlink_receive(int fd, uint8_t **buffer, size_t *buffer_size)
{
	for (;;) {
		struct sockaddr_nl sender = { 0 };
		struct iovec iov;
		struct msghdr message = {
			.msg_name = &sender,
			.msg_namelen = sizeof(sender),
			.msg_iov = &iov,
			.msg_iovlen = 1,
		};
		ssize_t n = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n > NETLINK_DATAGRAM_MAX)
			return -EMSGSIZE;
		if ((size_t)n > *buffer_size || !*buffer) {
			size_t wanted = MAX_OF((size_t)n, (size_t)32768);
			uint8_t *grown = realloc(*buffer, wanted);
			if (!grown)
				return -ENOMEM;
			*buffer = grown;
			*buffer_size = wanted;
		}

		iov = (struct iovec){ *buffer, *buffer_size };
		n = recvmsg(fd, &message, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (message.msg_flags & MSG_TRUNC)
			return -EMSGSIZE;
		if (message.msg_namelen != sizeof(sender) || sender.nl_family != AF_NETLINK ||
		    sender.nl_pid != 0)
			continue;
		return n;
	}
}

/* Wait for the next datagram until deadline. Return: its size (never 0) or a negative errno. */
static ssize_t receive_until(Netlink *netlink, uint64_t deadline)
{
	for (;;) {
		ssize_t n = netlink_receive(netlink->fd, &netlink->buffer, &netlink->buffer_size);
		struct pollfd p = { .fd = netlink->fd, .events = POLLIN };
		struct timespec wait;
		uint64_t now;

		if (n > 0 || (n < 0 && n != -EAGAIN))
			return n;
		now = now_usec();
		if (now >= deadline)
			return -ETIMEDOUT;
		wait.tv_sec = (time_t)((deadline - now) / USEC_PER_SEC);
		wait.tv_nsec = (long)((deadline - now) % USEC_PER_SEC * NSEC_PER_USEC);
		if (ppoll(&p, 1, &wait, NULL) < 0 && errno != EINTR)
			return -errno;
	}
}

/* Is header an answer to sequence (and the next n - 1)? Anything else is the rest of an earlier question. */
static bool is_answer(const Netlink *netlink, const struct nlmsghdr *header, uint32_t sequence, size_t n)
{
	return header->nlmsg_pid == netlink->port && header->nlmsg_seq - sequence < n;
}

/* The number in NLMSG_ERROR or NLMSG_DONE, and the kernel's words behind it (both optional in NLMSG_DONE). */
static int take_error(const struct nlmsghdr *header, int *ret_error, char **ret_text)
{
	const struct rtattr *slots[NLMSGERR_ATTR_MAX + 1];
	size_t fixed = header->nlmsg_type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(int);
	const void *body, *attributes;
	size_t size;
	int error;

	body = message_body(header, fixed, &attributes, &size);
	if (!body)
		return -EBADMSG;
	memcpy(&error, body, sizeof(error));
	if (error > 0 || error < -4095)
		return -EBADMSG;

	if (error < 0 && ret_text && header->nlmsg_type == NLMSG_ERROR &&
	    (header->nlmsg_flags & NLM_F_ACK_TLVS) && (header->nlmsg_flags & NLM_F_CAPPED) &&
	    attributes_sort(attributes, size, slots, ELEMENTSOF(slots), NULL) >= 0 &&
	    slots[NLMSGERR_ATTR_MSG])
		*ret_text =
			strndup(RTA_DATA(slots[NLMSGERR_ATTR_MSG]), attribute_size(slots[NLMSGERR_ATTR_MSG]));
	*ret_error = error;
	return 0;
}

static int send_messages(Netlink *netlink, struct nl_msg **messages, size_t n, uint32_t *ret_sequence)
{
	struct iovec iov[NETLINK_BATCH_MAX];
	size_t total = 0;
	int r;

	*ret_sequence = netlink->sequence;
	for (size_t i = 0; i < n; i++) {
		struct nlmsghdr *header = nlmsg_hdr(messages[i]);

		header->nlmsg_pid = netlink->port;
		header->nlmsg_seq = netlink->sequence++;
		iov[i] = (struct iovec){ header, NLMSG_ALIGN(header->nlmsg_len) };
		total += iov[i].iov_len;
	}
	r = nl_send_iovec(netlink->socket, messages[0], iov, (unsigned)n);
	if (r < 0)
		return errno_from_nl(r);
	return (size_t)r == total ? 0 : -EIO;
}

static int program_batch(Netlink *netlink, struct nl_msg **messages, size_t n, NetlinkAnswer *answers)
{
	uint64_t deadline = now_usec() + NETLINK_ANSWER_USEC, answered = 0;
	uint32_t sequence;
	size_t missing = n;
	int r;

	for (size_t i = 0; i < n; i++)
		nlmsg_hdr(messages[i])->nlmsg_flags |= NLM_F_ACK;
	r = send_messages(netlink, messages, n, &sequence);
	if (r < 0)
		return r;

	while (missing > 0) {
		const struct nlmsghdr *header;
		size_t offset = 0;
		ssize_t size = receive_until(netlink, deadline);

		if (size < 0)
			return (int)size;
		while ((r = message_walk(netlink->buffer, (size_t)size, &offset, &header)) > 0) {
			uint32_t i = header->nlmsg_seq - sequence;

			if (header->nlmsg_type != NLMSG_ERROR || !is_answer(netlink, header, sequence, n) ||
			    (answered >> i & 1))
				continue;
			r = take_error(header, &answers[i].error, &answers[i].text);
			if (r < 0)
				return r;
			answered |= (uint64_t)1 << i;
			missing--;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int netlink_program(Netlink *netlink, struct nl_msg **messages, size_t n, NetlinkAnswer *answers)
{
	STATIC_ASSERT(NETLINK_BATCH_MAX <= 64);

	for (size_t i = 0; i < n; i += NETLINK_BATCH_MAX) {
		int r = program_batch(netlink, messages + i, MIN_OF(n - i, (size_t)NETLINK_BATCH_MAX),
				      answers + i);
		if (r < 0)
			return r;
	}
	return 0;
}

int netlink_program_one(Netlink *netlink, struct nl_msg *message, char **ret_text)
{
	NetlinkAnswer answer = { 0 };
	int r = netlink_program(netlink, &message, 1, &answer);

	if (r < 0)
		return r;
	if (ret_text && answer.text) {
		free(*ret_text);
		*ret_text = TAKE_PTR(answer.text);
	}
	free(answer.text);
	return answer.error;
}

/* Gather answers to one request. Return: 1 complete, 0 complete but interrupted, negative errno. */
static int gather(Netlink *netlink, struct nl_msg *message, uint16_t type, bool dump, MessageList *list)
{
	uint64_t deadline = now_usec() + NETLINK_ANSWER_USEC;
	bool interrupted = false;
	uint32_t sequence;
	int r;

	r = send_messages(netlink, &message, 1, &sequence);
	if (r < 0)
		return r;

	for (;;) {
		const struct nlmsghdr *header;
		size_t offset = 0;
		ssize_t size = receive_until(netlink, deadline);

		if (size < 0)
			return (int)size;
		while ((r = message_walk(netlink->buffer, (size_t)size, &offset, &header)) > 0) {
			int error = 0;

			if (!is_answer(netlink, header, sequence, 1))
				continue;
			if (header->nlmsg_flags & NLM_F_DUMP_INTR)
				interrupted = true;
			switch (header->nlmsg_type) {
			case NLMSG_NOOP:
				continue;
			case NLMSG_OVERRUN:
				return -ENOBUFS;
			case NLMSG_ERROR:
				r = take_error(header, &error, NULL);
				/* Nothing was to be acknowledged, so 0 is no answer. */
				return r < 0 ? r : error < 0 ? error : -EBADMSG;
			case NLMSG_DONE:
				if (!dump)
					return -EBADMSG;
				r = take_error(header, &error, NULL);
				return r < 0 ? r : error < 0 ? error : !interrupted;
			default:
				if (header->nlmsg_type != type ||
				    dump != !!(header->nlmsg_flags & NLM_F_MULTI))
					return -EBADMSG;
				r = message_list_add(list, header);
				if (r < 0)
					return r;
				if (!dump)
					return 1;
			}
		}
		if (r < 0)
			return r;
	}
}

int netlink_dump(Netlink *netlink, uint16_t type, const void *body, size_t size, MessageList *ret)
{
	for (unsigned attempt = 0; attempt < NETLINK_DUMP_ATTEMPTS; attempt++) {
		_cleanup_(nl_msg_freep) struct nl_msg *message =
			netlink_message(type, NLM_F_DUMP, body, size);
		_cleanup_(message_list_done) MessageList list = { 0 };
		int r;

		if (!message)
			return -ENOMEM;
		r = gather(netlink, message, type - 2, true, &list);
		if (r < 0)
			return r;
		if (r > 0) {
			*ret = list;
			list = (MessageList){ 0 };
			return 0;
		}
	}
	return -EBUSY;
}

int netlink_ask(Netlink *netlink, struct nl_msg *message, MessageList *ret)
{
	_cleanup_(message_list_done) MessageList list = { 0 };
	int r = gather(netlink, message, nlmsg_hdr(message)->nlmsg_type - 2, false, &list);

	if (r < 0)
		return r;
	*ret = list;
	list = (MessageList){ 0 };
	return 0;
}
