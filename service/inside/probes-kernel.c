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

#include "service/inside/probe-child.h"
#include "service/inside/probe-tables.h"

/* keyctl(2); <linux/keyctl.h> has them as macros of another type. */
#define RING_SESSION (-3)
#define RING_USER (-4)
#define RING_USER_SESSION (-5)

static struct io_uring_params ring;

static const ProbeCall io_uring[] = {
	PROBE_CALL("io_uring_setup", SYS_io_uring_setup, NULL, 1, PROBE_AT(&ring)),
	PROBE_CALL("io_uring_enter", SYS_io_uring_enter, probing_refusals, -1),
	/* EBADF without the filter. */
	PROBE_CALL("io_uring_register", SYS_io_uring_register, probing_refusals, -1),
	{ 0 },
};

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

static const struct bpf_insn program[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};
static union bpf_attr next_program, next_table;
static const union bpf_attr kernel_probe = { .prog_type = BPF_PROG_TYPE_KPROBE,
					     .insns = (uintptr_t)program,
					     .insn_cnt = ELEMENTSOF(program),
					     .license = (uintptr_t) "MIT" };
static const union bpf_attr socket_filter = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
					      .insns = (uintptr_t)program,
					      .insn_cnt = ELEMENTSOF(program),
					      .license = (uintptr_t) "MIT" };
static const int bpf_refusals[] = { EPERM, EACCES, ENOSYS, 0 };

static const ProbeCall bpf[] = {
	PROBE_CALL("listing the machine's programs", SYS_bpf, bpf_refusals, BPF_PROG_GET_NEXT_ID,
		   PROBE_AT(&next_program), sizeof(union bpf_attr)),
	PROBE_CALL("listing the machine's tables", SYS_bpf, bpf_refusals, BPF_MAP_GET_NEXT_ID,
		   PROBE_AT(&next_table), sizeof(union bpf_attr)),
	PROBE_CALL("a program that watches the kernel", SYS_bpf, bpf_refusals, BPF_PROG_LOAD,
		   PROBE_AT(&kernel_probe), sizeof(union bpf_attr)),
	PROBE_CALL_UNLESS("/proc/sys/kernel/unprivileged_bpf_disabled", "a socket filter", SYS_bpf,
			  bpf_refusals, BPF_PROG_LOAD, PROBE_AT(&socket_filter), sizeof(union bpf_attr)),
	{ 0 },
};

static const struct perf_event_attr switches = { .type = PERF_TYPE_SOFTWARE,
						 .size = sizeof(switches),
						 .config = PERF_COUNT_SW_CONTEXT_SWITCHES };

static const ProbeCall perf[] = {
	PROBE_CALL_UNLESS("/proc/sys/kernel/perf_event_paranoid", "watching a whole processor",
			  SYS_perf_event_open, NULL, PROBE_AT(&switches), -1, 0, -1, PERF_FLAG_FD_CLOEXEC),
	PROBE_CALL_UNLESS("/proc/sys/kernel/perf_event_paranoid", "watching process 1", SYS_perf_event_open,
			  NULL, PROBE_AT(&switches), 1, -1, -1, PERF_FLAG_FD_CLOEXEC),
	{ 0 },
};

static const ProbeCall fault_device[] = {
	PROBE_CALL("/dev/userfaultfd", SYS_openat, NULL, AT_FDCWD, PROBE_AT("/dev/userfaultfd"),
		   O_RDWR | O_CLOEXEC),
	{ 0 },
};

static void attempt_userfaultfd(Probing *p)
{
	long setting = 0;
	bool everybody = probe_number("/proc/sys/vm/unprivileged_userfaultfd", &setting) == 0 && setting == 1;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && everybody)
		probing_unclear(p, "faults of the kernel, which this machine lets everybody hold up");
	else
		probing_result(p, fd, "holding up faults of the kernel");
}

