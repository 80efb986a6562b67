/* SPDX-License-Identifier: MIT */
#include "service/link/inherited.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5 /* linux/mempolicy.h since Linux 5.15 */
#endif
#define WEIGHTED_INTERLEAVE 6u /* MPOL_WEIGHTED_INTERLEAVE, since Linux 6.9 */
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

#define LONG_BITS (8 * sizeof(unsigned long))

/* As the kernel gave it to the caller's next child. */
typedef struct Scheduling {
	uint32_t policy;
	int32_t nice;
	uint32_t priority;
} Scheduling;

STATIC_ASSERT(sizeof(MemoryPolicy) <= INHERITED_BYTES_MAX);

/* The beginning of the file, with a NUL behind. Return: bytes or a negative errno. */
static ssize_t read_start(pid_t pid, const char *name, char *text, size_t size)
{
	_cleanup_close_ int fd = FD_NONE;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static ssize_t processors_read(pid_t pid, void *value)
{
	return syscall(SYS_sched_getaffinity, pid, (size_t)INHERITED_BYTES_MAX, value);
}

static int processors_set(const void *value, size_t n)
{
	return syscall(SYS_sched_setaffinity, 0, n, value) < 0 ? -errno : 0;
}

/* sched(7): what SCHED_FLAG_RESET_ON_FORK keeps from a child. SCHED_DEADLINE is never a child's. */
static ssize_t scheduling_read(pid_t pid, void *value)
{
	struct sched_attr attributes = { .size = sizeof(attributes) };
	Scheduling scheduling;
	bool reset;

	if (syscall(SYS_sched_getattr, pid, &attributes, sizeof(attributes), 0) < 0)
		return -1;
	scheduling = (Scheduling){ .policy = attributes.sched_policy,
				   .nice = attributes.sched_nice,
				   .priority = attributes.sched_priority };
	reset = attributes.sched_flags & SCHED_FLAG_RESET_ON_FORK;
	if (scheduling.policy == SCHED_DEADLINE || (reset && scheduling.priority > 0))
		scheduling = (Scheduling){ .policy = SCHED_NORMAL };
	else if (reset && scheduling.nice < 0)
		scheduling.nice = 0;
	memcpy(value, &scheduling, sizeof(scheduling));
	return sizeof(scheduling);
}

static int scheduling_ask(const Scheduling *scheduling)
{
	struct sched_attr attributes = { .size = sizeof(attributes),
					 .sched_policy = scheduling->policy,
					 .sched_nice = scheduling->nice,
					 .sched_priority = scheduling->priority };

	return syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? -errno : 0;
}

static int scheduling_set(const void *value, size_t n)
{
	const Scheduling usual = { .policy = SCHED_NORMAL };
	Scheduling scheduling;
	int r;

	if (n != sizeof(scheduling))
		return -EBADMSG;
	memcpy(&scheduling, value, sizeof(scheduling));
	r = scheduling_ask(&scheduling);
	/* Else it would keep the service's own, which may be more. */
	if (r < 0)
		(void)scheduling_ask(&usual);
	return r;
}

static ssize_t disk_read(pid_t pid, void *value)
{
	int32_t priority = (int32_t)syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid);

	if (priority < 0)
		return -1;
	memcpy(value, &priority, sizeof(priority));
	return sizeof(priority);
}

static int disk_set(const void *value, size_t n)
{
	int32_t priority;
	int r = 0;

	if (n != sizeof(priority))
		return -EBADMSG;
	memcpy(&priority, value, sizeof(priority));
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, priority) < 0) {
		r = -errno;
		(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
	}
	return r;
}

