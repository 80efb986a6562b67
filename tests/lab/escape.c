/* SPDX-License-Identifier: MIT */
/*
 * escape [ID...]: the probes, or those of them, where it is started; one line each: ID OUTCOME MSEC TEXT.
 * MSEC is since the start of all. Arguments that begin with "-" are skipped.
 */
#include <sys/prctl.h>

#include "base/clock.h"
#include "service/inside/probe-child.h"

typedef struct Wanted {
	char **ids;
	int n, status;
	uint64_t start;
} Wanted;

static void show(const Probe *probe, int outcome, const char *text, void *userdata)
{
	static const char *const words[] = { "inconclusive", "blocked", "escaped" };
	Wanted *wanted = userdata;
	bool is_wanted = wanted->n == 0;

	for (int i = 0; i < wanted->n; i++)
		is_wanted = is_wanted || streq(wanted->ids[i], probe->id);
	if (!is_wanted)
		return;
	printf("%s %s %llu %s\n", probe->id, outcome < 0 ? "failed" : words[outcome],
	       (unsigned long long)((clock_usec(CLOCK_MONOTONIC) - wanted->start) / USEC_PER_MSEC), text);
	(void)fflush(stdout);
	wanted->status |= outcome != PROBE_BLOCKED;
}

int main(int argc, char **argv)
{
	const Expectations expectations = { .jailed = true, .forbid_namespaces = geteuid() == 0 };
	int from = 1;

	while (from < argc && argv[from][0] == '-')
		from++;
	Wanted wanted = { .ids = argv + from, .n = argc - from, .start = clock_usec(CLOCK_MONOTONIC) };
	if (access("/run/claude-sandbox/inside", F_OK) < 0) {
		(void)fprintf(stderr, "escape: this is no jail\n");
		return 2;
	}
	/* As the program that runs them does. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	probes_each(&expectations, show, &wanted);
	return wanted.status;
}
