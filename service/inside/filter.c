/* SPDX-License-Identifier: MIT */
#include "service/inside/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/filter-add.h"

/*
 * Why: a file with S_ISUID or S_ISGID that an agent leaves in the workspace gives every other local user the
 * rights of the caller, outside, without a jail. So:
 *
 *   - a mode with one of the two bits is refused wherever a mode is set or a file is made (EPERM); not where
 * a directory is made, since mkdir(2) takes neither bit from its mode, and cp -a passes on what it read;
 *   - openat2(2) and io_uring hand their modes over in memory, where no filter sees them: ENOSYS, and
 * programs fall back to openat(2) and to read and write;
 *   - a call that is newer than this list could be one more of that kind: ENOSYS, as an older kernel answers.
 * The same border shuts out x32, which nothing uses, and whose numbers some kernels also take without their
 * bit;
 *   - root's sessions get no user namespace: an overlay mounted in one copies set-id files up without any
 * call that carries a mode;
 *   - a mount namespace is a copy of the one that its maker is in: what the session put below the jail's
 * root (service/session/anchors.h) holds in copies alone. The flags of Linux 7 that make an empty one, or one
 * of a single mount: EINVAL, as an older kernel answers. clone3(2) keeps its flags in memory: ENOSYS, and
 * libc falls back to clone(2);
 *   - sockets of the families that the network namespace holds, and of no other: AF_VSOCK, for one, reaches
 * the hypervisor from any namespace. Of these families only what agents and their tools use: TCP, UDP, ICMP's
 * echo, and the subsystems of netlink for routes, devices and sockets. To ask for any other makes the kernel
 * load the module that has it, for everybody on this machine (socket(2): SCTP, L2TP; netlink: iSCSI, RDMA,
 * netfilter). socketcall(2), the 32-bit x86 way, keeps all of this in memory: ENOSYS;
 *   - no request for bridges, VLANs, the tables of iptables, or another line discipline of a terminal: each
 * loads a module before the kernel asks for any right;
 *   - no key management: the person's keyrings (keyrings(7)) are found by uid, which no namespace here
 * changes, and a key that the uid may link can be read. ENOSYS, as of a kernel without it;
 *   - no leases and delegations: who owns a file may have them also where it is mounted read-only, and every
 * other program that opens the file, or changes the directory, then waits for 45 s and longer. From root's
 * jail that would be /etc/passwd;
 *   - TIOCSTI and TIOCLINUX type into a terminal or paste into a console;
 *   - every architecture whose programs the kernel runs has the same rules; a call of another one kills.
 *
 * The answer is an errno, not a signal: tar, cp and chmod report it and go on.
 *
 * Two filters make it up. libseccomp writes the one that has rules by name. The second is for numbers that
 * the oldest libseccomp we build with (2.5.4) has no names for; it is the same for all architectures, because
 * since Linux 5.1 they number new calls alike. The kernel runs both and the stricter answer holds
 * (seccomp(2)).
 */

#define NUMBER_FCHMODAT2 452u
#define NUMBER_OPEN_TREE_ATTR 467u
/* The newest call whose arguments are known to set no mode: file_setattr(2), Linux 6.17. */
#define NUMBER_NEWEST 469u
/* The private calls of 32-bit ARM, from __ARM_NR_BASE (asm/unistd.h) on. */
#define NUMBER_ARM_FIRST 0x0f0000u
#define NUMBER_ARM_LAST 0x0fffffu
/* A debugger's way to say "no call" (ptrace(2)): an answer of ours would replace the one that it gave. */
#define NUMBER_NONE 0xffffffffu

/* The same on every architecture that we filter; libc's O_TMPFILE contains O_DIRECTORY, which moves. */
#define FLAG_TMPFILE 020000000u

/* include/uapi/linux/mount.h and sched.h of Linux 7.1; the headers that we build with are older. */
#define FLAG_OPEN_TREE_NAMESPACE 0x2u
#define FLAG_FSMOUNT_NAMESPACE 0x2u
#define FLAG_UNSHARE_EMPTY_MNTNS 0x00100000u

/* F_SETDELEG of fcntl(2), Linux 6.19. */
#define COMMAND_SETDELEG 1040u

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#if defined(__x86_64__)
static const uint32_t ARCHITECTURES[] = { SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32 };
#elif defined(__aarch64__)
static const uint32_t ARCHITECTURES[] = { SCMP_ARCH_AARCH64, SCMP_ARCH_ARM };
#else
#error "filter: list the architectures that this kernel runs"
#endif

static const mode_t SET_ID_BITS[] = { S_ISUID, S_ISGID };

