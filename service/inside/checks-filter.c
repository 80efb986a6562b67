/* SPDX-License-Identifier: MIT */

/*
 * For row 02: each refusal of the filter is asked for. The arguments are such that the kernel itself would
 * give another answer, before anything is done: descriptors that are none, empty paths, types that do not
 * exist. Where it could only give the same one (a flag or a call that it does not know either), the listener
 * tells them apart (filter-listener.h); without that nothing can be told and nothing can happen.
 */

#include "service/inside/checks.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "service/inside/call-numbers.h"
#include "service/inside/filter-listener.h"
#include "service/inside/filter-rules.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define TEXT_SIZE 1024u

/* As in filter.c; the headers that we build with are older. */
#define FLAG_NAMESPACE 0x2u
#define FLAG_EMPTY 0x00100000u
#define COMMAND_SETDELEG 1040u
#define ABOVE_32_BITS 0x100000000L
#define FIRST_UNKNOWN 470
#define BIT_X32 0x40000000L

/* More than the kernel has (AF_MAX of linux/socket.h). */
#define FAMILIES_TRIED 64
#define NO_TYPE 15   /* beyond SOCK_MAX: refused before the family is looked at */
#define NO_FLAG 0x2u /* of CSIGNAL: no flag of unshare(2) */
/* No flag of socket(2): the kernel refuses it before it looks for anything (EINVAL). */
#define NO_SOCKET_FLAG 0x10
#define TYPES 16
#define PROTOCOLS_TRIED 263 /* with IPPROTO_MPTCP */

typedef struct Try {
	const long *numbers;
	long (*call)(long number, long a, long b, long c, long d, long e); /* Return: the kernel's, -errno */
	const char *architecture;
	long empty; /* address of an empty string */
	char *text; /* what was answered otherwise */
	size_t size, used;
	unsigned wrong; /* attempts */
} Try;

static const int answers[] = {
#define ANSWER(name, answer) answer,
	FILTER_REFUSALS(ANSWER)
#undef ANSWER
};

static const char *const names[] = {
#define NAME(name, answer) #name,
	FILTER_REFUSALS(NAME)
#undef NAME
};

static void ask(Try *t, FilterRefusal refusal, CallName name, long a, long b, long c, long d, long e)
{
	long result;

	/* A call that does not exist there. */
	if (t->numbers[name] < 0)
		return;
	result = t->call(t->numbers[name], a, b, c, d, e);
	if (result == -answers[refusal])
		return;
	if (t->wrong++ < 8 && t->used < t->size)
		t->used += (size_t)snprintf(t->text + t->used, t->size - t->used, "%s%s%s: %s",
					    t->used > 0 ? ", " : "", names[refusal], t->architecture,
					    result == -FILTER_LET_THROUGH ? "let through"
					    : result < 0 ? strerrorname_np((int)-result) ?: "?"
							 : "done");
}

static const long set_id_bits[] = { S_ISUID, S_ISGID };

#define EACH_BIT(bit)                                           \
	for (size_t i_ = 0; i_ < ELEMENTSOF(set_id_bits); i_++) \
		for (long bit = set_id_bits[i_] | 0644; bit; bit = 0)

static void try_CHMOD(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_CHMOD, CALL_CHMOD, t->empty, mode, 0, 0, 0);
}

static void try_FCHMOD(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_FCHMOD, CALL_FCHMOD, -1, mode, 0, 0, 0);
}

static void try_FCHMODAT(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_FCHMODAT, CALL_FCHMODAT, -1, t->empty, mode, 0, 0);
}

static void try_FCHMODAT2(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_FCHMODAT2, CALL_FCHMODAT2, -1, t->empty, mode, 0, 0);
}

static void try_MKNOD(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_MKNOD, CALL_MKNOD, t->empty, S_IFREG | mode, 0, 0, 0);
}

static void try_MKNODAT(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_MKNODAT, CALL_MKNODAT, -1, t->empty, S_IFREG | mode, 0, 0);
}

static void try_CREAT(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_CREAT, CALL_CREAT, t->empty, mode, 0, 0, 0);
}

