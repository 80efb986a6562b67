/* SPDX-License-Identifier: MIT */

/*
 * Which sockets the filter allows: every family, type and protocol, by the calls of each architecture that this
 * kernel runs. The kernel itself makes none of them, since each is asked for with a flag that it does not have:
 * its own answer is EINVAL, before it looks for anything.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/inside/filter.h"

#define NO_FLAG 0x10
#define FAMILIES 64
#define TYPES 16
#define PROTOCOLS 264

typedef long (*SocketCall)(long family, long type, long protocol); /* Return: negative errno */

static int internet_answer(int type, int protocol, int echo)
{
	if (type == SOCK_RAW)
		return EPERM;
	if (type == SOCK_STREAM)
		return protocol == 0 || protocol == IPPROTO_TCP ? EINVAL : EPROTONOSUPPORT;
	if (type == SOCK_DGRAM)
		return protocol == 0 || protocol == IPPROTO_UDP || protocol == echo ? EINVAL
										    : EPROTONOSUPPORT;
	return ESOCKTNOSUPPORT;
}

static int right_answer(int family, int type, int protocol)
{
	switch (family) {
	case AF_UNIX:
		return EINVAL;
	case AF_INET:
		return internet_answer(type, protocol, IPPROTO_ICMP);
	case AF_INET6:
		return internet_answer(type, protocol, IPPROTO_ICMPV6);
	case AF_NETLINK:
		return protocol == NETLINK_ROUTE || protocol == NETLINK_SOCK_DIAG ||
				       protocol == NETLINK_KOBJECT_UEVENT
			       ? EINVAL
			       : EPROTONOSUPPORT;
	default:
		return EAFNOSUPPORT;
	}
}

/* By its protocols. */
static bool is_judged(int family)
{
	return family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static long native_socket(long family, long type, long protocol)
{
	return syscall(SYS_socket, family, type, protocol) < 0 ? -errno : 0;
}

static long native_pair(long family, long type, long protocol)
{
	return syscall(SYS_socketpair, family, type, protocol, NULL) < 0 ? -errno : 0;
}

#ifdef __x86_64__
static long call_32(long number, long a, long b, long c, long d)
{
	long answer;

	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)answer;
}

/* asm/unistd_32.h */
static long socket_32(long family, long type, long protocol)
{
	return call_32(359, family, type, protocol, 0);
}

static long pair_32(long family, long type, long protocol)
{
	return call_32(360, family, type, protocol, 0);
}
#endif

/* Return: how many answers are others than they should be. */
static unsigned count_wrong(SocketCall call)
{
	unsigned wrong = 0;

	for (int family = -1; family < FAMILIES; family++)
		for (int type = 0; type < TYPES; type++)
			for (int protocol = -1; protocol < (is_judged(family) ? PROTOCOLS : 2); protocol++) {
				long answer = -call(family, type | NO_FLAG, protocol);

				if (answer == right_answer(family, type, protocol))
					continue;
				if (wrong++ < 10)
					print_error("socket(%d, %d, %d): %s\n", family, type, protocol,
						    strerrorname_np((int)answer) ?: "done");
			}
	return wrong;
}

static unsigned count_wrong_pairs(SocketCall call)
{
	unsigned wrong = 0;

	for (int family = -1; family < FAMILIES; family++) {
		long answer = -call(family, SOCK_STREAM | NO_FLAG, 0);

		if (answer == (family == AF_UNIX ? EINVAL : EAFNOSUPPORT))
			continue;
		wrong++;
		print_error("socketpair(%d): %s\n", family, strerrorname_np((int)answer) ?: "done");
	}
	return wrong;
}