typedef struct ModeRule {
	FilterRefusal refusal;
	int call;
	unsigned mode_argument;
	int flags_argument; /* the mode counts only with O_CREAT or O_TMPFILE here; -1: always */
} ModeRule;

static const ModeRule MODE_RULES[] = {
	{ REFUSAL_CHMOD, SCMP_SYS(chmod), 1, -1 },       { REFUSAL_FCHMOD, SCMP_SYS(fchmod), 1, -1 },
	{ REFUSAL_FCHMODAT, SCMP_SYS(fchmodat), 2, -1 }, { REFUSAL_MKNOD, SCMP_SYS(mknod), 1, -1 },
	{ REFUSAL_MKNODAT, SCMP_SYS(mknodat), 2, -1 },   { REFUSAL_CREAT, SCMP_SYS(creat), 1, -1 },
	{ REFUSAL_MQ_OPEN, SCMP_SYS(mq_open), 2, -1 },   { REFUSAL_OPEN, SCMP_SYS(open), 2, 1 },
	{ REFUSAL_OPENAT, SCMP_SYS(openat), 3, 2 },
};

typedef struct CallRule {
	FilterRefusal refusal;
	int call;
} CallRule;

static const CallRule ABSENT_CALLS[] = {
	{ REFUSAL_OPENAT2, SCMP_SYS(openat2) },
	{ REFUSAL_IO_URING_SETUP, SCMP_SYS(io_uring_setup) },
	{ REFUSAL_IO_URING_ENTER, SCMP_SYS(io_uring_enter) },
	{ REFUSAL_IO_URING_REGISTER, SCMP_SYS(io_uring_register) },
	{ REFUSAL_ADD_KEY, SCMP_SYS(add_key) },
	{ REFUSAL_REQUEST_KEY, SCMP_SYS(request_key) },
	{ REFUSAL_KEYCTL, SCMP_SYS(keyctl) },
	{ REFUSAL_CLONE3, SCMP_SYS(clone3) },
};

/* ioctl(2) */
static const struct {
	FilterRefusal refusal;
	unsigned request;
} REQUESTS[] = {
	{ REFUSAL_TYPE, TIOCSTI },       { REFUSAL_PASTE, TIOCLINUX },  { REFUSAL_LINE_DISCIPLINE, TIOCSETD },
	{ REFUSAL_BRIDGE, SIOCGIFBR },   { REFUSAL_BRIDGE, SIOCSIFBR }, { REFUSAL_BRIDGE, SIOCBRADDBR },
	{ REFUSAL_BRIDGE, SIOCBRDELBR }, { REFUSAL_VLAN, SIOCGIFVLAN }, { REFUSAL_VLAN, SIOCSIFVLAN },
};

/*
 * The options of iptables and its kin (linux/netfilter_ipv4/ip_tables.h, netfilter_arp/arp_tables.h,
 * netfilter_bridge/ebtables.h, netfilter_ipv6/ip6_tables.h), in blocks of a power of 2. No other option has
 * one of these numbers: IPv6 leaves 64, 65, 68 and 69 free for them (linux/in6.h).
 */
static const struct {
	unsigned level, first, size;
} TABLE_OPTIONS[] = {
	{ IPPROTO_IP, 64, 4 },   { IPPROTO_IP, 96, 4 },   { IPPROTO_IP, 128, 4 },
	{ IPPROTO_IPV6, 64, 2 }, { IPPROTO_IPV6, 68, 2 },
};

/* A set of numbers that the kernel reads as 32 bits. */
typedef struct Numbers {
	const unsigned *numbers;
	size_t n;
} Numbers;

#define NUMBERS(...)                                                               \
	{                                                                          \
		.numbers = (const unsigned[]){ __VA_ARGS__ },                      \
		.n = sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned), \
	}

/* Names, IPv4, IPv6 (which is off, and is refused as natively without it) and netlink, which libc itself
 * uses. */
static const Numbers FAMILIES = NUMBERS(AF_UNIX, AF_INET, AF_INET6, AF_NETLINK);
static const Numbers PAIR_FAMILIES = NUMBERS(AF_UNIX);

/* The kernel's SOCK_TYPE_MASK (include/linux/net.h): above it are SOCK_CLOEXEC and SOCK_NONBLOCK. */
#define TYPE_MASK 0xfu
/* Raw sockets need a right that nobody has in the jail's network; they have an answer of their own below. */
static const Numbers INTERNET_TYPES = NUMBERS(SOCK_STREAM, SOCK_DGRAM, SOCK_RAW);