static const ProbeCall modules[] = {
	PROBE_CALL("init_module", SYS_init_module, probing_refusals, 0, 0, PROBE_AT("")),
	PROBE_CALL("finit_module", SYS_finit_module, probing_refusals, -1, PROBE_AT("")),
	PROBE_CALL("delete_module", SYS_delete_module, probing_refusals,
		   PROBE_AT("no_such_module_of_a_probe"), O_NONBLOCK),
	PROBE_CALL("kexec_load", SYS_kexec_load, probing_refusals, 0, 0, 0, 0xffff0000l),
#ifdef SYS_kexec_file_load
	PROBE_CALL("kexec_file_load", SYS_kexec_file_load, probing_refusals, -1, -1, 0, 0, 0xffffl),
#endif
	{ 0 },
};

static const ProbeCall machine[] = {
	/* Without the two magic numbers nothing is done, by whoever may ask (reboot(2)). */
	PROBE_CALL("reboot", SYS_reboot, probing_refusals, 1, 2, 3),
	PROBE_CALL("swapon", SYS_swapon, probing_refusals, PROBE_AT("/no-such-place")),
	PROBE_CALL("swapoff", SYS_swapoff, probing_refusals, PROBE_AT("/no-such-place")),
	PROBE_CALL("acct", SYS_acct, probing_refusals, PROBE_AT("/no-such-place")),
	PROBE_CALL("lookup_dcookie", SYS_lookup_dcookie, probing_refusals, 0),
	{ 0 },
};

static void attempt_machine(Probing *p)
{
	struct dqblk quota = { 0 };
	_cleanup_close_ int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* For an id that nobody has. */
	unsigned command = (unsigned)Q_SETQUOTA << SUBCMDSHIFT | USRQUOTA;

	probing_rights(p, syscall(SYS_quotactl_fd, root_fd, command, 4000000000u, &quota),
		       (const int[]){ EPERM, EACCES, ENOSYS, EROFS, EINVAL, ENOTTY, 0 }, "quotactl");
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

static char log_byte;

static const ProbeCall log_calls[] = {
	/* 8: the level of the console, which has to be 1 to 8 (syslog(2)). */
	PROBE_CALL("the level of the console", SYS_syslog, probing_refusals, 8),
	PROBE_CALL_UNLESS("/proc/sys/kernel/dmesg_restrict", "reading the kernel's log", SYS_syslog, NULL, 3,
			  PROBE_AT(&log_byte), 1),
	PROBE_CALL("/dev/kmsg", SYS_openat, NULL, AT_FDCWD, PROBE_AT("/dev/kmsg"), O_WRONLY | O_CLOEXEC),
	{ 0 },
};

#ifdef __x86_64__
static const ProbeCall ports[] = {
	PROBE_CALL("ioperm", SYS_ioperm, NULL, 0x80, 1, 1),
	PROBE_CALL("iopl", SYS_iopl, NULL, 3),
	{ 0 },
};
#define attempt_ports NULL
#else
static const ProbeCall ports[] = { { 0 } };

static void attempt_ports(Probing *p)
{
	probing_unclear(p, "this architecture has none");
}
#endif

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
	{ "p49", "no io_uring", "calls that no filter sees", .calls = io_uring },
	{ "p50", "no keyrings", "the person's keys, which are found by uid alone", attempt_keyrings },
	{ "p51", "no BPF programs", "a look at every program's data, or a hole in the kernel", .calls = bpf },
	{ "p52", "no performance counters of other programs", "what they do, and when", .calls = perf },
	{ "p53", "page faults of the kernel are not held up", "time for attacks on the kernel",
	  attempt_userfaultfd, .calls = fault_device },
	{ "p54", "no modules and no other kernel", "the machine", .calls = modules },
	{ "p55", "no reboot, swap, accounting or quotas", "the machine's work, or its files", attempt_machine,
	  .calls = machine },
	{ "p56", "the clock stays", "certificates and logins that are judged by another time",
	  attempt_clock },
	{ "p57", "neither the kernel's log nor its console",
	  "what the kernel says of other programs, and lines in it", .calls = log_calls },
	{ "p58", "no I/O ports", "the machine's hardware", attempt_ports, .calls = ports },
	{ "p59", "no calls by numbers of other kinds", "calls that the filter has no rule for",
	  attempt_numbers },
};
const size_t probes_kernel_count = ELEMENTSOF(probes_kernel);
