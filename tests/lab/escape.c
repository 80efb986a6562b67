/* SPDX-License-Identifier: MIT */
/*
 * escape [ID...]: the probes, or those of them, where it is started; one line each: ID OUTCOME MSEC TEXT.
 */
#include <sys/prctl.h>

#include "service/inside/probe-child.h"

int main(int argc, char **argv)
{
	static const char *const words[] = { "inconclusive", "blocked", "escaped" };
	Expectations expectations = { .jailed = true, .forbid_namespaces = geteuid() == 0 };
	const Probe *probe;
	int from = 1, status = 0;

	/* As the program that runs them does. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	while (from < argc && argv[from][0] == '-')
		from++;
	for (size_t i = 0; (probe = probe_at(i)); i++) {
		_cleanup_free_ char *text = NULL;
		bool wanted = argc == from;
		uint64_t start = probe_clock_usec();
		ProbeChild child;
		int r;

		for (int j = from; j < argc; j++)
			wanted = wanted || streq(argv[j], probe->id);
		if (!wanted)
			continue;
		probe_child_start(&child, probe, &expectations);
		r = probe_child_finish(&child, start + 3 * USEC_PER_SEC, &text);
		printf("%s %s %llu %s\n", probe->id, r < 0 ? "failed" : words[r],
		       (unsigned long long)((probe_clock_usec() - start) / USEC_PER_MSEC), text ? text : "");
		status |= r != PROBE_BLOCKED;
	}
	return status;
}
