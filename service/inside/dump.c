/* SPDX-License-Identifier: MIT */
#include "service/inside/dump.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_MSEC 30000
#define BUFFER_SIZE (64u * 1024)

typedef struct Request {
	struct nlmsghdr header;
	union {
		struct rtgenmsg general;
		struct rtmsg route;
		char room[64];
	} body;
} Request;

static int request_open(const Request *request)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval limit = { .tv_sec = ANSWER_MSEC / 1000 };

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    sendto(fd, request, request->header.nlmsg_len, MSG_NOSIGNAL, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Return: bytes; a negative errno. */
static ssize_t receive(int fd, void *buffer)
{
	struct sockaddr_nl from = { 0 };
	socklen_t size = sizeof(from);
	ssize_t n;

	do
		n = recvfrom(fd, buffer, BUFFER_SIZE, MSG_TRUNC, (struct sockaddr *)&from, &size);
	while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid != 0));
	if (n < 0)
		return -errno;
	return (size_t)n > BUFFER_SIZE ? -EMSGSIZE : n;
}

static int error_of(const struct nlmsghdr *header)
{
	const struct nlmsgerr *error = NLMSG_DATA(header);

	return header->nlmsg_len < NLMSG_LENGTH(sizeof(*error)) ? -EBADMSG : error->error;
}

/* What broke a dump off stands at its end. */
static int dump_end(const struct nlmsghdr *header)
{
	int32_t error = 0;

	if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, NLMSG_DATA(header), sizeof(error));
	return error < 0 ? error : 0;
}

int dump_each(uint16_t type, uint8_t family, int (*each)(void *userdata, const struct nlmsghdr *header),
	      void *userdata)
{
	Request request = { .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(request.body)),
					.nlmsg_type = type,
					.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
					.nlmsg_seq = 1 },
			    .body.general.rtgen_family = family };
	_cleanup_free_ void *buffer = malloc(BUFFER_SIZE);
	_cleanup_close_ int fd = FD_NONE;

	if (!buffer)
		return -ENOMEM;
	fd = request_open(&request);
	if (fd < 0) {
		int r = fd;

		fd = FD_NONE;
		return r;
	}
	for (;;) {
		ssize_t n = receive(fd, buffer);
		size_t left = n < 0 ? 0 : (size_t)n;

		if (n < 0)
			return (int)n;
		for (const struct nlmsghdr *header = buffer; NLMSG_OK(header, left);
		     header = NLMSG_NEXT(header, left)) {
			int r;

			/* The table changed while it was told: something may be missing. */
			if (header->nlmsg_flags & NLM_F_DUMP_INTR)
				return -EINTR;
			if (header->nlmsg_type == NLMSG_DONE)
				return dump_end(header);
			r = header->nlmsg_type == NLMSG_ERROR ? error_of(header) : each(userdata, header);
			if (r != 0)
				return r;
		}
	}
}

int dump_lookup(uint32_t address, uint8_t *ret_type, uint32_t *ret_device)
{
	Request request = {
		.header = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1 },
		.body.route = { .rtm_family = AF_INET, .rtm_dst_len = 32 }
	};
	struct rtattr *destination =
		(struct rtattr *)((char *)&request + NLMSG_ALIGN(NLMSG_LENGTH(sizeof(request.body.route))));
	const struct rtattr *slots[RTA_OIF + 1];
	_cleanup_free_ void *buffer = malloc(BUFFER_SIZE);
	_cleanup_close_ int fd = FD_NONE;
	const uint32_t network_order = htonl(address);
	const struct nlmsghdr *header = buffer;
	ssize_t n;
	int r;

	if (!buffer)
		return -ENOMEM;
	destination->rta_type = RTA_DST;
	destination->rta_len = RTA_LENGTH(sizeof(network_order));
	memcpy(RTA_DATA(destination), &network_order, sizeof(network_order));
	request.header.nlmsg_len =
		NLMSG_ALIGN(NLMSG_LENGTH(sizeof(request.body.route))) + destination->rta_len;
	fd = request_open(&request);
	if (fd < 0) {
		r = fd;
		fd = FD_NONE;
		return r;
	}
	n = receive(fd, buffer);
	if (n < 0)
		return (int)n;
	if (!NLMSG_OK(header, (size_t)n))
		return -EBADMSG;
	if (header->nlmsg_type == NLMSG_ERROR)
		return error_of(header) ?: -EBADMSG;
	if (header->nlmsg_type != RTM_NEWROUTE)
		return -EBADMSG;
	r = dump_attributes(header, sizeof(struct rtmsg), slots, ELEMENTSOF(slots));
	if (r < 0)
		return r;
	*ret_type = ((const struct rtmsg *)NLMSG_DATA(header))->rtm_type;
	*ret_device = dump_u32(slots[RTA_OIF], 0);
	return 0;
}

int dump_attributes(const struct nlmsghdr *header, size_t size, const struct rtattr **slots, size_t n)
{
	const struct rtattr *attribute;
	size_t left;

	memset(slots, 0, n * sizeof(*slots));
	if (header->nlmsg_len < NLMSG_LENGTH(size))
		return -EBADMSG;
	attribute = (const struct rtattr *)((const char *)NLMSG_DATA(header) + NLMSG_ALIGN(size));
	left = header->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(size));
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		size_t type = attribute->rta_type & NLA_TYPE_MASK;

		if (type < n)
			slots[type] = attribute;
	}
	return 0;
}

uint32_t dump_u32(const struct rtattr *attribute, uint32_t fallback)
{
	uint32_t value = fallback;

	if (attribute && RTA_PAYLOAD(attribute) >= sizeof(value))
		memcpy(&value, RTA_DATA(attribute), sizeof(value));
	return value;
}

uint32_t dump_address(const struct rtattr *attribute)
{
	return ntohl(dump_u32(attribute, 0));
}

AddressText dump_text(uint32_t address, unsigned length)
{
	AddressText text;
	int n = snprintf(text.text, sizeof(text.text), "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff,
			 address >> 8 & 0xff, address & 0xff);

	if (length < 32)
		(void)snprintf(text.text + n, sizeof(text.text) - (size_t)n, "/%u", length);
	return text;
}
