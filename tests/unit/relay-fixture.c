/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay-fixture.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

Fixture f;

uint64_t now_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / NSEC_PER_USEC;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int listening(uint16_t *ret_port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof(address);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(fd, 2 * MANY), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static int admit(void *userdata, int fd)
{
	return f.admit_error;
}

static int make(void *userdata, int family)
{
	struct sockaddr_in address = loopback(f.back);
	int fd;

	f.made++;
	if (f.make_error < 0)
		return f.make_error;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && f.itself && family == AF_INET)
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd < 0 ? -errno : fd;
}

static const RelayCalls calls = { .admit = admit, .make = make };

void start(unsigned max_connections)
{
	int fd;

	f = (Fixture){ .server_fd = FD_NONE };
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(relay_new(f.event, max_connections, &f.relay), 0);
	f.server_fd = listening(&f.back);
	fd = listening(&f.front);
	assert_int_equal(relay_listen(f.relay, fd, f.back, &calls, NULL, &f.listener), 0);
}

void stop(void)
{
	f.relay = relay_free(f.relay);
	close_fdp(&f.server_fd);
	f.event = sd_event_unref(f.event);
}

void turn(uint64_t usec)
{
	assert_true(sd_event_run(f.event, usec) >= 0);
	f.turns++;
}

void settle(void)
{
	while (sd_event_run(f.event, 0) > 0)
		f.turns++;
}

int client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = loopback(f.front);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

int server(void)
{
	int fd = FD_NONE;

	UNTIL((fd = accept4(f.server_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
	return fd;
}

ssize_t receive(int fd, void *buffer, size_t size)
{
	ssize_t n;

	UNTIL((n = recv(fd, buffer, size, 0)) >= 0 || errno != EAGAIN);
	return n < 0 ? -errno : n;
}

void say(int fd, const char *text)
{
	size_t size = strlen(text);

	UNTIL(send(fd, text, size, MSG_NOSIGNAL) == (ssize_t)size);
}

void hear(int fd, const char *text)
{
	size_t size = strlen(text), done = 0;
	char buffer[256];

	while (done < size) {
		ssize_t n = receive(fd, buffer + done, size - done);

		assert_true(n > 0);
		done += (size_t)n;
	}
	assert_memory_equal(buffer, text, size);
}

void hear_end(int fd)
{
	char byte;

	assert_int_equal(receive(fd, &byte, 1), 0);
}

void hear_reset(int fd)
{
	char byte;

	assert_int_equal(receive(fd, &byte, 1), -ECONNRESET);
}

void cut(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(fd);
}
