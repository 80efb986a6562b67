/* SPDX-License-Identifier: MIT */

/*
 * Calls that change or watch the machine. Each asks for its right before it looks at arguments that make no
 * sense here; with the right it fails later, and nothing has happened.
 */

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>

#ifdef __x86_64__
#include <sys/io.h>
#endif

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

/* keyctl(2); <linux/keyctl.h> has them as macros of another type. */
#define RING_SESSION (-3)
#define RING_USER (-4)
#define RING_USER_SESSION (-5)

static void attempt_io_uring(Probing *p)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	probing_result(p, fd, "io_uring_setup");
	(void)close_fd(fd);
	probing_rights(p, syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), probing_refusals,
		       "io_uring_enter");
	/* EBADF without the filter. */
	probing_rights(p, syscall(SYS_io_uring_register, -1, 0, NULL, 0), probing_refusals,
		       "io_uring_register");
}

/* A keyring of our own is made in a session keyring that ends with this process. */
static void attempt_keyrings(Probing *p)
{
	static const int rings[] = { RING_SESSION, RING_USER, RING_USER_SESSION };

	bool joined = probing_result(p, syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL),
				     "a new session keyring") >= 0;

	for (size_t i = 0; i < ELEMENTSOF(rings); i++)
		probing_result(p, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, rings[i], 0), "keyring %d",
			       rings[i]);
	/* Never into one that stays. */
	if (joined)
		probing_result(p, syscall(SYS_add_key, "user", "probe", "x", 1, RING_SESSION), "add_key");
	else
		probing_rights(p, syscall(SYS_add_key, "no-such-kind", "probe", "x", 1, RING_SESSION),
			       probing_refusals, "add_key");
	probing_rights(p, syscall(SYS_request_key, "user", "no-such-key-of-a-probe", NULL, 0),
		       probing_refusals, "request_key");
}

static void attempt_bpf(Probing *p)
{
	union bpf_attr attributes = { 0 };
	static const int refusals[] = { EPERM, EACCES, ENOSYS, 0 };
	struct bpf_insn program[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
				      { .code = BPF_JMP | BPF_EXIT } };
	long setting = 1;
	bool everybody =
		probe_number("/proc/sys/kernel/unprivileged_bpf_disabled", &setting) == 0 && setting == 0;
	int fd;

	probing_rights(p, syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attributes, sizeof(attributes)), refusals,
		       "listing the machine's programs");
	probing_rights(p, syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &attributes, sizeof(attributes)), refusals,
		       "listing the machine's tables");
	attributes = (union bpf_attr){ .prog_type = BPF_PROG_TYPE_KPROBE,
				       .insns = (uintptr_t)program,
				       .insn_cnt = ELEMENTSOF(program),
				       .license = (uintptr_t) "MIT" };
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
	probing_rights(p, fd, refusals, "a program that watches the kernel");
	(void)close_fd(fd);
	attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
	if (fd >= 0 && everybody)
		probing_unclear(p, "socket filters, which this machine lets everybody load");
	else
		probing_rights(p, fd, refusals, "a socket filter");
	(void)close_fd(fd);
}

static void attempt_perf(Probing *p)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
					      .size = sizeof(attributes),
					      .config = PERF_COUNT_SW_CONTEXT_SWITCHES };
	static const struct {
		const char *name;
		pid_t pid;
		int cpu;
	} targets[] = { { "a whole processor", -1, 0 }, { "process 1", 1, -1 } };
	long setting = 2;
	bool everybody = probe_number("/proc/sys/kernel/perf_event_paranoid", &setting) == 0 && setting < 1;

	for (size_t i = 0; i < ELEMENTSOF(targets); i++) {
		int fd = (int)syscall(SYS_perf_event_open, &attributes, targets[i].pid, targets[i].cpu, -1,
				      PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0 && everybody)
			probing_unclear(p, "%s, which this machine lets everybody watch", targets[i].name);
		else
			probing_result(p, fd, "watching %s", targets[i].name);
		(void)close_fd(fd);
	}
}

static void attempt_userfaultfd(Probing *p)
{
	long setting = 0;
	bool everybody = probe_number("/proc/sys/vm/unprivileged_userfaultfd", &setting) == 0 && setting == 1;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && everybody)
		probing_unclear(p, "faults of the kernel, which this machine lets everybody hold up");
	else
		probing_result(p, fd, "holding up faults of the kernel");
	(void)close_fd(fd);
	fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	probing_result(p, fd, "/dev/userfaultfd");
	(void)close_fd(fd);
}

static void attempt_modules(Probing *p)
{
	probing_rights(p, syscall(SYS_init_module, NULL, 0ul, ""), probing_refusals, "init_module");
	probing_rights(p, syscall(SYS_finit_module, -1, "", 0), probing_refusals, "finit_module");
	probing_rights(p, syscall(SYS_delete_module, "no_such_module_of_a_probe", O_NONBLOCK),
		       probing_refusals, "delete_module");
	probing_rights(p, syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0xffff0000ul), probing_refusals,
		       "kexec_load");
