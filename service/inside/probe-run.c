/* SPDX-License-Identifier: MIT */
#include "service/inside/probe-child.h"

/*
 * For the next one to end, and for all together. Who reads the rows takes silence of two seconds for the end
 * of whoever writes them.
 */
#define PROBE_USEC (3 * USEC_PER_SEC / 2)
#define PROBES_USEC (10 * USEC_PER_SEC)
#define WAITING_MAX 64u

typedef struct Run {
	ProbeFunction function;
	void *userdata;
	uint64_t last_usec;
} Run;

static void finish(const Run *run, ProbeChild *child)
{
	const Probe *probe = child->probe;
	_cleanup_free_ char *text = NULL;
	int r = probe_child_finish(child, MIN_OF(run->last_usec, probe_clock_usec() + PROBE_USEC), &text);

	run->function(probe, r, text ? text : "inconclusive: no memory", run->userdata);
}

void probes_each(const Expectations *expectations, ProbeFunction function, void *userdata)
{
	const Run run = { .function = function,
			  .userdata = userdata,
			  .last_usec = probe_clock_usec() + PROBES_USEC };
	ProbeChild waiting[WAITING_MAX];
	const Probe *probe;
	size_t n_waiting = 0, ended = 0;

	for (size_t i = 0; (probe = probe_at(i)); i++)
		if (probe->waits && n_waiting < WAITING_MAX)
			probe_child_start(&waiting[n_waiting++], probe, expectations);

	for (size_t i = 0; (probe = probe_at(i)); i++) {
		if (ended < n_waiting && waiting[ended].probe == probe) {
			finish(&run, &waiting[ended++]);
		} else {
			ProbeChild child;

			probe_child_start(&child, probe, expectations);
			finish(&run, &child);
		}
	}
}
