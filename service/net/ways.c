/* SPDX-License-Identifier: MIT */
#include "service/net/ways.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include "service/plan/routes.h"

static int set(int fd, int level, int option, const void *value, size_t size)
{
	return setsockopt(fd, level, option, value, (socklen_t)size) < 0 ? -errno : 0;
}

static int by_device(int fd, const char *device, unsigned index, uint32_t address)
{
	return set(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device) + 1);
}

static int by_index(int fd, const char *device, unsigned index, uint32_t address)
{
	return set(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof(index));
}

static int by_unicast(int fd, const char *device, unsigned index, uint32_t address)
{
	uint32_t number = htonl(index);

	return set(fd, IPPROTO_IP, IP_UNICAST_IF, &number, sizeof(number));
}

static int by_multicast(int fd, const char *device, unsigned index, uint32_t address)
{
	struct ip_mreqn request = { .imr_ifindex = (int)index };

	return set(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request));
}

static int by_no_route(int fd, const char *device, unsigned index, uint32_t address)
{
	const int on = 1;

	return set(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof(on));
}

static int by_device_no_route(int fd, const char *device, unsigned index, uint32_t address)
{
	return by_device(fd, device, index, address) ?: by_no_route(fd, device, index, address);
}

static int by_source(int fd, const char *device, unsigned index, uint32_t address)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(ROUTES_SOURCE) };

	return bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0 ? -errno : 0;
}

/* As if it were the host itself that sends. */
static int by_foreign_source(int fd, const char *device, unsigned index, uint32_t address)
{
	struct sockaddr_in foreign = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000042u) };
	const int on = 1;
	int r = set(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));

	if (r == 0 && bind(fd, (const struct sockaddr *)&foreign, sizeof(foreign)) < 0)
		r = -errno;
	return r;
}

/* RFC 791: loose 131, strict 137. */
static int by_source_route(int fd, uint8_t type, uint32_t address)
{
	uint8_t option[8] = { IPOPT_NOP, type, 7, 4 };

	memcpy(option + 4, &address, sizeof(address));
	return set(fd, IPPROTO_IP, IP_OPTIONS, option, sizeof(option));
}

static int by_loose_route(int fd, const char *device, unsigned index, uint32_t address)
{
	return by_source_route(fd, IPOPT_LSRR, address);
}

static int by_strict_route(int fd, const char *device, unsigned index, uint32_t address)
{
	return by_source_route(fd, IPOPT_SSRR, address);
}

/* clang-format off */
const Way ways[WAY_MAX] = {
	[WAY_PLAIN] = { "a plain socket", NULL, false, false },
	[WAY_DEVICE] = { "SO_BINDTODEVICE", by_device, true, false },
	[WAY_INDEX] = { "SO_BINDTOIFINDEX", by_index, true, false },
	[WAY_UNICAST] = { "IP_UNICAST_IF", by_unicast, true, false },
	[WAY_PACKET_INFO] = { "IP_PKTINFO", NULL, true, true },
	[WAY_MULTICAST] = { "IP_MULTICAST_IF", by_multicast, false, false },
	[WAY_DEVICE_NO_ROUTE] = { "SO_DONTROUTE and a device", by_device_no_route, true, false },
	[WAY_NO_ROUTE] = { "SO_DONTROUTE", by_no_route, false, false },
	[WAY_SOURCE] = { "the jail's address", by_source, false, false },
	[WAY_FOREIGN_SOURCE] = { "a foreign address", by_foreign_source, false, false },
	[WAY_LOOSE_ROUTE] = { "a loose source route", by_loose_route, false, false },
	[WAY_STRICT_ROUTE] = { "a strict source route", by_strict_route, false, false },
};
/* clang-format on */

int way_prepare(const Way *way, int fd, const char *device, unsigned index, uint32_t address)
{
	return way->prepare ? way->prepare(fd, device, index, address) : 0;
}

int way_send(const Way *way, int fd, unsigned index, const struct sockaddr *to, socklen_t to_size,
	     const void *data, size_t size)
{
	const struct in_pktinfo info = { .ipi_ifindex = (int)index };
	const struct in6_pktinfo info6 = { .ipi6_ifindex = index };
	bool six = to->sa_family == AF_INET6;
	size_t length = six ? sizeof(info6) : sizeof(info);
	struct iovec iov = { (void *)(uintptr_t)data, size };
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(info6))];
	} control = { 0 };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)to, .msg_namelen = to_size, .msg_iov = &iov, .msg_iovlen = 1
	};

	if (way->packet_info) {
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(length),
						   .cmsg_level = six ? IPPROTO_IPV6 : IPPROTO_IP,
						   .cmsg_type = six ? IPV6_PKTINFO : IP_PKTINFO };
		memcpy(CMSG_DATA(&control.header), six ? (const void *)&info6 : &info, length);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(length);
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