static void try_MQ_OPEN(Try *t)
{
	EACH_BIT(mode)
	ask(t, REFUSAL_MQ_OPEN, CALL_MQ_OPEN, 0, O_CREAT | O_RDWR, mode, 0, 0);
}

/* O_TMPFILE without O_CREAT too. */
static void try_OPEN(Try *t)
{
	EACH_BIT(mode)
	{
		ask(t, REFUSAL_OPEN, CALL_OPEN, t->empty, O_CREAT | O_WRONLY, mode, 0, 0);
		ask(t, REFUSAL_OPEN, CALL_OPEN, t->empty, O_TMPFILE | O_WRONLY, mode, 0, 0);
	}
}

static void try_OPENAT(Try *t)
{
	EACH_BIT(mode)
	{
		ask(t, REFUSAL_OPENAT, CALL_OPENAT, -1, t->empty, O_CREAT | O_WRONLY, mode, 0);
		ask(t, REFUSAL_OPENAT, CALL_OPENAT, -1, t->empty, O_TMPFILE | O_WRONLY, mode, 0);
	}
}

static void try_OPENAT2(Try *t)
{
	ask(t, REFUSAL_OPENAT2, CALL_OPENAT2, -1, t->empty, 0, 0, 0);
}

static void try_IO_URING_SETUP(Try *t)
{
	ask(t, REFUSAL_IO_URING_SETUP, CALL_IO_URING_SETUP, 0, 0, 0, 0, 0);
}

static void try_IO_URING_ENTER(Try *t)
{
	ask(t, REFUSAL_IO_URING_ENTER, CALL_IO_URING_ENTER, -1, 0, 0, 0, 0);
}

static void try_IO_URING_REGISTER(Try *t)
{
	ask(t, REFUSAL_IO_URING_REGISTER, CALL_IO_URING_REGISTER, -1, 0, 0, 0, 0);
}

static void try_ADD_KEY(Try *t)
{
	ask(t, REFUSAL_ADD_KEY, CALL_ADD_KEY, 0, 0, 0, 0, 0);
}

static void try_REQUEST_KEY(Try *t)
{
	ask(t, REFUSAL_REQUEST_KEY, CALL_REQUEST_KEY, 0, 0, 0, 0, 0);
}

static void try_KEYCTL(Try *t)
{
	ask(t, REFUSAL_KEYCTL, CALL_KEYCTL, 0x7fff, 0, 0, 0, 0);
}

static void try_CLONE3(Try *t)
{
	ask(t, REFUSAL_CLONE3, CALL_CLONE3, 0, 0, 0, 0, 0);
}

/* Where long is 64 bits, what stands above the request's 32 must not hide it. */
static void try_ioctl(Try *t, FilterRefusal refusal, long request)
{
	ask(t, refusal, CALL_IOCTL, -1, request, 0, 0, 0);
	if (t->numbers == call_numbers)
		ask(t, refusal, CALL_IOCTL, -1, request | ABOVE_32_BITS, 0, 0, 0);
}

static void try_TYPE(Try *t)
{
	try_ioctl(t, REFUSAL_TYPE, TIOCSTI);
}

static void try_PASTE(Try *t)
{
	try_ioctl(t, REFUSAL_PASTE, TIOCLINUX);
}

static void try_LINE_DISCIPLINE(Try *t)
{
	try_ioctl(t, REFUSAL_LINE_DISCIPLINE, TIOCSETD);
}

static void try_BRIDGE(Try *t)
{
	static const long requests[] = { SIOCGIFBR, SIOCSIFBR, SIOCBRADDBR, SIOCBRDELBR };

	for (size_t i = 0; i < ELEMENTSOF(requests); i++)
		try_ioctl(t, REFUSAL_BRIDGE, requests[i]);
}

static void try_VLAN(Try *t)
{
	try_ioctl(t, REFUSAL_VLAN, SIOCGIFVLAN);
	try_ioctl(t, REFUSAL_VLAN, SIOCSIFVLAN);
}

