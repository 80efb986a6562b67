/* SPDX-License-Identifier: MIT */

/*
 * `init`, which leaves one thing out that it does: its only argument says what, as mutation.h describes. Only
 * tests link this; the installed program has no such switch.
 *
 *     init-mutant --list [root]    every change of the filter (of a session of root's) and of init itself
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "dbus/base.h"
#include "service/inside/filter.h"
#include "service/inside/init.h"

/* ld(1), --wrap: what is called is the second of each. */
int __real_seccomp_rule_add_array(scmp_filter_ctx context, uint32_t action, int call, unsigned n,
				  const struct scmp_arg_cmp *conditions);
int __wrap_seccomp_rule_add_array(scmp_filter_ctx context, uint32_t action, int call, unsigned n,
				  const struct scmp_arg_cmp *conditions);
int __real_seccomp_arch_add(scmp_filter_ctx context, uint32_t architecture);
int __wrap_seccomp_arch_add(scmp_filter_ctx context, uint32_t architecture);
int __real_seccomp_attr_set(scmp_filter_ctx context, enum scmp_filter_attr attribute, uint32_t value);
int __wrap_seccomp_attr_set(scmp_filter_ctx context, enum scmp_filter_attr attribute, uint32_t value);
int __real_seccomp_load(scmp_filter_ctx context);
int __wrap_seccomp_load(scmp_filter_ctx context);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

static const char *group = "", *how = "";
static size_t wanted;
static bool listing;
static size_t rules, architectures;

static bool hits(const char *of, size_t number, const char *way)
{
	if (listing)
		return false;
	return streq(group, of) && wanted == number && streq(how, way);
}

static void offer(const char *of, size_t number, const char *way, const char *what)
{
	if (listing)
		printf("%s\t%zu\t%s\t%s\n", of, number, way, what);
}

/* ---- rules by name ---- */

static char *call_name(int call)
{
	static const uint32_t tries[] = { SCMP_ARCH_NATIVE, SCMP_ARCH_X86, SCMP_ARCH_ARM };
	char *name = NULL;

	for (size_t i = 0; !name && i < ELEMENTSOF(tries); i++)
		name = seccomp_syscall_resolve_num_arch(tries[i], call);
	return name ?: strdup("?");
}

static char *rule_name(int call, unsigned n, const struct scmp_arg_cmp *conditions)
{
	_cleanup_free_ char *name = call_name(call);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f || !name)
		abort();
	(void)fprintf(f, "%s", name);
	for (unsigned i = 0; i < n; i++) {
		const struct scmp_arg_cmp *c = &conditions[i];

		if (c->op == SCMP_CMP_MASKED_EQ)
			(void)fprintf(f, " %u: & %#llx = %#llx", c->arg, (unsigned long long)c->datum_a,
				      (unsigned long long)c->datum_b);
		else
			(void)fprintf(f, " %u: %s %#llx", c->arg, c->op == SCMP_CMP_GT ? ">" : "?",
				      (unsigned long long)c->datum_a);
	}
	if (fclose(f) != 0)
		abort();
	return text;
}

/* What stands above them must not hide what the kernel reads. */
static bool is_of_32_bits(unsigned n, const struct scmp_arg_cmp *conditions)
{
	return n == 1 && conditions[0].op == SCMP_CMP_MASKED_EQ && conditions[0].datum_a == UINT32_MAX;
}

int __wrap_seccomp_rule_add_array(scmp_filter_ctx context, uint32_t action, int call, unsigned n,
				  const struct scmp_arg_cmp *conditions)
{
	size_t number = rules++;

	if (listing) {
		_cleanup_free_ char *name = rule_name(call, n, conditions);

		offer("filter", number, "dropped", name);
		if (is_of_32_bits(n, conditions))
			offer("filter", number, "by 64 bits", name);
		return 0;
	}
	if (hits("filter", number, "dropped"))
		return 0;
	if (hits("filter", number, "by 64 bits")) {
		struct scmp_arg_cmp wider = conditions[0];

		wider.datum_a = UINT64_MAX;
		return __real_seccomp_rule_add_array(context, action, call, 1, &wider);
	}
	return __real_seccomp_rule_add_array(context, action, call, n, conditions);
}