/* What a socket of that family and type may be for; 0 is the usual protocol of the type. */
static const struct {
	unsigned family;
	int type; /* -1: any */
	Numbers protocols;
} PROTOCOLS[] = {
	{ AF_INET, SOCK_STREAM, NUMBERS(0, IPPROTO_TCP) },
	{ AF_INET, SOCK_DGRAM, NUMBERS(0, IPPROTO_UDP, IPPROTO_ICMP) },
	{ AF_INET6, SOCK_STREAM, NUMBERS(0, IPPROTO_TCP) },
	{ AF_INET6, SOCK_DGRAM, NUMBERS(0, IPPROTO_UDP, IPPROTO_ICMPV6) },
	{ AF_NETLINK, -1, NUMBERS(NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT) },
};

static scmp_filter_ctx context_free(scmp_filter_ctx context)
{
	seccomp_release(context);
	return NULL;
}

static void context_freep(scmp_filter_ctx *context)
{
	if (*context)
		*context = context_free(*context);
}

/* A rule with one condition. */
static int add_rule(scmp_filter_ctx context, FilterRefusal refusal, int call, struct scmp_arg_cmp condition)
{
	return filter_add(context, refusal, call, 1, &condition);
}

static int add_mode_rule(scmp_filter_ctx context, const ModeRule *rule)
{
	static const unsigned creating[] = { O_CREAT, FLAG_TMPFILE };
	int r;

	for (size_t i = 0; i < ELEMENTSOF(SET_ID_BITS); i++) {
		struct scmp_arg_cmp mode =
			SCMP_CMP(rule->mode_argument, SCMP_CMP_MASKED_EQ, SET_ID_BITS[i], SET_ID_BITS[i]);

		if (rule->flags_argument < 0) {
			r = add_rule(context, rule->refusal, rule->call, mode);
			if (r < 0)
				return r;
			continue;
		}
		for (size_t j = 0; j < ELEMENTSOF(creating); j++) {
			const struct scmp_arg_cmp both[] = { mode, SCMP_CMP((unsigned)rule->flags_argument,
									    SCMP_CMP_MASKED_EQ, creating[j],
									    creating[j]) };

			r = filter_add(context, rule->refusal, rule->call, ELEMENTSOF(both), both);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* The kernel reads a request as 32 bits: what stands above them must not hide it. */
static int add_ioctl_rule(scmp_filter_ctx context, FilterRefusal refusal, unsigned request)
{
	return add_rule(context, refusal, SCMP_SYS(ioctl),
			SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xffffffffu, request));
}

static int add_table_rules(scmp_filter_ctx context)
{
	static const int calls[] = { SCMP_SYS(setsockopt), SCMP_SYS(getsockopt) };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		for (size_t j = 0; r == 0 && j < ELEMENTSOF(TABLE_OPTIONS); j++) {
			const struct scmp_arg_cmp option[] = {
				SCMP_CMP(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, TABLE_OPTIONS[j].level),
				SCMP_CMP(2, SCMP_CMP_MASKED_EQ, ~(TABLE_OPTIONS[j].size - 1),
					 TABLE_OPTIONS[j].first)
			};

			r = filter_add(context, REFUSAL_TABLES, calls[i], ELEMENTSOF(option), option);
		}
	return r;
}

/* The kernel reads a command as 32 bits too; it has the same number on every architecture. */
static int add_lease_rules(scmp_filter_ctx context)
{
	static const int calls[] = { SCMP_SYS(fcntl), SCMP_SYS(fcntl64) };
	static const struct {
		FilterRefusal refusal;
		unsigned command;
	} commands[] = { { REFUSAL_SETLEASE, F_SETLEASE }, { REFUSAL_SETDELEG, COMMAND_SETDELEG } };
	int r;

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		for (size_t j = 0; j < ELEMENTSOF(commands); j++) {
			r = add_rule(context, commands[j].refusal, calls[i],
				     SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xffffffffu, commands[j].command));
			if (r < 0)
				return r;
		}
	return 0;
}

/*
 * Refuse the call where the conditions hold and the argument, as far as mask reads it, is none of allowed. A
 * rule compares an argument once, so what is left over is cut into blocks: each as large as has none of
 * allowed in it. Begin with first 0 and a size that is a power of 2 above all of them.
 */
typedef struct Outside {
	FilterRefusal refusal;
	int call;
	struct scmp_arg_cmp conditions[3]; /* the last of n is for the argument */
	unsigned n, argument, mask;
	Numbers allowed;
} Outside;

static int add_block(scmp_filter_ctx context, Outside *outside, unsigned first, unsigned size)
{
	unsigned within = 0;
	int r;

	for (size_t i = 0; i < outside->allowed.n; i++)
		within += outside->allowed.numbers[i] - first < size;
	if (within == 0) {
		outside->conditions[outside->n - 1] =
			SCMP_CMP(outside->argument, SCMP_CMP_MASKED_EQ, outside->mask & ~(size - 1), first);
		return filter_add(context, outside->refusal, outside->call, outside->n, outside->conditions);
	}
	if (size == 1)
		return 0;
	r = add_block(context, outside, first, size / 2);
	return r < 0 ? r : add_block(context, outside, first + size / 2, size / 2);
}

/* The kernel reads 32 bits of an argument; one with more above them is refused as well. */
static int add_outside(scmp_filter_ctx context, Outside outside)
{
	/* Of 32 bits, those above the largest are one comparison. */
	unsigned size = outside.mask == UINT32_MAX ? 1 : outside.mask + 1;
	int r;

	for (size_t i = 0; i < outside.allowed.n; i++)
		while (size <= outside.allowed.numbers[i])
			size *= 2;
	r = add_block(context, &outside, 0, size);
	if (r < 0 || outside.mask != UINT32_MAX)
		return r;
	outside.conditions[outside.n - 1] = SCMP_CMP(outside.argument, SCMP_CMP_GT, size - 1);
	return filter_add(context, outside.refusal, outside.call, outside.n, outside.conditions);
}

static int add_family_rules(scmp_filter_ctx context)
{
	int r = add_outside(context, (Outside){ .refusal = REFUSAL_SOCKET,
						.call = SCMP_SYS(socket),
						.n = 1,
						.argument = 0,
						.mask = UINT32_MAX,
						.allowed = FAMILIES });

	if (r == 0)
		r = add_outside(context, (Outside){ .refusal = REFUSAL_SOCKETPAIR,
						    .call = SCMP_SYS(socketpair),
						    .n = 1,
						    .argument = 0,
						    .mask = UINT32_MAX,
						    .allowed = PAIR_FAMILIES });
	return r < 0 ? r : filter_add(context, REFUSAL_SOCKETCALL, SCMP_SYS(socketcall), 0, NULL);
}

/* The kernel has the protocol of a family that is not there, or of a type that it does not have, looked for
 * in modules (net/ipv4/af_inet.c). */
static int add_protocol_rules(scmp_filter_ctx context)
{
	static const unsigned internet[] = { AF_INET, AF_INET6 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(internet); i++) {
		const struct scmp_arg_cmp family = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, internet[i]);
		const struct scmp_arg_cmp raw[] = { family,
						    SCMP_CMP(1, SCMP_CMP_MASKED_EQ, TYPE_MASK, SOCK_RAW) };

		r = add_outside(context, (Outside){ .refusal = REFUSAL_SOCKET_TYPE,
						    .call = SCMP_SYS(socket),
						    .conditions = { family },
						    .n = 2,
						    .argument = 1,
						    .mask = TYPE_MASK,
						    .allowed = INTERNET_TYPES });
		if (r == 0)
			r = filter_add(context, REFUSAL_SOCKET_RAW, SCMP_SYS(socket), ELEMENTSOF(raw), raw);
	}
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(PROTOCOLS); i++) {
		Outside outside = { .refusal = REFUSAL_SOCKET_PROTOCOL,
				    .call = SCMP_SYS(socket),
				    .conditions = { SCMP_CMP(0, SCMP_CMP_MASKED_EQ, UINT32_MAX,
							     PROTOCOLS[i].family) },
				    .n = 2,
				    .argument = 2,
				    .mask = UINT32_MAX,
				    .allowed = PROTOCOLS[i].protocols };

		if (PROTOCOLS[i].type >= 0)
			outside.conditions[outside.n++ - 1] =
				SCMP_CMP(1, SCMP_CMP_MASKED_EQ, TYPE_MASK, (unsigned)PROTOCOLS[i].type);
		r = add_outside(context, outside);
	}
	return r;
}

