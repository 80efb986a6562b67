/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "service/net/diag.h"

#define OTHER 65534

typedef union Address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} Address;

static int diag_fd = FD_NONE;

/* mapped: the client is a socket of IPv6 that connects to ::ffff:127.0.0.1. */
typedef struct Pair {
	int listen_fd, client_fd, accepted_fd;
	pid_t client;
} Pair;

static void client_connect(Pair *pair, bool mapped)
{
	Address address = { 0 };
	socklen_t length = sizeof(address);

	assert_int_equal(getsockname(pair->listen_fd, &address.any, &length), 0);
	if (mapped) {
		in_port_t port = address.in.sin_port;

		address.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						     .sin6_port = port,
						     .sin6_addr.s6_addr = {
							     [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } };
		length = sizeof(address.in6);
	}
	pair->client_fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(pair->client_fd >= 0);
	assert_int_equal(connect(pair->client_fd, &address.any, length), 0);
}

/* Return: false when the machine has no such family. */
static bool pair_listen(Pair *pair, int family)
{
	Address address = { .in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	socklen_t length = sizeof(address.in6);

	*pair = (Pair){ FD_NONE, FD_NONE, FD_NONE, 0 };
	if (family == AF_INET) {
		address.in =
			(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
		length = sizeof(address.in);
	}
	pair->listen_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pair->listen_fd < 0 || bind(pair->listen_fd, &address.any, length) < 0) {
		close_fdp(&pair->listen_fd);
		return false;
	}
	assert_int_equal(listen(pair->listen_fd, 4), 0);
	return true;
}

static void pair_accept(Pair *pair)
{
	pair->accepted_fd = accept4(pair->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(pair->accepted_fd >= 0);
}

static void pair_done(Pair *pair)
{
	close_fdp(&pair->listen_fd);
	close_fdp(&pair->client_fd);
	close_fdp(&pair->accepted_fd);
}

static void expect_own(Pair *pair, bool mapped)
{
	uid_t uid = (uid_t)-1;

	client_connect(pair, mapped);
	pair_accept(pair);
	assert_int_equal(peer_owner(diag_fd, pair->accepted_fd, &uid), 0);
	assert_int_equal(uid, geteuid());
	/* Half closed it still has its owner. */
	assert_int_equal(shutdown(pair->client_fd, SHUT_WR), 0);
	assert_int_equal(peer_owner(diag_fd, pair->accepted_fd, &uid), 0);
}

static void test_own_sockets(void **state)
{
	Pair pair;

	assert_int_equal(peer_owner_test(diag_fd), 0);
	assert_true(pair_listen(&pair, AF_INET));
	expect_own(&pair, false);
	pair_done(&pair);
	if (!pair_listen(&pair, AF_INET6))
		return;
	expect_own(&pair, false);
	pair_done(&pair);
	assert_true(pair_listen(&pair, AF_INET));
	expect_own(&pair, true);
	pair_done(&pair);
}

/* A socket that its process closed belongs to nobody, and some kernels call that root. */
static void test_given_up(void **state)
{
	const struct linger now = { .l_onoff = 1 };

	for (int reset = 0; reset < 2; reset++) {
		uid_t uid = 4711;
		Pair pair;
		int r;

		assert_true(pair_listen(&pair, AF_INET));
		client_connect(&pair, false);
		assert_int_equal(send(pair.client_fd, "data", 4, 0), 4);
		if (reset)
			assert_int_equal(setsockopt(pair.client_fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)),
					 0);
		close_fdp(&pair.client_fd);
		pair_accept(&pair);
		r = peer_owner(diag_fd, pair.accepted_fd, &uid);
		assert_true(r == -ENOTCONN || r == -ENOENT || r == -EBADMSG);
		assert_int_equal(uid, 4711);
		pair_done(&pair);
	}
}

/*
 * A connection whose client is gone, with data, and a new socket at the client's address. Return: false when
 * the address is kept by what others connected from that port, for a minute (TIME-WAIT).
 */
static bool address_used_again(Pair *pair, int *ret_again)
{
	const struct linger now = { .l_onoff = 1 };
	const int on = 1;
	Address own = { 0 }, peer = { 0 };
	socklen_t length = sizeof(own);

	assert_true(pair_listen(pair, AF_INET));
	client_connect(pair, false);
	assert_int_equal(getsockname(pair->client_fd, &own.any, &length), 0);
	length = sizeof(peer);
	assert_int_equal(getpeername(pair->client_fd, &peer.any, &length), 0);
	assert_int_equal(send(pair->client_fd, "data", 4, 0), 4);
	assert_int_equal(setsockopt(pair->client_fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close_fdp(&pair->client_fd);
	*ret_again = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(*ret_again, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	if (bind(*ret_again, &own.any, sizeof(own.in)) < 0) {
		assert_int_equal(errno, EADDRINUSE);
		close_fdp(ret_again);
		pair_done(pair);
		return false;
	}
	assert_int_equal(connect(*ret_again, &peer.any, sizeof(peer.in)), 0);
	return true;
}

/* The other end's addresses are another's by now: what was accepted before is dead. */
static void test_addresses_used_again(void **state)
{
	uid_t uid = 4711;
	int again = FD_NONE, tries = 0;
	Pair pair;

	while (!address_used_again(&pair, &again))
		assert_true(++tries < 100);
	pair_accept(&pair);
	/* The first of the queue, of which the data can still be read. */
	assert_int_equal(peer_owner(diag_fd, pair.accepted_fd, &uid), -ENOTCONN);
	assert_int_equal(uid, 4711);
	close_fdp(&again);
	pair_done(&pair);
}

static void test_other_users(void **state)
{
	int ready[2], end[2], status;
	uid_t uid = 4711;
	char byte = 0;
	Pair pair;

	if (geteuid() != 0)
		skip();
	assert_true(pair_listen(&pair, AF_INET));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	pair.client = fork();
	assert_true(pair.client >= 0);
	if (pair.client == 0) {
		(void)close(end[1]);
		if (setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0)
			_exit(1);
		client_connect(&pair, false);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) < 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	pair_accept(&pair);
	assert_int_equal(peer_owner(diag_fd, pair.accepted_fd, &uid), 0);
	assert_int_equal(uid, OTHER);
	(void)close(end[1]);
	assert_int_equal(waitpid(pair.client, &status, 0), pair.client);
	assert_int_equal(status, 0);
	(void)close(end[0]);
	(void)close(ready[0]);
	(void)close(ready[1]);
	pair_done(&pair);
}

static void test_addresses(void **state)
{
	const PeerAddress ours = { { htonl(0x7f000001) }, htons(80) };
	const PeerAddress mapped = { { 0, 0, htonl(0xffff), htonl(0x7f000001) }, htons(80) };
	const PeerAddress compatible = { { 0, 0, 0, htonl(0x7f000001) }, htons(80) };
	const PeerAddress other_port = { { htonl(0x7f000001) }, htons(81) };

	assert_true(peer_address_equals(&ours, false, &ours, false));
	assert_true(peer_address_equals(&ours, false, &mapped, true));
	assert_false(peer_address_equals(&ours, false, &compatible, true));
	assert_false(peer_address_equals(&ours, false, &other_port, false));
	assert_false(peer_address_equals(&ours, false, &mapped, false));
	assert_true(peer_address_equals(&mapped, true, &mapped, true));
	assert_false(peer_address_equals(&ours, true, &ours, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_sockets),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_addresses_used_again),
		cmocka_unit_test(test_other_users),
		cmocka_unit_test(test_addresses),
	};

	if (peer_owner_open(&diag_fd) < 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
