/* SPDX-License-Identifier: MIT */

/* Sockets of other kinds, and options that take rights. */

#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

#define FAMILY_LAST 63
#ifndef TCP_REPAIR
#define TCP_REPAIR 19
#endif

/*
 * What the kernel has in a module, a question for it would load, for everybody on this machine. So such a
 * question is made with a flag that socket(2) does not have: the filter, which does not look at it, answers
 * first; without the filter the kernel refuses the flag before it looks for anything (EINVAL).
 */
#define NO_FLAG 0x10

static const int filter_refusals[] = { EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT, EPERM, ENOSYS, 0 };

static bool is_held(int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static void attempt_families(Probing *p)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW, SOCK_RDM };
	static const int pairs[] = { AF_TIPC, AF_INET, AF_NETLINK };
	unsigned refused = 0;
	int ends[2];

	for (int family = 0; family <= FAMILY_LAST; family++)
		for (size_t i = 0; !is_held(family) && i < 2 * ELEMENTSOF(types); i++) {
			/* The kernel reads 32 bits of a family: what stands above must not hide it. */
			unsigned long high = (unsigned long)(i & 1) << 32;
			int type = types[i / 2];

			if (syscall(SYS_socket, (unsigned long)family | high, type | NO_FLAG, 0) < 0 &&
			    errno == EAFNOSUPPORT) {
				refused++;
				continue;
			}
			probing_escaped(p, "a socket of family %d, type %d, is not refused", family, type);
			break;
		}
	if (refused > 0)
		probing_blocked(p, "%u kinds are refused", refused);
	for (size_t i = 0; i < ELEMENTSOF(pairs); i++)
		probing_rights(p, socketpair(pairs[i], SOCK_STREAM | NO_FLAG, 0, ends), filter_refusals,
			       "a pair of family %d", pairs[i]);
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
	low[1] = SOCK_STREAM | NO_FLAG;
	low[2] = 0;
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(102l), "b"(1l), "c"((long)(uintptr_t)low)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = answer < 0 ? (int)-answer : 0;
	probing_rights(p, answer < 0 ? -1 : 0, filter_refusals, "socketcall of 32 bits");
	/* 359: socket. */
	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(359l), "b"((long)AF_VSOCK), "c"((long)SOCK_STREAM | NO_FLAG), "d"(0l)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = answer < 0 ? (int)-answer : 0;
	probing_rights(p, answer < 0 ? -1 : 0, filter_refusals, "socket of 32 bits");
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

#define SOCKET(name, family, type, protocol, refusals) \
	PROBE_CALL(name, SYS_socket, refusals, family, type, protocol)

static const ProbeCall raw_sockets[] = {
	SOCKET("raw IPv4", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW, NULL),
	SOCKET("raw ICMP", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP, NULL),
	SOCKET("raw TCP", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP, NULL),
	SOCKET("raw UDP", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP, NULL),
	SOCKET("raw IGMP", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_IGMP, NULL),
	SOCKET("raw GRE", AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_GRE, NULL),
	SOCKET("raw IPv6", AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW, NULL),
	SOCKET("raw ICMPv6", AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6, NULL),
	SOCKET("packets", AF_PACKET, SOCK_RAW | NO_FLAG, 0x0300, filter_refusals),
	SOCKET("cooked packets", AF_PACKET, SOCK_DGRAM | NO_FLAG, 0x0300, filter_refusals),
	SOCKET("old packets", AF_INET, SOCK_PACKET | NO_FLAG, 0x0300, filter_refusals),
	{ 0 },
};

static void raw_in_namespace(Probing *p, void *userdata)
{
	if (probing_unshare(p, 0, PROBE_UNMAPPED))
		probing_calls(p, raw_sockets, "as root of a namespace: ");
}

static void attempt_raw(Probing *p)
{
	probing_apart(p, raw_in_namespace, NULL);
}

/* Other subsystems of netlink: those that are there, those that a module would bring, and one that is none. */
#define SUBSYSTEM(name, protocol) \
	PROBE_CALL(name, SYS_socket, filter_refusals, AF_NETLINK, SOCK_DGRAM | NO_FLAG, protocol)

static const ProbeCall subsystems[] = {
	SUBSYSTEM("other programs' messages", NETLINK_USERSOCK),
	SUBSYSTEM("queued packets", 3),
	SUBSYSTEM("logged packets", NETLINK_NFLOG),
	SUBSYSTEM("IPsec", NETLINK_XFRM),
	SUBSYSTEM("SELinux", NETLINK_SELINUX),
	SUBSYSTEM("iSCSI", NETLINK_ISCSI),
	SUBSYSTEM("audit", NETLINK_AUDIT),
	SUBSYSTEM("looking up routes", NETLINK_FIB_LOOKUP),
	SUBSYSTEM("news of all processes", NETLINK_CONNECTOR),
	SUBSYSTEM("packet filters", NETLINK_NETFILTER),
	SUBSYSTEM("DECnet", NETLINK_DNRTMSG),
	SUBSYSTEM("other subsystems by name", NETLINK_GENERIC),
	SUBSYSTEM("SCSI", NETLINK_SCSITRANSPORT),
	SUBSYSTEM("eCryptfs", NETLINK_ECRYPTFS),
	SUBSYSTEM("RDMA", NETLINK_RDMA),
	SUBSYSTEM("cryptography", NETLINK_CRYPTO),
	SUBSYSTEM("SMC", NETLINK_SMC),
	SUBSYSTEM("a subsystem of a newer kernel", MAX_LINKS - 1),
	{ 0 },
};

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
	{ "p74", "no raw or packet sockets", "packets that no route has judged", attempt_raw,
	  .calls = raw_sockets },
	{ "p75", "no other subsystems by netlink", "audit, packet filters, IPsec, news of all processes",
	  .calls = subsystems },
	{ "p76", "no socket options that take rights",
	  "other addresses as a sender's, other routes by a mark", attempt_options },
};
const size_t probes_families_count = ELEMENTSOF(probes_families);
