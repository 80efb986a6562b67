/* SPDX-License-Identifier: MIT */
#include "service/net/netlink.h"

#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

struct Netlink {
	int fd;
	uint32_t port, sequence;
	uint8_t *buffer;
	size_t buffer_size;
};

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

int netlink_new(int fd, int protocol, Netlink **ret)
{
	struct sockaddr_nl local = { 0 };
	socklen_t length = sizeof(local), option_length = sizeof(int);
	int found, on = 1;
	Netlink *netlink;

	/* A socket that is not bound gets its port from whichever namespace's process sends first: refuse it.
	 */
	if (getsockname(fd, (struct sockaddr *)&local, &length) < 0)
		return -errno;
	if (length != sizeof(local) || local.nl_family != AF_NETLINK || local.nl_pid == 0)
		return -ENOTSOCK;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &found, &option_length) < 0)
		return -errno;
	if (found != protocol)
		return -ENOTSOCK;

	/*
	 * Strict: the kernel refuses a dump whose filter it does not understand, and leaves out the caches of
	 * learnt paths. The other two only make answers shorter and better worded; an older kernel has none.
	 */
	if (protocol == NETLINK_ROUTE)
		(void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));

	netlink = malloc(sizeof(*netlink));
	if (!netlink)
		return -ENOMEM;
	/* Not the first number that an earlier user of the same socket chose: a late answer must not fit. */
	*netlink = (Netlink){ .fd = fd,
			      .port = local.nl_pid,
			      .sequence = (uint32_t)clock_usec(CLOCK_MONOTONIC) };
	*ret = netlink;
	return 0;
}

Netlink *netlink_free(Netlink *netlink)
{
	if (netlink)
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

struct nlmsghdr *netlink_built(int built, struct nl_msg *message)
{
	struct nlmsghdr *copy;

	if (built < 0)
		return NULL;
	copy = malloc(nlmsg_hdr(message)->nlmsg_len);
	if (copy)
		memcpy(copy, nlmsg_hdr(message), nlmsg_hdr(message)->nlmsg_len);
	nlmsg_free(message);
	return copy;
}

struct nlmsghdr *netlink_request(uint16_t type, uint16_t flags, const void *body, size_t size)
{
	struct nlmsghdr *header = calloc(1, NLMSG_SPACE(size));

	if (!header)
		return NULL;
	*header = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(size),
				     .nlmsg_type = type,
				     .nlmsg_flags = flags };
	memcpy(NLMSG_DATA(header), body, size);
	return header;
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
		now = clock_usec(CLOCK_MONOTONIC);
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

static int send_messages(Netlink *netlink, struct nlmsghdr *const *messages, size_t n, uint16_t flags,
			 uint32_t *ret_sequence)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	static const uint8_t padding[NLMSG_ALIGNTO];
	struct iovec iov[2 * NETLINK_BATCH_MAX];
	struct msghdr message = {
		.msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = iov, .msg_iovlen = 2 * n
	};

	*ret_sequence = netlink->sequence;
	for (size_t i = 0; i < n; i++) {
		struct nlmsghdr *header = messages[i];
		size_t length = header->nlmsg_len;

		header->nlmsg_flags |= NLM_F_REQUEST | flags;
		header->nlmsg_pid = netlink->port;
		header->nlmsg_seq = netlink->sequence++;
		iov[2 * i] = (struct iovec){ header, length };
		iov[2 * i + 1] = (struct iovec){ (void *)padding, NLMSG_ALIGN(length) - length };
	}
	/* The kernel takes a datagram whole or not at all. */
	return sendmsg(netlink->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int program_batch(Netlink *netlink, struct nlmsghdr *const *messages, size_t n, NetlinkAnswer *answers)
{
	uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + NETLINK_ANSWER_USEC, answered = 0;
	uint32_t sequence;
	size_t missing = n;
	int r;

	r = send_messages(netlink, messages, n, NLM_F_ACK, &sequence);
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

int netlink_program(Netlink *netlink, struct nlmsghdr *const *messages, size_t n, NetlinkAnswer *answers)
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

int netlink_program_one(Netlink *netlink, struct nlmsghdr *message, char **ret_text)
{
	NetlinkAnswer answer = { 0 };
	int r = message ? netlink_program(netlink, &message, 1, &answer) : -ENOMEM;

	free(message);
	if (r >= 0 && ret_text && answer.text) {
		free(*ret_text);
		*ret_text = TAKE_PTR(answer.text);
	}
	free(answer.text);
	return r < 0 ? r : answer.error;
}

/* What answers a question of this type. */
static uint16_t answer_type(uint16_t type)
{
	return type == SOCK_DIAG_BY_FAMILY ? type : type - 2;
}

/* Hand on the answers to one request. Return: 0; -EAGAIN, complete but interrupted; another negative errno. */
static int gather(Netlink *netlink, struct nlmsghdr *message, bool dump, NetlinkFunction function,
		  void *userdata)
{
	uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + NETLINK_ANSWER_USEC;
	uint16_t type = answer_type(message->nlmsg_type);
	bool interrupted = false;
	uint32_t sequence;
	int r;

	r = send_messages(netlink, &message, 1, 0, &sequence);
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
				return r < 0 ? r : error < 0 ? error : interrupted ? -EAGAIN : 0;
			default:
				if (header->nlmsg_type != type ||
				    dump != !!(header->nlmsg_flags & NLM_F_MULTI))
					return -EBADMSG;
				r = function(userdata, header);
				if (r < 0 || !dump)
					return r;
			}
		}
		if (r < 0)
			return r;
	}
}

int netlink_each(Netlink *netlink, uint16_t type, const void *body, size_t size, NetlinkFunction function,
		 void *userdata)
{
	_cleanup_free_ struct nlmsghdr *message = netlink_request(type, NLM_F_DUMP, body, size);

	return message ? gather(netlink, message, true, function, userdata) : -ENOMEM;
}

static int list_take(void *userdata, const struct nlmsghdr *header)
{
	return message_list_add(userdata, header);
}

int netlink_dump(Netlink *netlink, uint16_t type, const void *body, size_t size, MessageList *list)
{
	const MessageList before = *list;

	for (unsigned attempt = 0; attempt < NETLINK_DUMP_ATTEMPTS; attempt++) {
		int r = netlink_each(netlink, type, body, size, list_take, list);

		if (r != -EAGAIN)
			return r;
		list->size = before.size;
		list->n_messages = before.n_messages;
	}
	return -EBUSY;
}

int netlink_ask(Netlink *netlink, struct nlmsghdr *message, MessageList *ret)
{
	int r = message ? gather(netlink, message, false, list_take, ret) : -ENOMEM;

	free(message);
	return r;
}