static int add_namespace_rules(scmp_filter_ctx context)
{
	static const struct {
		FilterRefusal refusal;
		int call;
		unsigned flags_argument;
	} rules[] = { { REFUSAL_CLONE_USER, SCMP_SYS(clone), 0 },
		      { REFUSAL_UNSHARE_USER, SCMP_SYS(unshare), 0 },
		      { REFUSAL_SETNS_USER, SCMP_SYS(setns), 1 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(rules); i++)
		r = add_rule(
			context, rules[i].refusal, rules[i].call,
			SCMP_CMP(rules[i].flags_argument, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
	return r;
}

/* Mount namespaces that are no copies. */
static int add_copy_rules(scmp_filter_ctx context)
{
	static const struct {
		FilterRefusal refusal;
		int call;
		unsigned argument, flag;
	} rules[] = { { REFUSAL_UNSHARE_EMPTY, SCMP_SYS(unshare), 0, FLAG_UNSHARE_EMPTY_MNTNS },
		      { REFUSAL_OPEN_TREE_NAMESPACE, SCMP_SYS(open_tree), 2, FLAG_OPEN_TREE_NAMESPACE },
		      { REFUSAL_FSMOUNT_NAMESPACE, SCMP_SYS(fsmount), 1, FLAG_FSMOUNT_NAMESPACE } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(rules); i++)
		r = add_rule(context, rules[i].refusal, rules[i].call,
			     SCMP_CMP(rules[i].argument, SCMP_CMP_MASKED_EQ, rules[i].flag, rules[i].flag));
	return r;
}

static int load_named(bool forbid_namespaces)
{
	_cleanup_(context_freep) scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!context)
		return -ENOMEM;

	for (size_t i = 0; i < ELEMENTSOF(ARCHITECTURES); i++) {
		r = seccomp_arch_add(context, ARCHITECTURES[i]);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r < 0)
		return r;
	/* no_new_privs is the caller's to set, and a filter that guards modes need not slow memory down. */
	r = seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, 0);
	if (r < 0)
		return r;
	r = seccomp_attr_set(context, SCMP_FLTATR_CTL_SSB, 1);
	if (r < 0)
		return r;

	for (size_t i = 0; i < ELEMENTSOF(MODE_RULES); i++) {
		r = add_mode_rule(context, &MODE_RULES[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ELEMENTSOF(ABSENT_CALLS); i++) {
		r = filter_add(context, ABSENT_CALLS[i].refusal, ABSENT_CALLS[i].call, 0, NULL);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ELEMENTSOF(REQUESTS); i++) {
		r = add_ioctl_rule(context, REQUESTS[i].refusal, REQUESTS[i].request);
		if (r < 0)
			return r;
	}
	r = add_table_rules(context);
	if (r < 0)
		return r;
	r = add_lease_rules(context);
	if (r < 0)
		return r;
	r = add_family_rules(context);
	if (r < 0)
		return r;
	r = add_protocol_rules(context);
	if (r < 0)
		return r;
	r = add_copy_rules(context);
	if (r < 0)
		return r;
	if (forbid_namespaces) {
		r = add_namespace_rules(context);
		if (r < 0)
			return r;
	}
	return seccomp_load(context);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (yes), (no))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSE(refusal) ANSWER(SECCOMP_RET_ERRNO | (unsigned)filter_answer(refusal))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "filter: args[2] is read by its low word, which is the first only on little-endian machines"
#endif

static int load_numbered(void)
{
	struct sock_filter program[] = {
		/* 0 */ LOAD(nr),
		/* 1 */ JUMP(BPF_JEQ, NUMBER_FCHMODAT2, 6, 0),      /* to 8 */
		/* 2 */ JUMP(BPF_JEQ, NUMBER_OPEN_TREE_ATTR, 8, 0), /* to 11 */
		/* 3 */ JUMP(BPF_JGT, NUMBER_NEWEST, 0, 3),         /* to 7 */
		/* 4 */ JUMP(BPF_JEQ, NUMBER_NONE, 2, 0),           /* to 7 */
		/* 5 */ JUMP(BPF_JGT, NUMBER_ARM_LAST, 7, 0),       /* to 13 */
		/* 6 */ JUMP(BPF_JGE, NUMBER_ARM_FIRST, 0, 6),      /* to 13 */
		/* 7 */ ANSWER(SECCOMP_RET_ALLOW),
		/* 8 */ LOAD(args[2]),
		/* 9 */ JUMP(BPF_JSET, S_ISUID | S_ISGID, 0, 4), /* to 14 */
		/* 10 */ REFUSE(REFUSAL_FCHMODAT2),
		/* 11 */ LOAD(args[2]),
		/* 12 */ JUMP(BPF_JSET, FLAG_OPEN_TREE_NAMESPACE, 2, 1), /* to 15, or to 14 */
		/* 13 */ REFUSE(REFUSAL_UNKNOWN),
		/* 14 */ ANSWER(SECCOMP_RET_ALLOW),
		/* 15 */ REFUSE(REFUSAL_OPEN_TREE_ATTR_NAMESPACE),
	};
	const struct sock_fprog filter = { .len = ELEMENTSOF(program), .filter = program };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) < 0)
		return -errno;
	return 0;
}

int filter_install(bool forbid_namespaces)
{
	int r = load_numbered();

	if (r < 0)
		return r;
	return load_named(forbid_namespaces);
}
