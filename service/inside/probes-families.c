/* SPDX-License-Identifier: MIT */

/* Sockets of other kinds, and options that take rights. */

#include <linux/audit.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-socket.h"
#include "service/inside/probe-tables.h"

#define FAMILY_LAST 63
#ifndef TCP_REPAIR
#define TCP_REPAIR 19
#endif

static bool is_held(int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static void attempt_families(Probing *p)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW, SOCK_RDM };
	unsigned refused = 0;
	int ends[2];

	for (int family = 0; family <= FAMILY_LAST; family++)
		for (size_t i = 0; !is_held(family) && i < ELEMENTSOF(types); i++) {
			/* The kernel reads 32 bits of a family: what stands above must not hide it. */
			long fd = syscall(SYS_socket, (unsigned long)family | 1ul << 32,
					  types[i] | SOCK_CLOEXEC, 0);

			if (fd < 0)
				fd = syscall(SYS_socket, family, types[i] | SOCK_CLOEXEC, 0);
			if (fd < 0 && probing_is_starved(errno)) {
				probing_unclear(p, "family %d: %s", family, probing_error(errno));
				break;
			}
			if (fd < 0) {
				refused++;
				continue;
			}
			probing_escaped(p, "a socket of family %d, type %d", family, types[i]);
			(void)close((int)fd);
			break;
		}
	if (refused > 0)
		probing_blocked(p, "%u kinds are refused", refused);
	/* TIPC has pairs. */
	probing_result(p, socketpair(AF_TIPC, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "a pair of family %d",
		       AF_TIPC);
}

#ifdef __x86_64__
/* socketcall(2) keeps its family in memory: number 102 of 32 bits, SYS_SOCKET is 1. */
static void call_32(Probing *p, void *userdata)
{
	int *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long answer;

	if (low == MAP_FAILED)
		return;
	low[0] = AF_VSOCK;
	low[1] = SOCK_STREAM;
	low[2] = 0;
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(102l), "b"(1l), "c"((long)(uintptr_t)low)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = answer < 0 ? (int)-answer : 0;
	probing_result(p, answer < 0 ? -1 : 0, "socketcall of 32 bits");
	/* 359: socket. */
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(359l), "b"((long)AF_VSOCK), "c"((long)SOCK_STREAM), "d"(0l)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = answer < 0 ? (int)-answer : 0;
	probing_result(p, answer < 0 ? -1 : 0, "socket of 32 bits");
}
#endif

static void attempt_foreign(Probing *p)
{
#ifdef __x86_64__
	probing_apart(p, call_32, NULL);
#else
	probing_unclear(p, "this architecture has no other one whose calls could be made from here");
#endif
}

static void make_raw(Probing *p, const char *how)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} kinds[] = {
		{ "raw IPv4", AF_INET, SOCK_RAW, IPPROTO_RAW },
		{ "raw ICMP", AF_INET, SOCK_RAW, IPPROTO_ICMP },
		{ "raw TCP", AF_INET, SOCK_RAW, IPPROTO_TCP },
		{ "raw UDP", AF_INET, SOCK_RAW, IPPROTO_UDP },
		{ "raw IGMP", AF_INET, SOCK_RAW, IPPROTO_IGMP },
		{ "raw GRE", AF_INET, SOCK_RAW, IPPROTO_GRE },
		{ "raw IPv6", AF_INET6, SOCK_RAW, IPPROTO_RAW },
		{ "raw ICMPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
		{ "packets", AF_PACKET, SOCK_RAW, 0x0300 },
		{ "cooked packets", AF_PACKET, SOCK_DGRAM, 0x0300 },
		{ "old packets", AF_INET, SOCK_PACKET, 0x0300 },
	};

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, kinds[i].protocol);

		probing_result(p, fd, "%s%s", how, kinds[i].name);
		(void)close_fd(fd);
	}
}

static void raw_in_namespace(Probing *p, void *userdata)
{
	if (probing_unshare(p, 0, PROBE_UNMAPPED))
		make_raw(p, "as root of a namespace: ");
}

static void attempt_raw(Probing *p)
{
	make_raw(p, "");
	probing_apart(p, raw_in_namespace, NULL);
}

static void nothing(Probing *p, void *userdata)
{
}