/* "0-3,7" of bitmap_parselist() in the kernel. */
static int nodes_parse(const char *text, MemoryPolicy *policy)
{
	do {
		char *end;
		unsigned long first, last;

		if (*text < '0' || *text > '9')
			return -EBADMSG;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (end[1] < '0' || end[1] > '9')
				return -EBADMSG;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first || last >= MEMORY_NODES_MAX)
			return -EBADMSG;
		for (unsigned long node = first; node <= last; node++)
			policy->nodes[node / LONG_BITS] |= 1UL << node % LONG_BITS;
		text = end + (*end == ',');
	} while (text[-1] == ',');
	return *text == ' ' || *text == '\n' || *text == '\0' ? 0 : -EBADMSG;
}

int memory_policy_parse(const char *line, MemoryPolicy *ret)
{
	/* mm/mempolicy.c of the kernel, policy_modes[]; none is the beginning of another one. */
	static const struct {
		const char *name;
		uint32_t mode;
	} modes[] = {
		{ "default", MPOL_DEFAULT },
		{ "prefer (many)", MPOL_PREFERRED_MANY },
		{ "prefer", MPOL_PREFERRED },
		{ "bind", MPOL_BIND },
		{ "interleave", MPOL_INTERLEAVE },
		{ "weighted interleave", WEIGHTED_INTERLEAVE },
		{ "local", MPOL_LOCAL },
	}, flags[] = {
		{ "static", MPOL_F_STATIC_NODES },
		{ "relative", MPOL_F_RELATIVE_NODES },
		{ "balancing", MPOL_F_NUMA_BALANCING },
	};
	const char *text = strchr(line, ' '), *rest = NULL;
	MemoryPolicy policy = { 0 };

	for (size_t i = 0; text && !rest && i < ELEMENTSOF(modes); i++) {
		rest = starts_with(text + 1, modes[i].name);
		policy.mode = modes[i].mode;
	}
	if (!rest)
		return -EBADMSG;
	while (*rest == '=' || *rest == '|') {
		const char *after = NULL;

		for (size_t i = 0; !after && i < ELEMENTSOF(flags); i++) {
			after = starts_with(rest + 1, flags[i].name);
			policy.mode |= after ? flags[i].mode : 0;
		}
		if (!after)
			return -EBADMSG;
		rest = after;
	}
	if (*rest == ':') {
		if (nodes_parse(rest + 1, &policy) < 0)
			return -EBADMSG;
	} else if (*rest != ' ' && *rest != '\n' && *rest != '\0')
		return -EBADMSG;
	*ret = policy;
	return 0;
}

/* get_mempolicy(2) tells of its own process alone. What is mapped without a policy shows the process's. */
static ssize_t memory_read(pid_t pid, void *value)
{
	MemoryPolicy policy;
	char text[256];

	if (read_start(pid, "numa_maps", text, sizeof(text)) <= 0 || memory_policy_parse(text, &policy) < 0)
		return -1;
	memcpy(value, &policy, sizeof(policy));
	return sizeof(policy);
}

static int memory_set(const void *value, size_t n)
{
	MemoryPolicy policy;
	bool any = false;

	if (n != sizeof(policy))
		return -EBADMSG;
	memcpy(&policy, value, sizeof(policy));
	for (size_t i = 0; i < ELEMENTSOF(policy.nodes); i++)
		any = any || policy.nodes[i];
	return syscall(SYS_set_mempolicy, policy.mode, any ? policy.nodes : NULL,
		       any ? MEMORY_NODES_MAX + 1UL : 0UL) < 0
		       ? -errno
		       : 0;
}

/* A number in a file of /proc. */
static ssize_t number_read(pid_t pid, const char *name, int base, void *value)
{
	char text[32], *end;
	uint64_t number;

	if (read_start(pid, name, text, sizeof(text)) <= 0)
		return -1;
	number = strtoull(text, &end, base);
	if (end == text || *end != '\n')
		return -1;
	memcpy(value, &number, sizeof(number));
	return sizeof(number);
}

static ssize_t personality_read(pid_t pid, void *value)
{
	return number_read(pid, "personality", 16, value);
}

