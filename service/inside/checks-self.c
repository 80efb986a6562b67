/* SPDX-License-Identifier: MIT */

/* 01, 02 and 06 to 09: what this process, and those of a running session, are. */

#include "service/inside/checks.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "dbus/names.h"
#include "service/inside/measure.h"
#include "service/inside/mounts.h"

#define STATUS_MAX (64u * 1024)
#define MARKER_MAX (16u * 1024)
#define SECCOMP_FILTER 2 /* seccomp(2), as "Seccomp:" has it */
#define FILTERS 2        /* of filter.c */

static const char *const capability_sets[CAPABILITY_SET_MAX] = { "CapInh", "CapPrm", "CapEff", "CapBnd",
								 "CapAmb" };

static char *own_status(Battery *b)
{
	char *status = measure_text("/proc/self/status", STATUS_MAX, NULL);

	if (!status)
		battery_fail(b, "/proc/self/status cannot be read: %s", strerror(errno));
	return status;
}

/* ---- 01 ---- */

static void expect_variable(Battery *b, const char *name, const char *value)
{
	const char *found = measure_variable(name);

	if (!found)
		battery_fail(b, "the variable %s is not set", name);
	else if (value && !streq(found, value))
		battery_fail(b, "the variable %s is '%s' and not '%s'", name, found, value);
}

void check_marker(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *text = measure_text(CS_MARKER_PATH, MARKER_MAX, NULL), *wanted = NULL;

	if (!text) {
		battery_fail(b, "this is no jail of claude-sandbox: " CS_MARKER_PATH ": %s", strerror(errno));
		return;
	}
	expect_variable(b, "IS_SANDBOX", "1");
	expect_variable(b, "IS_SANDBOX_AGENT", e ? e->agent : NULL);
	if (!e) {
		battery_pass(b, "agent %.*s", (int)strcspn(text, "\n"), text);
		return;
	}
	if (asprintf(&wanted, CS_MARKER_FORMAT, e->agent, e->program) < 0)
		wanted = NULL;
	if (!wanted || !streq(text, wanted))
		battery_fail(b, "the marker " CS_MARKER_PATH " names another agent than %s at %s", e->agent,
			     e->program);
	battery_pass(b, "agent %s", e->agent);
	mounts_judge(b, "01");
}

/* ---- 02 ---- */

static const ExpectedProcess *each_process(const Expectations *e, size_t i)
{
	return e && i < e->n_processes ? &e->processes[i] : NULL;
}

/* Beside an agent, what this process is says little: the session's own are to be judged. */
static void expect_processes(Battery *b)
{
	const Expectations *e = battery_expectations(b);

	if (e && e->joined && e->n_processes == 0)
		battery_fail(b, "which processes the session has was not told");
}

void check_privileges(Battery *b)
{
	_cleanup_free_ char *status = own_status(b);
	const ExpectedProcess *process;
	uint64_t seccomp = 0, filters = 0;

	if (!status)
		return;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		battery_fail(b, "no_new_privs is not set: a set-user-ID program would gain rights");
	if (!measure_number(status, "Seccomp", 10, &seccomp) || seccomp != SECCOMP_FILTER)
		battery_fail(b, "no seccomp filter is in force");
	/* Not every kernel counts them. */
	if (measure_number(status, "Seccomp_filters", 10, &filters) && filters < FILTERS)
		battery_fail(b, "%u of %d seccomp filters are in force", (unsigned)filters, FILTERS);
	expect_processes(b);
	for (size_t i = 0; (process = each_process(battery_expectations(b), i)); i++) {
		if (!process->no_new_privileges)
			battery_fail(b, "process %u (%s) of the session runs without no_new_privs",
				     process->pid, process->name);
		if (process->seccomp != SECCOMP_FILTER ||
		    (process->seccomp_filters > 0 && process->seccomp_filters < FILTERS))
			battery_fail(b, "process %u (%s) of the session runs without the filter",
				     process->pid, process->name);
	}
	if (battery_failures(b) == 0 || seccomp == SECCOMP_FILTER)
		check_filter(b);
}

/* ---- 06 ---- */

void check_capabilities(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *status = own_status(b);
	const ExpectedProcess *process;
	uint64_t set = 0;

	for (size_t i = 0; status && i < CAPABILITY_SET_MAX; i++)
		if (!measure_number(status, capability_sets[i], 16, &set))
			battery_fail(b, "%s is not in /proc/self/status", capability_sets[i]);
		else if (set != 0)
			battery_fail(b, "%s is %016llx: rights that no agent may have", capability_sets[i],
				     (unsigned long long)set);
	expect_processes(b);
	for (size_t p = 0; (process = each_process(e, p)); p++)
		for (size_t i = 0; i < CAPABILITY_SET_MAX && !process->below; i++)
			if (process->capabilities[i] != 0)
				battery_fail(b, "process %u (%s) of the session has %s %016llx", process->pid,
					     process->name, capability_sets[i],
					     (unsigned long long)process->capabilities[i]);
	battery_pass(b, "all five sets are empty");
}

