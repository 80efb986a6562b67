/* SPDX-License-Identifier: MIT */

/* What has become of a connect(2), by what the kernel does on the loopback. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "dbus/base.h"
#include "service/link/stream-outcome.h"

#define LIMIT_MSEC 10000

static struct sockaddr_in address;

/* Return: a listener whose address is in address. */
static int listener_make(int backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);

	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static int connect_begin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_true(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
		    errno == EINPROGRESS || errno == ECONNREFUSED);
	return fd;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, LIMIT_MSEC), 1);
}

static int socket_error(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	return error;
}

static void connected(void **state)
{
	_cleanup_close_ int listen_fd = listener_make(4), fd = connect_begin();
	_cleanup_close_ int accepted_fd = FD_NONE;

	wait_for(fd, POLLOUT);
	assert_int_equal(stream_outcome(fd), 0);
	/* And when the other side has closed it. */
	accepted_fd = accept(listen_fd, NULL, NULL);
	assert_true(accepted_fd >= 0);
	accepted_fd = close_fd(accepted_fd);
	wait_for(fd, POLLIN);
	assert_int_equal(stream_outcome(fd), 0);
}

/* Who listens and has no room left does not answer: no error, and no connection. */
static void under_way(void **state)
{
	_cleanup_close_ _unused_ int listen_fd = listener_make(0);
	int fds[4], waiting = 0;

	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		fds[i] = connect_begin();
	wait_for(fds[0], POLLOUT);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
		int r = stream_outcome(fds[i]);

		if (r == -EINPROGRESS) {
			assert_int_equal(socket_error(fds[i]), 0);
			waiting++;
		} else {
			assert_int_equal(r, 0);
		}
	}
	assert_true(waiting > 0);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		(void)close(fds[i]);
}

static void refused(void **state)
{
	int listen_fd = listener_make(4);
	_cleanup_close_ int fd = FD_NONE;

	(void)close(listen_fd);
	fd = connect_begin();
	wait_for(fd, POLLOUT);
	/* It is said once; what is asked again is no connection either. */
	assert_true(stream_outcome(fd) < 0);
	assert_int_equal(stream_outcome(fd), -ENOTCONN);
}

static void no_stream(void **state)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(stream_outcome(fd) < 0);
	assert_int_equal(stream_outcome(-1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connected),
		cmocka_unit_test(under_way),
		cmocka_unit_test(refused),
		cmocka_unit_test(no_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