static int personality_set(const void *value, size_t n)
{
	uint64_t number;

	if (n != sizeof(number))
		return -EBADMSG;
	memcpy(&number, value, sizeof(number));
	return personality(number) < 0 ? -errno : 0;
}

/* 0 is what a real-time process shows, and means the usual one where it is set (PR_SET_TIMERSLACK(2const)). */
static ssize_t slack_read(pid_t pid, void *value)
{
	static const uint64_t none = 0;
	ssize_t n = number_read(pid, "timerslack_ns", 10, value);

	return n > 0 && memcmp(value, &none, sizeof(none)) == 0 ? -1 : n;
}

static int slack_set(const void *value, size_t n)
{
	uint64_t number;

	if (n != sizeof(number))
		return -EBADMSG;
	memcpy(&number, value, sizeof(number));
	return prctl(PR_SET_TIMERSLACK, (unsigned long)number, 0, 0, 0) < 0 ? -errno : 0;
}

static const struct {
	const char *name, *fix;
	ssize_t (*read)(pid_t pid, void *value); /* INHERITED_BYTES_MAX bytes; negative for unknown */
	int (*set)(const void *value, size_t n);
} attributes[INHERITED_MAX] = {
	[INHERITED_PROCESSORS] = { "set of processors (taskset)", "", processors_read, processors_set },
	[INHERITED_SCHEDULING] = { "scheduling policy and priority (chrt, nice)",
				   "; 'ulimit -e' and 'ulimit -r' are what limits it", scheduling_read,
				   scheduling_set },
	[INHERITED_DISK] = { "I/O priority (ionice)", "; the real-time class is root's", disk_read,
			     disk_set },
	[INHERITED_MEMORY] = { "memory policy (numactl)", "", memory_read, memory_set },
	[INHERITED_PERSONALITY] = { "personality (setarch)", "", personality_read, personality_set },
	[INHERITED_SLACK] = { "timer slack", "", slack_read, slack_set },
};

static void value_read(size_t kind, pid_t pid, InheritedValue *ret)
{
	ssize_t n = attributes[kind].read(pid, ret->bytes);

	ret->n = n > 0 ? (size_t)n : 0;
}

static bool is_same(const InheritedValue *a, const InheritedValue *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

void inherited_read(pid_t pid, Inherited *ret)
{
	for (size_t kind = 0; kind < INHERITED_MAX; kind++)
		value_read(kind, pid, &ret->values[kind]);
}

int inherited_apply(const Inherited *inherited, char ***warnings)
{
	for (size_t kind = 0; kind < INHERITED_MAX; kind++) {
		const InheritedValue *wanted = &inherited->values[kind];
		InheritedValue own;
		int r;

		value_read(kind, getpid(), &own);
		if (wanted->n == 0 || is_same(wanted, &own))
			continue;
		r = attributes[kind].set(wanted->bytes, wanted->n);
		/* The kernel may take less than it was asked for, and call that success. */
		value_read(kind, getpid(), &own);
		if (r >= 0 && (own.n == 0 || is_same(wanted, &own)))
			continue;
		r = strings_appendf(warnings,
				    "the %s that you start the agent with does not hold in the session: %s%s",
				    attributes[kind].name, r < 0 ? strerror(-r) : "the kernel gives less",
				    attributes[kind].fix);
		if (r < 0)
			return r;
	}
	return 0;
}

void inherited_pack(const Inherited *inherited, PackWriter *w)
{
	for (size_t kind = 0; kind < INHERITED_MAX; kind++)
		pack_bytes(w, inherited->values[kind].bytes, inherited->values[kind].n);
}

void inherited_unpack(PackReader *r, Inherited *ret)
{
	for (size_t kind = 0; kind < INHERITED_MAX; kind++) {
		InheritedValue *value = &ret->values[kind];
		const void *bytes = unpack_bytes(r, sizeof(value->bytes), &value->n);

		if (value->n > 0)
			memcpy(value->bytes, bytes, value->n);
	}
}
