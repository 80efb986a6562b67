/* SPDX-License-Identifier: MIT */

/* What the network rows are made of, each in a network namespace of its own that holds nothing but lo. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "service/inside/battery.h"
#include "service/inside/checks.h"
#include "service/inside/dump.h"

#define LOOPBACK 0x7f000001u
#define PORT 5432

static int in_namespace(int (*function)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
		int fd;

		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
			_exit(77);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
			_exit(78);
		(void)close(fd);
		_exit(function());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Return: a line's number, or 0. */
#define CHECK(condition)                               \
	do {                                           \
		if (!(condition))                      \
			return (__LINE__ & 0xff) ?: 1; \
	} while (0)

/* A socket that is bound to a port of 127.0.0.1. */
static int bound(int type, uint16_t port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return fd;
}

/* ---- listeners ---- */

static void run_listeners(Battery *b)
{
	check_listeners(b);
	battery_pass(b, "none");
}

static int failures(const Expectations *e)
{
	static const Check check[] = { { "20", "listeners", run_listeners } };
	_cleanup_(battery_freep) Battery *b = NULL;
	int pair[2], failed;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	b = battery_new(e, pair[1]);
	if (!b)
		return -1;
	battery_run(b, check, 1);
	failed = battery_failed(b);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return failed;
}

static int listeners_are_found(void)
{
	static uint16_t port = PORT;
	const Expectations none = { .jailed = true }, joined = { .joined = true },
			   local = { .local_ports = &port, .n_local_ports = 1 };
	int fd;

	CHECK(failures(&none) == 0);
	fd = bound(SOCK_STREAM, PORT);
	/* Bound alone is no listener. */
	CHECK(fd >= 0 && failures(&none) == 0);
	CHECK(listen(fd, 1) == 0 && failures(&none) == 1);
	CHECK(failures(&local) == 0);
	CHECK(failures(&joined) == 0);
	(void)close(fd);
	CHECK(failures(&none) == 0);
	fd = bound(SOCK_DGRAM, PORT);
	CHECK(fd >= 0 && failures(&none) == 1);
	CHECK(failures(&local) == 1);
	return 0;
}

static void test_listeners(void **state)
{
	assert_int_equal(in_namespace(listeners_are_found), 0);
}

/* ---- what the kernel says ---- */

static int count_links(void *userdata, const struct nlmsghdr *header)
{
	unsigned *n = userdata;
	const struct rtattr *slots[IFLA_IFNAME + 1];

	if (header->nlmsg_type != RTM_NEWLINK ||
	    dump_attributes(header, sizeof(struct ifinfomsg), slots, ELEMENTSOF(slots)) < 0 ||
	    !slots[IFLA_IFNAME])
		return -EBADMSG;
	*n += streq(RTA_DATA(slots[IFLA_IFNAME]), "lo");
	return 0;
}

static int find_loopback(void *userdata, const struct nlmsghdr *header)
{
	const struct rtattr *slots[IFA_LOCAL + 1];

	if (dump_attributes(header, sizeof(struct ifaddrmsg), slots, ELEMENTSOF(slots)) < 0)
		return -EBADMSG;
	return dump_address(slots[IFA_LOCAL]) == LOOPBACK ? 42 : 0;
}

static int dumps_are_read(void)
{
	unsigned n = 0;
	uint8_t type = 0;
	uint32_t device = 0;

	CHECK(dump_each(RTM_GETLINK, AF_UNSPEC, count_links, &n) == 0 && n == 1);
	CHECK(dump_each(RTM_GETADDR, AF_INET, find_loopback, NULL) == 42);
	CHECK(dump_lookup(LOOPBACK, &type, &device) == 0 && type == RTN_LOCAL &&
	      device == if_nametoindex("lo"));
	CHECK(dump_lookup(0x08080808, &type, &device) == -ENETUNREACH);
	return 0;
}

static void test_dumps(void **state)
{
	assert_int_equal(in_namespace(dumps_are_read), 0);
}

/* ---- the name server ---- */

/* Answers one question, or everything but it. */
static pid_t name_server(int fd, bool answers)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		uint8_t packet[512];
		ssize_t n;

		while ((n = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size)) > 0) {
			packet[2] |= 0x80;
			packet[1] ^= !answers;
			(void)sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, size);
		}
		_exit(0);
	}
	return pid;
}

static int names_are_asked_for(void)
{
	pid_t pid;
	int fd, status;

	CHECK(dns_ask(LOOPBACK, 200) == -ECONNREFUSED);
	CHECK(dns_ask(0x08080808, 200) == -ENETUNREACH);
	fd = bound(SOCK_DGRAM, 53);
	CHECK(fd >= 0 && dns_ask(LOOPBACK, 50) == -ETIME);
	for (int answers = 0; answers < 2; answers++) {
		pid = name_server(fd, answers);
		CHECK(pid > 0);
		CHECK(answers ? dns_ask(LOOPBACK, 5000) >= 0 : dns_ask(LOOPBACK, 100) == -ETIME);
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	}
	return 0;
}

static void test_names(void **state)
{
	assert_int_equal(in_namespace(names_are_asked_for), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listeners),
		cmocka_unit_test(test_dumps),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