static void in_child(unsigned (*count)(SocketCall call), SocketCall call)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(false) < 0)
			_exit(2);
		_exit(count(call) > 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void these_sockets_and_no_others(void **state)
{
	in_child(count_wrong, native_socket);
	in_child(count_wrong_pairs, native_pair);
}

static void the_same_by_calls_of_32_bits(void **state)
{
#ifdef __x86_64__
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(call_32(20, 0, 0, 0, 0) == getpid() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0) {
		print_message("this kernel runs no 32-bit programs\n");
		skip();
	}
	in_child(count_wrong, socket_32);
	in_child(count_wrong_pairs, pair_32);
#endif
}

/* What is above the 32 bits that the kernel reads hides nothing, and what it allows is made. */
static unsigned count_wrong_others(SocketCall call)
{
	static const long high = 0x100000000l;
	static const struct {
		long family, type, protocol, answer;
	} cases[] = {
		{ AF_INET | high, SOCK_STREAM | NO_FLAG, IPPROTO_SCTP, -EPROTONOSUPPORT },
		{ AF_INET, SOCK_STREAM | NO_FLAG | high, IPPROTO_SCTP, -EPROTONOSUPPORT },
		{ AF_INET, SOCK_STREAM | NO_FLAG, IPPROTO_SCTP | high, -EPROTONOSUPPORT },
		{ AF_NETLINK | high, SOCK_RAW | NO_FLAG, NETLINK_NETFILTER | high, -EPROTONOSUPPORT },
		{ AF_VSOCK | high, SOCK_STREAM | NO_FLAG, 0, -EAFNOSUPPORT },
		{ AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0 },
		{ AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP, 0 },
		{ AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP, 0 },
		{ AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE, 0 },
		{ AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT, 0 },
	};
	unsigned wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		if (call(cases[i].family, cases[i].type, cases[i].protocol) != cases[i].answer) {
			print_error("case %zu\n", i);
			wrong++;
		}
	return wrong;
}

static void by_32_bits_of_each(void **state)
{
	in_child(count_wrong_others, native_socket);
}

/* Requests that have a module loaded; of the kernel's own answers none is one of these. */
static unsigned count_wrong_requests(SocketCall call)
{
	static const struct {
		unsigned long request;
		int answer;
	} requests[] = { { TIOCSETD, EPERM },     { SIOCGIFBR, ENOPKG },   { SIOCSIFBR, ENOPKG },
			 { SIOCBRADDBR, ENOPKG }, { SIOCBRDELBR, ENOPKG }, { SIOCGIFVLAN, ENOPKG },
			 { SIOCSIFVLAN, ENOPKG }, { TIOCGETD, EBADF },     { SIOCGIFINDEX, EBADF },
			 { SIOCGIFCONF, EBADF } };
	static const struct {
		int level, option, answer;
	} options[] = { { IPPROTO_IP, 64, ENOPROTOOPT },
			{ IPPROTO_IP, 67, ENOPROTOOPT },
			{ IPPROTO_IP, 96, ENOPROTOOPT },
			{ IPPROTO_IP, 131, ENOPROTOOPT },
			{ IPPROTO_IPV6, 64, ENOPROTOOPT },
			{ IPPROTO_IPV6, 69, ENOPROTOOPT },
			{ IPPROTO_IPV6, IPV6_TCLASS, EBADF },
			{ IPPROTO_IPV6, IPV6_RECVTCLASS, EBADF },
			{ IPPROTO_IPV6, 70, EBADF },
			{ IPPROTO_IP, IP_TOS, EBADF },
			{ IPPROTO_IP, 132, EBADF },
			{ IPPROTO_TCP, 64, EBADF },
			{ SOL_SOCKET, 64, EBADF } };
	unsigned wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(requests); i++)
		if (ioctl(-1, requests[i].request, NULL) >= 0 || errno != requests[i].answer) {
			print_error("ioctl %#lx: %s\n", requests[i].request, strerrorname_np(errno));
			wrong++;
		}
	for (size_t i = 0; i < ELEMENTSOF(options); i++)
		for (unsigned get = 0; get < 2; get++)
			if (syscall(get ? SYS_getsockopt : SYS_setsockopt, -1, options[i].level,
				    options[i].option, NULL, 0) >= 0 ||
			    errno != options[i].answer) {
				print_error("option %d of %d: %s\n", options[i].option, options[i].level,
					    strerrorname_np(errno));
				wrong++;
			}
	return wrong;
}

static void requests_load_nothing(void **state)
{
	in_child(count_wrong_requests, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(these_sockets_and_no_others),
		cmocka_unit_test(the_same_by_calls_of_32_bits),
		cmocka_unit_test(by_32_bits_of_each),
		cmocka_unit_test(requests_load_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