#ifdef SYS_kexec_file_load
	probing_rights(p, syscall(SYS_kexec_file_load, -1, -1, 0ul, NULL, 0xfffful), probing_refusals,
		       "kexec_file_load");
#endif
}

static void attempt_machine(Probing *p)
{
	struct dqblk quota = { 0 };
	_cleanup_close_ int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* For an id that nobody has. */
	unsigned command = (unsigned)Q_SETQUOTA << SUBCMDSHIFT | USRQUOTA;

	/* Without the two magic numbers nothing is done, by whoever may ask (reboot(2)). */
	probing_rights(p, syscall(SYS_reboot, 1, 2, 3, NULL), probing_refusals, "reboot");
	probing_rights(p, syscall(SYS_swapon, "/no-such-place", 0), probing_refusals, "swapon");
	probing_rights(p, syscall(SYS_swapoff, "/no-such-place"), probing_refusals, "swapoff");
	probing_rights(p, syscall(SYS_acct, "/no-such-place"), probing_refusals, "acct");
	probing_rights(p, syscall(SYS_quotactl_fd, root_fd, command, 4000000000u, &quota),
		       (const int[]){ EPERM, EACCES, ENOSYS, EROFS, EINVAL, ENOTTY, 0 }, "quotactl");
	probing_rights(p, syscall(SYS_lookup_dcookie, 0ul, NULL, 0ul), probing_refusals, "lookup_dcookie");
}

static void attempt_clock(Probing *p)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	struct timex now = { 0 }, same = { 0 };
	int timer;

	(void)adjtimex(&now);
	same.modes = ADJ_STATUS;
	same.status = now.status;
	probing_result(p, adjtimex(&same), "adjtimex");
	same = (struct timex){ .modes = ADJ_TICK, .tick = now.tick };
	probing_result(p, adjtimex(&same), "its tick");
	probing_rights(p, syscall(SYS_clock_adjtime, CLOCK_REALTIME, &same), probing_refusals,
		       "clock_adjtime");
	probing_result(p, syscall(SYS_timer_create, CLOCK_REALTIME_ALARM, &event, &timer),
		       "a timer that wakes the machine");
}

static void attempt_log(Probing *p)
{
	long setting = 1;
	bool everybody = probe_number("/proc/sys/kernel/dmesg_restrict", &setting) == 0 && setting == 0;
	char byte;

	/* 8: the level of the console, which has to be 1 to 8 (syslog(2)). */
	probing_rights(p, syscall(SYS_syslog, 8, NULL, 0), probing_refusals, "the level of the console");
	if (everybody)
		probing_unclear(p, "reading, which this machine lets everybody do");
	else
		probing_result(p, syscall(SYS_syslog, 3, &byte, 1), "reading the kernel's log");
	probing_result(p, open("/dev/kmsg", O_WRONLY | O_CLOEXEC), "/dev/kmsg");
}

static void attempt_ports(Probing *p)
{
#ifdef __x86_64__
	probing_result(p, ioperm(0x80, 1, 1), "ioperm");
	probing_result(p, iopl(3), "iopl");
#else
	probing_unclear(p, "this architecture has none");
#endif
}

/* Numbers that no filter with the names of today's calls has. */
static void attempt_numbers(Probing *p)
{
	static const int refusals[] = { ENOSYS, EPERM, 0 };

#ifdef __x86_64__
	probing_rights(p, syscall(0x40000000 | SYS_getpid), refusals, "a call of x32");
	/* x32's own numbers, some kernels take them without its bit: asm/unistd_x32.h, ptrace. */
	probing_rights(p, syscall(521, 0x4200ul, -1ul, 0ul, 0ul), refusals, "a number of x32 alone");
#endif
	for (long number = 470; number < 480; number++)
		probing_rights(p, syscall(number, -1ul, -1ul, -1ul, -1ul), refusals, "call %ld", number);
}

const Probe probes_kernel[] = {
	{ "p49", "no io_uring", "calls that no filter sees", attempt_io_uring },
	{ "p50", "no keyrings", "the person's keys, which are found by uid alone", attempt_keyrings },
	{ "p51", "no BPF programs", "a look at every program's data, or a hole in the kernel", attempt_bpf },
	{ "p52", "no performance counters of other programs", "what they do, and when", attempt_perf },
	{ "p53", "page faults of the kernel are not held up", "time for attacks on the kernel",
	  attempt_userfaultfd },
	{ "p54", "no modules and no other kernel", "the machine", attempt_modules },
	{ "p55", "no reboot, swap, accounting or quotas", "the machine's work, or its files",
	  attempt_machine },
	{ "p56", "the clock stays", "certificates and logins that are judged by another time",
	  attempt_clock },
	{ "p57", "neither the kernel's log nor its console",
	  "what the kernel says of other programs, and lines in it", attempt_log },
	{ "p58", "no I/O ports", "the machine's hardware", attempt_ports },
	{ "p59", "no calls by numbers of other kinds", "calls that the filter has no rule for",
	  attempt_numbers },
};
const size_t probes_kernel_count = ELEMENTSOF(probes_kernel);