static void try_TABLES(Try *t)
{
	static const CallName calls[] = { CALL_SETSOCKOPT, CALL_GETSOCKOPT };
	static const int options[] = { 64, 65, 66, 67, 96, 97, 98, 99, 128, 129, 130, 131 };
	static const int options6[] = { 64, 65, 68, 69 };

	for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
		for (size_t j = 0; j < ELEMENTSOF(options); j++)
			ask(t, REFUSAL_TABLES, calls[i], -1, IPPROTO_IP, options[j], 0, 0);
		for (size_t j = 0; j < ELEMENTSOF(options6); j++)
			ask(t, REFUSAL_TABLES, calls[i], -1, IPPROTO_IPV6, options6[j], 0, 0);
	}
}

static void try_SETLEASE(Try *t)
{
	ask(t, REFUSAL_SETLEASE, CALL_FCNTL, -1, F_SETLEASE, F_UNLCK, 0, 0);
	if (t->numbers == call_numbers)
		ask(t, REFUSAL_SETLEASE, CALL_FCNTL, -1, F_SETLEASE | ABOVE_32_BITS, F_UNLCK, 0, 0);
	ask(t, REFUSAL_SETLEASE, CALL_FCNTL64, -1, F_SETLEASE, F_UNLCK, 0, 0);
}

static void try_SETDELEG(Try *t)
{
	ask(t, REFUSAL_SETDELEG, CALL_FCNTL, -1, COMMAND_SETDELEG, 0, 0, 0);
	if (t->numbers == call_numbers)
		ask(t, REFUSAL_SETDELEG, CALL_FCNTL, -1, COMMAND_SETDELEG | ABOVE_32_BITS, 0, 0, 0);
	ask(t, REFUSAL_SETDELEG, CALL_FCNTL64, -1, COMMAND_SETDELEG, 0, 0, 0);
}

/* Those that the network namespace holds. */
static bool family_is_held(int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static void try_SOCKET(Try *t)
{
	for (int family = 0; family < FAMILIES_TRIED; family++)
		if (!family_is_held(family))
			ask(t, REFUSAL_SOCKET, CALL_SOCKET, family, NO_TYPE, 0, 0, 0);
}

static void try_SOCKET_TYPE(Try *t)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < ELEMENTSOF(families); i++)
		for (int type = 0; type < TYPES; type++)
			if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_RAW)
				ask(t, REFUSAL_SOCKET_TYPE, CALL_SOCKET, families[i], type | NO_SOCKET_FLAG,
				    0, 0, 0);
}

static void try_SOCKET_RAW(Try *t)
{
	ask(t, REFUSAL_SOCKET_RAW, CALL_SOCKET, AF_INET, SOCK_RAW | NO_SOCKET_FLAG, IPPROTO_RAW, 0, 0);
	ask(t, REFUSAL_SOCKET_RAW, CALL_SOCKET, AF_INET6, SOCK_RAW | NO_SOCKET_FLAG, IPPROTO_ICMPV6, 0, 0);
}

static void try_protocols(Try *t, long family, long type, const int *allowed, size_t n)
{
	for (long protocol = -1; protocol < PROTOCOLS_TRIED; protocol++) {
		bool is_allowed = false;

		for (size_t i = 0; i < n; i++)
			is_allowed = is_allowed || allowed[i] == protocol;
		if (!is_allowed)
			ask(t, REFUSAL_SOCKET_PROTOCOL, CALL_SOCKET, family, type | NO_SOCKET_FLAG, protocol,
			    0, 0);
	}
}