/* ---- 07 to 09 ---- */

/* Every kind that has no row of its own is judged with the one that it is nearest to. */
void check_namespace(Battery *b, NamespaceKind kind)
{
	const Expectations *e = battery_expectations(b);
	const char *name = namespace_kind_to_string(kind);
	uint64_t own = measure_namespace("self", kind);
	const ExpectedProcess *process;

	if (own == 0) {
		/* Kernels without cgroup namespaces have nothing to part. */
		if (kind != NAMESPACE_CGROUP)
			battery_fail(b, "/proc/self/ns/%s cannot be read", name);
		return;
	}
	if (!e) {
		battery_note(b, "whose %s namespace it is cannot be told without the service", name);
		return;
	}
	if (e->namespaces[kind] == 0)
		battery_fail(b, "the %s namespace of the service is not known", name);
	if (own == e->namespaces[kind])
		battery_fail(b, "the %s namespace is the machine's", name);
	if (e->joined && own != e->jail_namespaces[kind])
		battery_fail(b, "this is not the session's %s namespace", name);
	expect_processes(b);
	for (size_t i = 0; (process = each_process(e, i)); i++)
		if (process->namespaces[kind] == 0)
			battery_fail(b, "the %s namespace of process %u (%s) of the session is not known",
				     name, process->pid, process->name);
		else if (process->namespaces[kind] == e->namespaces[kind])
			battery_fail(b, "process %u (%s) of the session is in the machine's %s namespace",
				     process->pid, process->name, name);
}

static size_t count_words(const char *text, size_t n)
{
	size_t words = 0;

	for (size_t i = 0; i < n; i++)
		words += text[i] != '\t' && text[i] != ' ' &&
			 (i == 0 || text[i - 1] == '\t' || text[i - 1] == ' ');
	return words;
}

static void check_depth(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *status = own_status(b);
	const char *value;
	size_t n, depth;

	if (!status)
		return;
	value = measure_field(status, "NSpid", &n);
	depth = value ? count_words(value, n) : 0;
	if (depth == 0)
		battery_fail(b, "/proc does not show this process");
	/* A private /proc begins with the jail's own numbers, the outer one with the machine's. */
	if (e && e->private_proc && depth > 1)
		battery_fail(b, "/proc shows processes of %zu namespaces and has to be the jail's own",
			     depth);
	if (e && !e->private_proc && depth < 2)
		battery_fail(b, "this process is in no process namespace below the machine's");
}

/* Who may trace init may write its reports for it. get_robust_list(2) asks for the same right, without more.
 */
static void judge_init_trace(Battery *b)
{
	void *head;
	size_t size;

	if (syscall(SYS_get_robust_list, 1, &head, &size) == 0)
		battery_fail(b, "the first process of the jail can be traced");
	else if (errno != EPERM)
		battery_fail(b, "whether the first process of the jail can be traced is not known: %s",
			     strerror(errno));
}

/* Init has to be PID 1: the reports of stops, and who reaps, depend on it. */
static void check_init(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	_cleanup_free_ char *name = NULL;

	if (!e)
		return;
	judge_init_trace(b);
	if (e->joined)
		return;
	if (getppid() != 1)
		battery_fail(b, "it was not started by the jail's first process");
	if (!e->private_proc)
		return;
	name = measure_text("/proc/1/comm", STATUS_MAX, NULL);
	if (!name || !streq(name, "init\n"))
		battery_fail(b, "the first process of the jail is not init");
}

void check_pid_namespace(Battery *b)
{
	const Expectations *e = battery_expectations(b);
	const ExpectedProcess *process;

	check_namespace(b, NAMESPACE_PID);
	check_namespace(b, NAMESPACE_CGROUP);
	check_namespace(b, NAMESPACE_USER);
	check_namespace(b, NAMESPACE_MNT);
	check_depth(b);
	check_init(b);
	for (size_t i = 0; (process = each_process(e, i)); i++)
		if (process->pid_depth == 0)
			battery_fail(b,
				     "process %u (%s) of the session is in the machine's process namespace",
				     process->pid, process->name);
	if (e)
		battery_pass(b, e->private_proc ? "with a /proc of its own" : "under the machine's /proc");
	mounts_judge(b, "07");
}

void check_ipc_namespace(Battery *b)
{
	check_namespace(b, NAMESPACE_IPC);
	if (battery_expectations(b))
		battery_pass(b, "it is not the machine's");
}

void check_uts_namespace(Battery *b)
{
	check_namespace(b, NAMESPACE_UTS);
	if (battery_expectations(b))
		battery_pass(b, "it is not the machine's");
}
