/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "service/inside/checks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "service/inside/measure.h"

/*
 * One question of our own (RFC 1035), since what libc would do depends on files of the jail: the address of
 * "localhost", which name servers answer by themselves (RFC 6761). Any answer to it shows that the way there
 * and back is open.
 */

#define PORT 53
#define RESPONSE 0x80u /* in the third byte of the header */
#define AGAIN_MSEC 300 /* a datagram may be lost */

static const uint8_t question[] = { 9, 'l', 'o', 'c', 'a', 'l', 'h', 'o', 's', 't', 0, 0, 1, 0, 1 };

static int dns_send(int fd, const uint8_t id[static 2])
{
	uint8_t packet[12 + sizeof(question)] = { id[0], id[1], 0x01, 0, 0, 1 };

	memcpy(packet + 12, question, sizeof(question));
	return send(fd, packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Return: 1 for the answer, 0 for anything else, a negative errno when it was refused. */
static int dns_receive(int fd, const uint8_t id[static 2])
{
	uint8_t packet[512];
	ssize_t n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n >= 12 && packet[0] == id[0] && packet[1] == id[1] && (packet[2] & RESPONSE);
}

int dns_ask(uint32_t address, int timeout_msec)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(address) };
	int64_t start = clock_msec(CLOCK_MONOTONIC);
	uint8_t id[2];
	int r;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return -EIO;
	for (;;) {
		int64_t left = start + timeout_msec - clock_msec(CLOCK_MONOTONIC);
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (left <= 0)
			return -ETIME;
		r = dns_send(fd, id);
		if (r < 0)
			return r;
		r = poll(&p, 1, (int)MIN_OF(left, (int64_t)AGAIN_MSEC));
		if (r < 0)
			r = errno == EINTR ? 0 : -errno;
		else if (r > 0)
			r = dns_receive(fd, id);
		if (r < 0)
			return r;
		if (r > 0)
			return (int)(clock_msec(CLOCK_MONOTONIC) - start);
	}
}