/* ---- architectures ---- */

/* Left out alone, its calls would kill: that is no weaker. So it is left out and what is left out is let
 * through. */
int __wrap_seccomp_arch_add(scmp_filter_ctx context, uint32_t architecture)
{
	size_t number = architectures++;
	char text[32];

	(void)snprintf(text, sizeof(text), "architecture %#x", architecture);
	if (architecture == seccomp_arch_native())
		return __real_seccomp_arch_add(context, architecture);
	offer("filter architecture", number, "let through", text);
	if (hits("filter architecture", number, "let through"))
		return 0;
	return __real_seccomp_arch_add(context, architecture);
}

int __wrap_seccomp_attr_set(scmp_filter_ctx context, enum scmp_filter_attr attribute, uint32_t value)
{
	if (attribute == SCMP_FLTATR_ACT_BADARCH && streq(group, "filter architecture"))
		value = SCMP_ACT_ALLOW;
	return __real_seccomp_attr_set(context, attribute, value);
}

int __wrap_seccomp_load(scmp_filter_ctx context)
{
	offer("filter load", 0, "dropped", "rules by name");
	if (listing || hits("filter load", 0, "dropped"))
		return 0;
	return __real_seccomp_load(context);
}

/* ---- rules by number ---- */

static void instruction_mutate(struct sock_filter *instruction, size_t number)
{
	char text[64];

	if (BPF_CLASS(instruction->code) == BPF_RET && instruction->k != SECCOMP_RET_ALLOW) {
		(void)snprintf(text, sizeof(text), "instruction %zu: answer %s", number,
			       strerrorname_np((int)(instruction->k & SECCOMP_RET_DATA)) ?: "?");
		offer("filter program", number, "allows", text);
		if (hits("filter program", number, "allows"))
			instruction->k = SECCOMP_RET_ALLOW;
	}
	if (BPF_CLASS(instruction->code) == BPF_JMP) {
		(void)snprintf(text, sizeof(text), "instruction %zu: if %s %#x", number,
			       BPF_OP(instruction->code) == BPF_JEQ   ? "="
			       : BPF_OP(instruction->code) == BPF_JGT ? ">"
			       : BPF_OP(instruction->code) == BPF_JGE ? ">="
								      : "&",
			       instruction->k);
		offer("filter program", number, "never", text);
		if (hits("filter program", number, "never"))
			instruction->jt = instruction->jf;
	}
}

static bool program_mutate(const struct sock_fprog *program)
{
	for (size_t i = 0; i < program->len; i++)
		instruction_mutate(&program->filter[i], i);
	offer("filter load", 1, "dropped", "rules by number");
	return !listing && !hits("filter load", 1, "dropped");
}

long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list arguments;

	va_start(arguments, number);
	for (size_t i = 0; i < ELEMENTSOF(a); i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	/* Ours, not libseccomp's; the flags tell them apart. */
	if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER && a[2] && (listing || rules == 0) &&
	    !program_mutate((const struct sock_fprog *)a[2])) // NOLINT(performance-no-int-to-ptr)
		return 0;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- init itself ---- */

int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	if ((option == PR_SET_DUMPABLE && hits("init", 0, "dropped")) ||
	    (option == PR_SET_NO_NEW_PRIVS && hits("init", 1, "dropped")))
		return 0;
	return __real_prctl(option, a, b, c, d);
}

static int list(bool root)
{
	listing = true;
	if (filter_install(root) < 0)
		return 1;
	offer("init", 0, "dropped", "not dumpable");
	offer("init", 1, "dropped", "no new privileges");
	return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	char *first, *second;

	if (argc > 1 && streq(argv[1], "--list"))
		return list(argc > 2);
	if (argc > 1 && (first = strchr(argv[1], ':')) && (second = strchr(first + 1, ':'))) {
		*first = *second = '\0';
		group = argv[1];
		wanted = strtoul(first + 1, NULL, 10);
		how = second + 1;
	}
	return init_run();
}
