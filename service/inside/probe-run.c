/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-child.h"

/* For each of those that run one after the other, and for all together. */
#define PROBE_USEC (2 * USEC_PER_SEC)
#define PROBES_USEC (10 * USEC_PER_SEC)
#define WAITING_MAX 64u

typedef struct Run {
	const Expectations *expectations;
	ProbeFunction function;
	void *userdata;
} Run;

static void finish(const Run *run, ProbeChild *child, uint64_t deadline_usec)
{
	const Probe *probe = child->probe;
	_cleanup_free_ char *text = NULL;
	int r = probe_child_finish(child, deadline_usec, &text);

	run->function(probe, r, text ? text : "inconclusive: no memory", run->userdata);
}

void probes_each(const Expectations *expectations, ProbeFunction function, void *userdata)
{
	const Run run = { .expectations = expectations, .function = function, .userdata = userdata };
	uint64_t last_usec = probe_clock_usec() + PROBES_USEC;
	ProbeChild waiting[WAITING_MAX];
	const Probe *probe;
	size_t n_waiting = 0, ended = 0;

	for (size_t i = 0; (probe = probe_at(i)); i++)
		if (probe->waits && n_waiting < WAITING_MAX)
			probe_child_start(&waiting[n_waiting++], probe, expectations);

	for (size_t i = 0; (probe = probe_at(i)); i++) {
		if (ended < n_waiting && waiting[ended].probe == probe) {
			finish(&run, &waiting[ended++], last_usec);
		} else {
			ProbeChild child;

			probe_child_start(&child, probe, expectations);
			finish(&run, &child, MIN_OF(last_usec, probe_clock_usec() + PROBE_USEC));
		}
	}
}