#define TRY_PROTOCOLS(t, family, type, ...)                          \
	try_protocols(t, family, type, (const int[]){ __VA_ARGS__ }, \
		      sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static void try_SOCKET_PROTOCOL(Try *t)
{
	TRY_PROTOCOLS(t, AF_INET, SOCK_STREAM, 0, IPPROTO_TCP);
	TRY_PROTOCOLS(t, AF_INET, SOCK_DGRAM, 0, IPPROTO_UDP, IPPROTO_ICMP);
	TRY_PROTOCOLS(t, AF_INET6, SOCK_STREAM, 0, IPPROTO_TCP);
	TRY_PROTOCOLS(t, AF_INET6, SOCK_DGRAM, 0, IPPROTO_UDP, IPPROTO_ICMPV6);
	for (int type = SOCK_STREAM; type <= SOCK_RAW; type++)
		TRY_PROTOCOLS(t, AF_NETLINK, type, NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT);
	/* The kernel reads 32 bits of each. */
	if (t->numbers == call_numbers) {
		ask(t, REFUSAL_SOCKET_PROTOCOL, CALL_SOCKET, AF_INET | ABOVE_32_BITS,
		    SOCK_STREAM | NO_SOCKET_FLAG, IPPROTO_SCTP, 0, 0);
		ask(t, REFUSAL_SOCKET_PROTOCOL, CALL_SOCKET, AF_INET,
		    SOCK_STREAM | NO_SOCKET_FLAG | ABOVE_32_BITS, IPPROTO_SCTP, 0, 0);
		ask(t, REFUSAL_SOCKET_PROTOCOL, CALL_SOCKET, AF_INET, SOCK_STREAM | NO_SOCKET_FLAG,
		    IPPROTO_SCTP | ABOVE_32_BITS, 0, 0);
	}
}

/* TIPC has pairs; and to ask for one of another family looks for its protocol too. */
static void try_SOCKETPAIR(Try *t)
{
	for (int family = 0; family < FAMILIES_TRIED; family++)
		if (family != AF_UNIX)
			ask(t, REFUSAL_SOCKETPAIR, CALL_SOCKETPAIR, family, NO_TYPE, 0, 0, 0);
}

static void try_SOCKETCALL(Try *t)
{
	ask(t, REFUSAL_SOCKETCALL, CALL_SOCKETCALL, 0, 0, 0, 0, 0);
}

static void try_UNSHARE_EMPTY(Try *t)
{
	ask(t, REFUSAL_UNSHARE_EMPTY, CALL_UNSHARE, FLAG_EMPTY | NO_FLAG, 0, 0, 0, 0);
}

static void try_OPEN_TREE_NAMESPACE(Try *t)
{
	ask(t, REFUSAL_OPEN_TREE_NAMESPACE, CALL_OPEN_TREE, -1, t->empty, FLAG_NAMESPACE, 0, 0);
}

static void try_OPEN_TREE_ATTR_NAMESPACE(Try *t)
{
	ask(t, REFUSAL_OPEN_TREE_ATTR_NAMESPACE, CALL_OPEN_TREE_ATTR, -1, t->empty, FLAG_NAMESPACE, 0, 0);
}

static void try_FSMOUNT_NAMESPACE(Try *t)
{
	ask(t, REFUSAL_FSMOUNT_NAMESPACE, CALL_FSMOUNT, -1, FLAG_NAMESPACE, 0, 0, 0);
}

/* A namespace and what cannot go with it. */
static void try_CLONE_USER(Try *t)
{
	ask(t, REFUSAL_CLONE_USER, CALL_CLONE, CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0);
}

static void try_UNSHARE_USER(Try *t)
{
	ask(t, REFUSAL_UNSHARE_USER, CALL_UNSHARE, CLONE_NEWUSER | NO_FLAG, 0, 0, 0, 0);
}

static void try_SETNS_USER(Try *t)
{
	ask(t, REFUSAL_SETNS_USER, CALL_SETNS, -1, CLONE_NEWUSER, 0, 0, 0);
}

static void try_UNKNOWN(Try *t)
{
	static const long unknown[] = { FIRST_UNKNOWN, 500, 1000, BIT_X32 + 39 };

	for (size_t i = 0; i < ELEMENTSOF(unknown); i++) {
		long numbers[CALL_MAX];
		const long *own = t->numbers;

		numbers[CALL_CHMOD] = unknown[i];
		t->numbers = numbers;
		ask(t, REFUSAL_UNKNOWN, CALL_CHMOD, 0, 0, 0, 0, 0);
		t->numbers = own;
	}
}

static const struct {
	void (*run)(Try *t);
} attempts[] = {
#define ATTEMPT(name, answer) { try_##name },
	FILTER_REFUSALS(ATTEMPT)
#undef ATTEMPT
};
STATIC_ASSERT(ELEMENTSOF(attempts) == REFUSAL_MAX);

static bool is_asked(FilterRefusal refusal, bool forbid_namespaces)
{
	return forbid_namespaces || (refusal != REFUSAL_CLONE_USER && refusal != REFUSAL_UNSHARE_USER &&
				     refusal != REFUSAL_SETNS_USER);
}

static unsigned count_asked(bool forbid_namespaces)
{
	unsigned n = 0;

	for (unsigned i = 0; i < REFUSAL_MAX; i++)
		n += is_asked((FilterRefusal)i, forbid_namespaces);
	return n;
}

/* Return: how many were answered otherwise. */
static int try_all(Try *t, bool forbid_namespaces)
{
	int r = filter_listener_start();

	for (unsigned i = 0; i < REFUSAL_MAX; i++)
		if (is_asked((FilterRefusal)i, forbid_namespaces))
			attempts[i].run(t);
	/* The other answers still tell. */
	if (r < 0 && t->wrong == 0)
		(void)snprintf(t->text, t->size,
			       "what the kernel%s refuses in the same words could not be told apart: %s",
			       t->architecture, strerror(-r));
	return (int)t->wrong;
}

static long call_native(long number, long a, long b, long c, long d, long e)
{
	long result = syscall(number, a, b, c, d, e);

	return result < 0 ? -errno : result;
}

#ifdef __x86_64__
/* The 32-bit way into the same kernel, from a 64-bit program: how any program gets round a filter of one
 * architecture. Without it in the kernel this is a fault, which ends the child. */
static long call_32(long number, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

static sigjmp_buf fault_32;

/* Only the kernel's own faults count: whoever else sends the signal cannot say that it is one (si_code of
 * sigaction(2)). */
static void on_fault_32(int number, siginfo_t *info, void *context)
{
	if (info->si_code > 0)
		siglongjmp(fault_32, 1);
	_exit(1);
}

/* Return: how many were answered otherwise; -ENOSYS where there are no calls of 32 bits; -ENOMEM. */
static int attempt_32(void *userdata, char *text, size_t size)
{
	const struct sigaction action = { .sa_sigaction = on_fault_32, .sa_flags = SA_SIGINFO };
	const bool *forbid_namespaces = userdata;
	/* An address that 32 bits can name. */
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	Try t = { .numbers = call_numbers_32,
		  .call = call_32,
		  .architecture = " of 32 bits",
		  .empty = (long)page,
		  .text = text,
		  .size = size };

	if (page == MAP_FAILED)
		return -ENOMEM;
	if (sigaction(SIGSEGV, &action, NULL) < 0 || sigsetjmp(fault_32, 0) != 0)
		return -ENOSYS;
	return try_all(&t, *forbid_namespaces);
}
#endif

static int attempt_native(void *userdata, char *text, size_t size)
{
	const bool *forbid_namespaces = userdata;
	static const char empty[] = "";
	Try t = { .numbers = call_numbers,
		  .call = call_native,
		  .architecture = "",
		  .empty = (long)empty,
		  .text = text,
		  .size = size };

	return try_all(&t, *forbid_namespaces);
}

static void judge_answers(Battery *b, int r, const char *what, const char *text)
{
	if (r > 0)
		battery_fail(b, "the filter does not refuse: %s", text);
	else if (r < 0)
		battery_fail(b, "%s could not be tried: %s", what, *text ? text : strerror(-r));
	else if (*text)
		battery_note(b, "%s", text);
}

static void check_other_architectures(Battery *b, bool forbid_namespaces)
{
#ifdef __x86_64__
	char text[TEXT_SIZE];
	int r = attempt_run(attempt_32, &forbid_namespaces, ATTEMPT_MSEC, text, sizeof(text));

	if (r == -ENOSYS)
		battery_pass(b, "no calls of 32 bits");
	else
		judge_answers(b, r, "calls of 32 bits", text);
#endif
}

void check_filter(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	/* Who it is decides, where nobody has said: uid 0 is root's session. */
	bool forbid_namespaces = e ? e->forbid_namespaces : getuid() == 0;
	char text[TEXT_SIZE];
	int r = attempt_run(attempt_native, &forbid_namespaces, ATTEMPT_MSEC, text, sizeof(text));

	judge_answers(b, r, "the filter", text);
	check_other_architectures(b, forbid_namespaces);
	battery_pass(b, "%u refusals of the filter hold", count_asked(forbid_namespaces));
}