/* Whoever may listen hears of each process of the machine that begins and ends; so one does. */
static void listen_to_processes(Probing *p)
{
	const struct cn_msg request = { .id = { .idx = CN_IDX_PROC, .val = CN_VAL_PROC },
					.len = sizeof(uint32_t) };
	const uint32_t operation = PROC_CN_MCAST_LISTEN;
	struct {
		struct nlmsghdr header;
		uint8_t payload[sizeof(request) + sizeof(operation)];
	} message = { .header = { .nlmsg_len = sizeof(message), .nlmsg_type = NLMSG_DONE } };
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	const struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	struct pollfd event = { .fd = fd, .events = POLLIN };

	memcpy(message.payload, &request, sizeof(request));
	memcpy(message.payload + sizeof(request), &operation, sizeof(operation));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&group, sizeof(group)) < 0 ||
	    send(fd, &message, sizeof(message), 0) < 0) {
		probing_refused(p, errno, "news of all processes");
		return;
	}
	probing_apart(p, nothing, NULL);
	if (poll(&event, 1, 50) > 0 && recv(fd, &message, sizeof(message), MSG_DONTWAIT) > 0)
		probing_escaped(p, "news of all processes come");
	else
		probing_blocked(p, "no news of processes come");
}

/* Other subsystems of netlink; each refuses before it reads on. */
static void attempt_netlink(Probing *p)
{
	static const int refusals[] = { EPERM,           EACCES,     ENOSYS,       ECONNREFUSED,
					EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT, 0 };
	static const struct {
		const char *name;
		int protocol;
		uint16_t type;
	} requests[] = {
		{ "audit settings", NETLINK_AUDIT, AUDIT_SET },
		{ "audit messages", NETLINK_AUDIT, AUDIT_USER },
		{ "netfilter tables", NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 },
		{ "connection tracking", NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK << 8 },
		{ "IPsec", NETLINK_XFRM, XFRM_MSG_FLUSHPOLICY },
		{ "SELinux", NETLINK_SELINUX, 1 },
		{ "SCSI", NETLINK_SCSITRANSPORT, 1 },
		{ "cryptography", NETLINK_CRYPTO, 0x10 },
	};
	static const uint8_t zeros[4];
	const struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_AUDIT);

	probing_rights(p, fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&group, sizeof(group)), refusals,
		       "reading the audit log");
	for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
		/* Too short to mean anything. */
		int r = probe_netlink(requests[i].protocol, requests[i].type, 0, zeros, sizeof(zeros));

		errno = r < 0 ? -r : 0;
		probing_rights(p, r < 0 ? -1 : 0, refusals, "%s", requests[i].name);
	}
	listen_to_processes(p);
}

static void set_options(Probing *p, const char *how)
{
	static const struct {
		const char *name;
		int type, level, option, value;
	} options[] = {
		{ "SO_MARK", SOCK_DGRAM, SOL_SOCKET, SO_MARK, 1 },
		{ "SO_RCVBUFFORCE", SOCK_DGRAM, SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20 },
		{ "SO_SNDBUFFORCE", SOCK_DGRAM, SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20 },
		{ "SO_PRIORITY 7", SOCK_DGRAM, SOL_SOCKET, SO_PRIORITY, 7 },
		{ "SO_DEBUG", SOCK_STREAM, SOL_SOCKET, SO_DEBUG, 1 },
		{ "IP_TRANSPARENT", SOCK_DGRAM, IPPROTO_IP, IP_TRANSPARENT, 1 },
		{ "TCP_REPAIR", SOCK_STREAM, IPPROTO_TCP, TCP_REPAIR, 1 },
	};

	for (size_t i = 0; i < ELEMENTSOF(options); i++) {
		_cleanup_close_ int fd = socket(AF_INET, options[i].type | SOCK_CLOEXEC, 0);

		probing_result(p,
			       fd < 0 ? -1
				      : setsockopt(fd, options[i].level, options[i].option, &options[i].value,
						   sizeof(options[i].value)),
			       "%s%s", how, options[i].name);
	}
}

static void options_in_namespace(Probing *p, void *userdata)
{
	if (probing_unshare(p, 0, PROBE_UNMAPPED))
		set_options(p, "as root of a namespace: ");
}

static void attempt_options(Probing *p)
{
	set_options(p, "");
	probing_apart(p, options_in_namespace, NULL);
}

const Probe probes_families[] = {
	{ "p72", "no sockets of other families", "the hypervisor (vsock), kernel code that nobody needs",
	  attempt_families },
	{ "p73", "no socket of another family by calls of other architectures",
	  "the same, by numbers that mean something else", attempt_foreign },
	{ "p74", "no raw or packet sockets", "packets that no route has judged", attempt_raw },
	{ "p75", "no other subsystems by netlink", "audit, packet filters, IPsec, news of all processes",
	  attempt_netlink },
	{ "p76", "no socket options that take rights",
	  "other addresses as a sender's, other routes by a mark", attempt_options },
};
const size_t probes_families_count = ELEMENTSOF(probes_families);
